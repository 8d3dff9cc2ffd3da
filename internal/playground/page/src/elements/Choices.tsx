import { useId } from 'react';
import { RichLine } from '../blocks/TextObject';
import type { ElementValue, Option } from '../slack/types';
import { useHidden } from './Button';
import { useElement, type ElementProps } from './surface';

/** Radio buttons and checkboxes. */
export function Choices(props: ElementProps) {
  const { element } = props;
  const { value, choose } = useElement(props);
  const name = useId();
  if (useHidden(element)) return null;
  const single = element.type === 'radio_buttons';
  const options = (element.options as Option[] | undefined) ?? [];
  const chosen = new Set(
    single ? [value.selected_option?.value] : value.selected_options?.map((option) => option.value),
  );

  const next = (option: Option, on: boolean): ElementValue => {
    if (single) return { type: element.type, selected_option: option };
    return {
      type: element.type,
      selected_options: options.filter((other) => (other.value === option.value ? on : chosen.has(other.value))),
    };
  };
  return (
    <div
      role={single ? 'radiogroup' : 'group'}
      className="choices"
      data-action-id={element.action_id}
      aria-labelledby={props.labelledBy}
      aria-describedby={props.describedBy}
    >
      {options.map((option) => (
        <label key={option.value} className="choice">
          <input
            type={single ? 'radio' : 'checkbox'}
            name={name}
            value={option.value}
            checked={chosen.has(option.value)}
            onChange={(event) => void choose(next(option, event.target.checked))}
          />
          <span>
            <RichLine text={option.text} />
            {option.description && (
              <small>
                <RichLine text={option.description} />
              </small>
            )}
          </span>
        </label>
      ))}
    </div>
  );
}
