import { useEffect, useLayoutEffect, useRef, type ReactNode, type RefObject } from 'react';
import { createPortal } from 'react-dom';

interface Place {
  left: number;
  top: number;
  maxHeight: number;
}

const gap = 4;
const edge = 8;

/** Below the anchor if there is room, else above it; never beyond the window. */
function place(anchor: DOMRect, panel: DOMRect, align: 'start' | 'end'): Place {
  const below = innerHeight - anchor.bottom - gap - edge;
  const above = anchor.top - gap - edge;
  const up = below < Math.min(panel.height, 260) && above > below;
  const maxHeight = Math.max(120, up ? above : below);
  const height = Math.min(panel.height, maxHeight);
  const left = align === 'start' ? anchor.left : anchor.right - panel.width;
  return {
    left: Math.max(edge, Math.min(left, innerWidth - panel.width - edge)),
    top: up ? anchor.top - gap - height : anchor.bottom + gap,
    maxHeight,
  };
}

/**
 * A panel beside its anchor, above everything else. A click elsewhere, Escape
 * or scrolling the page behind it calls onClose.
 */
export function Popover(props: {
  anchor: RefObject<HTMLElement | null>;
  onClose: () => void;
  align?: 'start' | 'end';
  className?: string;
  matchWidth?: boolean;
  children: ReactNode;
}) {
  const { anchor, onClose, align = 'start' } = props;
  const panel = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;

  useLayoutEffect(() => {
    const box = panel.current;
    if (!box) return;
    // Set at once and not as state: what is inside may take the focus as soon as it is mounted.
    const update = () => {
      if (!anchor.current) return;
      const at = place(anchor.current.getBoundingClientRect(), box.getBoundingClientRect(), align);
      box.style.left = `${at.left}px`;
      box.style.top = `${at.top}px`;
      box.style.maxHeight = `${at.maxHeight}px`;
    };
    update();
    const watch = new ResizeObserver(update);
    watch.observe(box);
    return () => watch.disconnect();
  }, [anchor, align]);

  useEffect(() => {
    const outside = (event: Event) => {
      const target = event.target as Node;
      if (!panel.current?.contains(target) && !anchor.current?.contains(target)) close.current();
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      event.preventDefault();
      close.current();
      anchor.current?.focus();
    };
    const resized = () => close.current();
    document.addEventListener('pointerdown', outside, true);
    document.addEventListener('wheel', outside, { capture: true, passive: true });
    document.addEventListener('keydown', escape, true);
    addEventListener('resize', resized);
    return () => {
      document.removeEventListener('pointerdown', outside, true);
      document.removeEventListener('wheel', outside, true);
      document.removeEventListener('keydown', escape, true);
      removeEventListener('resize', resized);
    };
  }, [anchor]);

  return createPortal(
    <div
      ref={panel}
      className={`popover ${props.className ?? ''}`}
      style={props.matchWidth ? { minWidth: anchor.current?.offsetWidth } : undefined}
    >
      {props.children}
    </div>,
    document.body,
  );
}
