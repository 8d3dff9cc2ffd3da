import { useState } from 'react';
import { Close } from '../ui/icons';
import { nameOf, useDirectory } from './directory';

const key = 'deckhand.banner';

/** What somebody who is new may say first. The scripted model knows all of it. */
const tries = ['fix the failing test', 'explain this project', 'plan the fix first'];

/** Says what this is, and offers what to try. */
export function Banner(props: { onTry: (text: string) => void; target: string }) {
  const { bot } = useDirectory();
  const name = bot?.name ?? nameOf(bot, 'deckhand');
  const [hidden, setHidden] = useState(() => sessionStorage.getItem(key) === 'hidden');
  if (hidden) return null;
  return (
    <aside className="banner" aria-label="About this page">
      <p>
        <b>This is a playground:</b> a Slack workspace on your own machine. Nothing leaves it.{' '}
        <span className="banner-try">
          Try in {props.target}:
          {tries.map((text) => (
            <button key={text} type="button" className="button small" onClick={() => props.onTry(`@${name} ${text}`)}>
              {text}
            </button>
          ))}
        </span>
      </p>
      <button
        type="button"
        className="icon-button"
        aria-label="Hide this note"
        onClick={() => {
          sessionStorage.setItem(key, 'hidden');
          setHidden(true);
        }}
      >
        <Close size={16} />
      </button>
    </aside>
  );
}
