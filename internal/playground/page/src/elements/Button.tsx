import { useRef, useState } from 'react';
import { PlainText } from '../blocks/TextObject';
import type { Element, TextObject } from '../slack/types';
import { useDirectory } from '../shell/directory';
import { safeHref } from '../text/links';
import { ThumbDown, ThumbUp, Trash } from '../ui/icons';
import { useElement, type ElementProps } from './surface';

type State = 'idle' | 'busy' | 'failed';

/** Clicks wait for the app's acknowledgement; while one waits, further ones are dropped. */
function useClick(props: ElementProps) {
  const { confirmed, send } = useElement(props);
  const [state, setState] = useState<State>('idle');
  const waiting = useRef(false);
  const click = async (value?: string) => {
    if (waiting.current) return;
    waiting.current = true;
    if (await confirmed()) {
      setState('busy');
      setState((await send({ type: props.element.type, value: value ?? null })) ? 'idle' : 'failed');
    }
    waiting.current = false;
  };
  return { state, click };
}

/** Some elements are shown to certain people only. */
export function useHidden(element: Element): boolean {
  const { me } = useDirectory();
  const only = element.visible_to_user_ids as string[] | undefined;
  return !!only && only.length > 0 && !only.includes(me.id);
}

export function ButtonElement(props: ElementProps) {
  const { element } = props;
  const { state, click } = useClick(props);
  if (useHidden(element)) return null;
  const href = typeof element.url === 'string' ? safeHref(element.url) : undefined;
  const style = element.style === 'primary' || element.style === 'danger' ? element.style : '';
  return (
    <button
      type="button"
      className={`button ${style}`}
      data-action-id={element.action_id}
      data-value={typeof element.value === 'string' ? element.value : undefined}
      data-state={state}
      aria-busy={state === 'busy'}
      aria-label={element.accessibility_label as string | undefined}
      title={state === 'failed' ? 'The app did not answer in time. Try again.' : undefined}
      onClick={() => {
        if (href) window.open(href, '_blank', 'noopener,noreferrer');
        void click(element.value as string | undefined);
      }}
    >
      <span className="button-label">
        <PlainText text={element.text as TextObject} />
      </span>
    </button>
  );
}

export function IconButton(props: ElementProps) {
  const { element } = props;
  const { state, click } = useClick(props);
  if (useHidden(element)) return null;
  const text = (element.text as TextObject | undefined)?.text ?? 'Button';
  return (
    <button
      type="button"
      className="icon-button"
      data-action-id={element.action_id}
      data-state={state}
      aria-label={(element.accessibility_label as string | undefined) ?? text}
      title={text}
      onClick={() => void click(element.value as string | undefined)}
    >
      {element.icon === 'trash' ? <Trash /> : text}
    </button>
  );
}

interface FeedbackButton {
  text?: TextObject;
  value?: string;
  accessibility_label?: string;
}

export function FeedbackButtons(props: ElementProps) {
  const { element } = props;
  const { state, click } = useClick(props);
  const [given, setGiven] = useState<string>();
  const side = (name: 'positive_button' | 'negative_button') => {
    const button = element[name] as FeedbackButton | undefined;
    if (!button) return null;
    const label = button.accessibility_label ?? button.text?.text ?? '';
    return (
      <button
        type="button"
        className="icon-button"
        data-action-id={element.action_id}
        data-state={state}
        aria-pressed={given === name}
        aria-label={label}
        title={button.text?.text}
        onClick={() => {
          setGiven(name);
          void click(button.value);
        }}
      >
        {name === 'positive_button' ? <ThumbUp /> : <ThumbDown />}
      </button>
    );
  };
  return (
    <span className="feedback">
      {side('positive_button')}
      {side('negative_button')}
    </span>
  );
}
