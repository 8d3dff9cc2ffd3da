import { useEffect, useRef } from 'react';
import type { Block, ElementValue, TextObject } from '../slack/types';
import { useElement, type ElementProps } from './surface';

const types: Record<string, string> = { email_text_input: 'email', url_text_input: 'url' };

/** All elements that take typed text. */
export function TextInput(props: ElementProps) {
  const { element } = props;
  const { surface, value, keep } = useElement(props);
  const box = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const rich = element.type === 'rich_text_input';
  const text = rich ? textOfRich(value.rich_text_value) : (value.value ?? '');
  const triggers = (element.dispatch_action_config as { trigger_actions_on?: string[] } | undefined)
    ?.trigger_actions_on ?? ['on_enter_pressed'];

  useEffect(() => {
    if (element.focus_on_load) box.current?.focus();
  }, [element.focus_on_load]);

  const valueOf = (next: string): ElementValue =>
    rich
      ? { type: element.type, rich_text_value: richOf(next) }
      : { type: element.type, value: next === '' ? null : next };
  const dispatch = (next: string) => void surface.act(props.block, element, valueOf(next));

  const shared = {
    ref: box,
    className: 'text-input',
    value: text,
    'data-action-id': element.action_id,
    placeholder: (element.placeholder as TextObject | undefined)?.text,
    maxLength: element.max_length as number | undefined,
    'aria-labelledby': props.labelledBy,
    'aria-describedby': props.describedBy,
    'aria-invalid': props.invalid,
    onChange: (event: { target: { value: string } }) => {
      keep(valueOf(event.target.value));
      if (props.dispatch && triggers.includes('on_character_entered')) dispatch(event.target.value);
    },
  };
  if (element.multiline || rich)
    return <textarea {...shared} rows={rich ? ((element.min_lines as number | undefined) ?? 4) : 4} />;
  return (
    <input
      {...shared}
      type={types[element.type] ?? 'text'}
      inputMode={element.type === 'number_input' ? 'decimal' : undefined}
      autoComplete="off"
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !props.dispatch || !triggers.includes('on_enter_pressed')) return;
        event.preventDefault();
        dispatch(text);
      }}
    />
  );
}

function textOfRich(block: Block | null | undefined): string {
  const sections = (block?.elements as { elements?: { text?: string }[] }[] | undefined) ?? [];
  return sections.map((section) => (section.elements ?? []).map((part) => part.text ?? '').join('')).join('\n');
}

function richOf(text: string): Block | null {
  if (text === '') return null;
  return { type: 'rich_text', elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text }] }] };
}
