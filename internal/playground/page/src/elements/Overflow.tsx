import { useRef, useState } from 'react';
import { PlainText } from '../blocks/TextObject';
import type { Option } from '../slack/types';
import { safeHref } from '../text/links';
import { Dots } from '../ui/icons';
import { Menu } from '../ui/Menu';
import { useElement, type ElementProps } from './surface';

export function Overflow(props: ElementProps) {
  const { element } = props;
  const { choose } = useElement(props);
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const options = (element.options as Option[] | undefined) ?? [];

  const pick = (option: Option) => {
    setOpen(false);
    anchor.current?.focus();
    const href = option.url ? safeHref(option.url) : undefined;
    if (href) window.open(href, '_blank', 'noopener,noreferrer');
    void choose({ type: 'overflow', selected_option: option });
  };

  return (
    <>
      <button
        ref={anchor}
        type="button"
        className="button overflow"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label="More actions"
        data-action-id={element.action_id}
        onClick={() => setOpen(!open)}
      >
        <Dots />
      </button>
      {open && (
        <Menu anchor={anchor} label="More actions" align="end" onClose={() => setOpen(false)}>
          {options.map((option) => (
            <button
              key={option.value}
              type="button"
              role="menuitem"
              className="menu-item"
              data-value={option.value}
              onClick={() => pick(option)}
            >
              <span>
                <PlainText text={option.text} />
              </span>
              {option.description && (
                <small>
                  <PlainText text={option.description} />
                </small>
              )}
            </button>
          ))}
        </Menu>
      )}
    </>
  );
}
