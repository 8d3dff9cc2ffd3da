import { useEffect, useRef, useState } from 'react';
import { useActions } from '../shell/actions';
import { nameOf, useDirectory, type Directory } from '../shell/directory';
import type { Message } from '../slack/types';
import { angle, unescape } from '../text/mrkdwn';

/** A message's text as it was typed: mentions by name, links by address, nothing escaped. */
export function typed(text: string, directory: Pick<Directory, 'users' | 'channels' | 'groups'>): string {
  const plain = text.replace(/<([^<>\n]+)>/g, (whole, inner: string) => {
    const node = angle(inner);
    switch (node?.t) {
      case 'user':
        return `@${directory.users.get(node.id)?.name ?? node.id}`;
      case 'channel':
        return `#${directory.channels.get(node.id)?.name ?? node.label ?? node.id}`;
      case 'group':
        return `@${directory.groups.get(node.id)?.handle ?? node.id}`;
      case 'broadcast':
        return `@${node.range}`;
      case 'link':
        return node.href;
      default:
        return whole;
    }
  });
  return unescape(plain);
}

/** One's own message, open for editing: Enter saves, Escape leaves it as it was. */
export function EditBox({ message, onDone }: { message: Message; onDone: () => void }) {
  const directory = useDirectory();
  const { edit } = useActions();
  const [text, setText] = useState(() => typed(message.text ?? '', directory));
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    box.current?.focus();
    box.current?.setSelectionRange(text.length, text.length);
    // Only when it opens.
  }, []);

  const save = async () => {
    if (text.trim() === '') return;
    if (await edit(message, text.trim())) onDone();
  };
  return (
    <div className="edit-box">
      <textarea
        ref={box}
        className="text-input"
        rows={Math.min(8, text.split('\n').length + 1)}
        aria-label={`Edit the message of ${nameOf(directory.me, '')}`}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            onDone();
          } else if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            void save();
          }
        }}
      />
      <div className="edit-buttons">
        <button type="button" className="button small" onClick={onDone}>
          Cancel
        </button>
        <button
          type="button"
          className="button small primary"
          disabled={text.trim() === ''}
          onClick={() => void save()}
        >
          Save
        </button>
      </div>
    </div>
  );
}
