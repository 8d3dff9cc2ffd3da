import { useState } from 'react';
import { Close } from '../ui/icons';
import { nameOf, useDirectory } from './directory';

const key = 'deckhand.banner';

/** Says what this is, and what to try. */
export function Banner(props: { onTry: () => void; target: string }) {
  const { bot } = useDirectory();
  const [hidden, setHidden] = useState(() => sessionStorage.getItem(key) === 'hidden');
  if (hidden) return null;
  return (
    <aside className="banner" aria-label="About this page">
      <p>
        <b>This is a playground:</b> a Slack workspace on your own machine. Nothing leaves it.{' '}
        <span className="banner-try">
          Try: in {props.target},{' '}
          <button type="button" className="text-button" onClick={props.onTry}>
            “@{bot?.name ?? nameOf(bot, 'deckhand')} fix the failing test”
          </button>
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
