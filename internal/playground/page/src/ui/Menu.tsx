import { useEffect, useRef, type KeyboardEvent, type ReactNode, type RefObject } from 'react';
import { Popover } from './Popover';

/** A menu of buttons: arrows move, Enter chooses, Escape closes. */
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
    const items = [...(list.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])];
    (items.find((item) => item.getAttribute('aria-checked') === 'true') ?? items[0])?.focus();
  }, []);

  const move = (event: KeyboardEvent) => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
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
