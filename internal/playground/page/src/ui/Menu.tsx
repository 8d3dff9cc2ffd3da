import { useEffect, useRef, type KeyboardEvent, type ReactNode, type RefObject } from 'react';
import { Popover } from './Popover';

const rows = '[role^="menuitem"]:not([data-beside])';

/**
 * A menu of buttons: up and down move, Enter chooses, Escape closes. What stands beside an
 * item in its row (data-beside) is reached from it by right, and left leads back.
 */
export function Menu(props: {
  anchor: RefObject<HTMLElement | null>;
  label: string;
  onClose: () => void;
  align?: 'start' | 'end';
  className?: string;
  children: ReactNode;
}) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>(rows) ?? [])];
    (items.find((item) => item.getAttribute('aria-checked') === 'true') ?? items[0])?.focus();
  }, []);

  const move = (event: KeyboardEvent) => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>(rows) ?? [])];
    const row = document.activeElement?.parentElement;
    const own = row?.querySelector<HTMLElement>(`:scope > ${rows}`);
    const beside = row?.querySelector<HTMLElement>(':scope > [data-beside]');
    if (event.key === 'ArrowRight') beside?.focus();
    if (event.key === 'ArrowLeft' && document.activeElement === beside) own?.focus();
    const at = items.findIndex((item) => item === document.activeElement || (beside && item === own));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === 'Tab') props.onClose();
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length]?.focus();
  };

  return (
    <Popover
      anchor={props.anchor}
      onClose={props.onClose}
      align={props.align}
      className={`menu ${props.className ?? ''}`}
    >
      <div ref={list} role="menu" aria-label={props.label} onKeyDown={move}>
        {props.children}
      </div>
    </Popover>
  );
}
