import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Check, Chevron, Close } from './icons';
import { Popover } from './Popover';

export interface Choice {
  value: string;
  label: string;
  hint?: string;
  icon?: ReactNode;
}

export interface ChoiceGroup {
  label?: string;
  choices: Choice[];
}

/** Long lists get a box to search in. */
const searchFrom = 8;

/** A button that opens a list to choose from: one, or several up to `max`. */
export function Picker(props: {
  groups: ChoiceGroup[];
  chosen: Choice[];
  placeholder: string;
  multiple?: boolean;
  max?: number;
  actionId?: string;
  labelledBy?: string;
  describedBy?: string;
  invalid?: boolean;
  onChoose: (chosen: Choice[]) => void;
}) {
  const { chosen, multiple } = props;
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const textId = useId();

  const toggle = (choice: Choice) => {
    if (!multiple) {
      setOpen(false);
      anchor.current?.focus();
      props.onChoose([choice]);
      return;
    }
    const without = chosen.filter((other) => other.value !== choice.value);
    if (without.length < chosen.length) props.onChoose(without);
    else if (!props.max || chosen.length < props.max) props.onChoose([...chosen, choice]);
  };

  return (
    <span className="picker">
      <button
        ref={anchor}
        type="button"
        className="picker-button"
        data-action-id={props.actionId}
        aria-haspopup="listbox"
        aria-expanded={open}
        aria-labelledby={props.labelledBy ? `${props.labelledBy} ${textId}` : undefined}
        aria-describedby={props.describedBy}
        aria-invalid={props.invalid}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        <span id={textId} className={chosen.length > 0 ? 'picker-text' : 'picker-text placeholder'}>
          {chosen.length > 0 ? chosen.map((choice) => choice.label).join(', ') : props.placeholder}
        </span>
        <Chevron size={16} />
      </button>
      {multiple && chosen.length > 0 && (
        <button
          type="button"
          className="icon-button picker-clear"
          aria-label="Clear all"
          onClick={() => props.onChoose([])}
        >
          <Close size={14} />
        </button>
      )}
      {open && (
        <Popover anchor={anchor} onClose={() => setOpen(false)} className="listbox-panel" matchWidth>
          <Listbox
            groups={props.groups}
            chosen={chosen}
            multiple={multiple}
            onToggle={toggle}
            onLeave={() => setOpen(false)}
          />
        </Popover>
      )}
    </span>
  );
}

function Listbox(props: {
  groups: ChoiceGroup[];
  chosen: Choice[];
  multiple?: boolean;
  onToggle: (choice: Choice) => void;
  onLeave: () => void;
}) {
  const id = useId();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const root = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const chosen = new Set(props.chosen.map((choice) => choice.value));
  const total = props.groups.reduce((sum, group) => sum + group.choices.length, 0);
  const search = total >= searchFrom;

  const groups = useMemo(() => {
    const wanted = query.trim().toLowerCase();
    return props.groups
      .map((group) => ({
        ...group,
        choices: group.choices.filter((choice) =>
          `${choice.label} ${choice.hint ?? ''}`.toLowerCase().includes(wanted),
        ),
      }))
      .filter((group) => group.choices.length > 0);
  }, [props.groups, query]);
  const flat = groups.flatMap((group) => group.choices);

  useEffect(() => {
    (search ? root.current?.querySelector('input') : list.current)?.focus();
    setAt(
      Math.max(
        0,
        flat.findIndex((choice) => chosen.has(choice.value)),
      ),
    );
    // Only when it opens.
  }, []);
  useEffect(() => {
    list.current?.querySelector('[data-at="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);

  const keys = (event: KeyboardEvent) => {
    event.stopPropagation();
    const last = flat.length - 1;
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      setAt(to);
    } else if (event.key === 'Enter' || (event.key === ' ' && !search)) {
      event.preventDefault();
      const choice = flat[at];
      if (choice) props.onToggle(choice);
    } else if (event.key === 'Tab') {
      event.preventDefault();
      props.onLeave();
    }
  };

  let index = -1;
  return (
    <div ref={root} onKeyDown={keys}>
      {search && (
        <input
          className="text-input listbox-search"
          placeholder="Search"
          aria-label="Search the list"
          aria-controls={id}
          aria-activedescendant={`${id}-${at}`}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setAt(0);
          }}
        />
      )}
      <div
        ref={list}
        id={id}
        role="listbox"
        aria-multiselectable={props.multiple}
        tabIndex={-1}
        aria-activedescendant={`${id}-${at}`}
        className="listbox"
      >
        {flat.length === 0 && <div className="listbox-empty">Nothing found</div>}
        {groups.map((group, g) => (
          <div key={g} role="group" aria-label={group.label}>
            {group.label && <div className="listbox-group">{group.label}</div>}
            {group.choices.map((choice) => {
              index++;
              const mine = index;
              return (
                <div
                  key={choice.value}
                  id={`${id}-${mine}`}
                  role="option"
                  className="listbox-option"
                  data-value={choice.value}
                  data-at={mine === at}
                  aria-selected={chosen.has(choice.value)}
                  onPointerMove={() => setAt(mine)}
                  onClick={() => props.onToggle(choice)}
                >
                  {choice.icon}
                  <span className="listbox-label">
                    {choice.label}
                    {choice.hint && <small>{choice.hint}</small>}
                  </span>
                  {chosen.has(choice.value) && <Check size={16} />}
                </div>
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}
