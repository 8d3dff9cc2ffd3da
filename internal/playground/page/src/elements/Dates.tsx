import { useEffect, useRef, useState } from 'react';
import type { ElementValue } from '../slack/types';
import { useElement, type ElementProps } from './surface';

const kinds = { datepicker: 'date', timepicker: 'time', datetimepicker: 'datetime-local' } as const;
const names = { datepicker: 'Date', timepicker: 'Time', datetimepicker: 'Date and time' } as const;
type Kind = keyof typeof kinds;

const pad = (n: number) => String(n).padStart(2, '0');

/** A Unix time as datetime-local wants it, in this browser's zone. */
export function localDateTime(unix: number): string {
  const date = new Date(unix * 1000);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

function read(kind: Kind, value: ElementValue): string {
  if (kind === 'datepicker') return value.selected_date ?? '';
  if (kind === 'timepicker') return value.selected_time ?? '';
  return value.selected_date_time ? localDateTime(value.selected_date_time) : '';
}

function write(kind: Kind, text: string): ElementValue {
  if (kind === 'datepicker') return { type: kind, selected_date: text || null };
  if (kind === 'timepicker') return { type: kind, selected_time: text || null };
  return { type: kind, selected_date_time: text ? Math.floor(new Date(text).getTime() / 1000) : null };
}

/** While somebody types a date, each key is a change; the app is told when they pause. */
const pause = 600;

/** The date, time and date-and-time pickers: the browser's own. */
export function DateElement(props: ElementProps) {
  const kind = props.element.type as Kind;
  const { value, choose } = useElement(props);
  const held = read(kind, value);
  const [text, setText] = useState(held);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setText(held), [held]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const commit = (next: string) => {
    clearTimeout(timer.current);
    if (next !== held) void choose(write(kind, next));
  };
  return (
    <input
      className="text-input date-input"
      type={kinds[kind]}
      value={text}
      data-action-id={props.element.action_id}
      aria-label={props.labelledBy ? undefined : names[kind]}
      aria-labelledby={props.labelledBy}
      aria-describedby={props.describedBy}
      aria-invalid={props.invalid}
      onChange={(event) => {
        const next = event.target.value;
        setText(next);
        clearTimeout(timer.current);
        if (!props.dispatch) commit(next);
        else timer.current = setTimeout(() => commit(next), pause);
      }}
      onBlur={() => commit(text)}
    />
  );
}
