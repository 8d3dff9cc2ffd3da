import { useRef, useState } from 'react';
import { useActions } from '../shell/actions';
import { nameOf, useDirectory } from '../shell/directory';
import type { Message } from '../slack/types';
import { emojiChar, searchEmoji } from '../text/emoji';
import { Smile } from '../ui/icons';
import { Popover } from '../ui/Popover';

/** The reactions under a message; a click adds or takes back one's own. */
export function Reactions({ message }: { message: Message }) {
  const directory = useDirectory();
  const { react } = useActions();
  const reactions = message.reactions ?? [];
  if (reactions.length === 0) return null;
  return (
    <div className="reactions">
      {reactions.map((reaction) => {
        const users = reaction.users ?? [];
        const mine = users.includes(directory.me.id);
        const names = users
          .map((id) => (id === directory.me.id ? 'you' : nameOf(directory.users.get(id), id)))
          .join(', ');
        return (
          <button
            key={reaction.name}
            type="button"
            className="reaction"
            data-reaction={reaction.name}
            aria-pressed={mine}
            title={`${names} reacted with :${reaction.name}:`}
            onClick={() => react(message, reaction.name, mine)}
          >
            <span className="emoji" role="img" aria-label={`${reaction.name.replaceAll('_', ' ')} reaction`}>
              {emojiChar(reaction.name) ?? `:${reaction.name}:`}
            </span>{' '}
            {reaction.count}
            <span className="visually-hidden"> from {names}</span>
          </button>
        );
      })}
      <AddReaction message={message} pill />
    </div>
  );
}

const common = [
  '+1',
  'eyes',
  'white_check_mark',
  'tada',
  'heart',
  'pray',
  'rocket',
  'thinking_face',
  'joy',
  'raised_hands',
  'x',
  'question',
];

export function AddReaction({ message, pill }: { message: Message; pill?: boolean }) {
  const directory = useDirectory();
  const { react } = useActions();
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const pick = (name: string) => {
    setOpen(false);
    const mine =
      message.reactions?.some((reaction) => reaction.name === name && reaction.users?.includes(directory.me.id)) ??
      false;
    react(message, name, mine);
  };
  return (
    <>
      <button
        ref={anchor}
        type="button"
        className={pill ? 'reaction add' : 'icon-button'}
        aria-label="Add reaction"
        title="Add reaction"
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Smile size={pill ? 15 : 17} />
      </button>
      {open && (
        <Popover anchor={anchor} align="end" onClose={() => setOpen(false)}>
          <EmojiGrid onPick={pick} />
        </Popover>
      )}
    </>
  );
}

/** A small board of emoji with a search. */
export function EmojiGrid({ onPick }: { onPick: (name: string) => void }) {
  const [query, setQuery] = useState('');
  const found =
    query.trim() === ''
      ? common.map((name) => ({ name, char: emojiChar(name) ?? name }))
      : searchEmoji(query.trim().replace(/:/g, '').replaceAll(' ', '_'), 36);
  return (
    <div className="emoji-board" role="dialog" aria-label="Emoji">
      <input
        className="text-input"
        autoFocus
        placeholder="Search emoji"
        aria-label="Search emoji"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        onKeyDown={(event) => event.key === 'Enter' && found[0] && onPick(found[0].name)}
      />
      <div className="emoji-grid">
        {found.map(({ name, char }) => (
          <button
            key={name}
            type="button"
            className="emoji-cell"
            title={`:${name}:`}
            aria-label={name.replaceAll('_', ' ')}
            onClick={() => onPick(name)}
          >
            {char}
          </button>
        ))}
        {found.length === 0 && <p className="muted">No emoji by that name.</p>}
      </div>
    </div>
  );
}
