import { memo, useCallback, useMemo, useState } from 'react';
import { Blocks } from '../blocks/Blocks';
import { SurfaceContext, type Surface } from '../elements/surface';
import { nameOf, useDirectory } from '../shell/directory';
import { formatRoute, useGo } from '../shell/route';
import { useActions } from '../shell/actions';
import { isReply } from '../slack/timeline';
import type { Confirm, ElementValue, Message, StateValues } from '../slack/types';
import { ago, clock, fullDate, tsMillis } from '../text/format';
import { Mrkdwn } from '../text/Mrkdwn';
import { Avatar } from '../ui/Avatar';
import { useConfirm } from '../ui/Confirm';
import { Bolt, Close, Eye, LinkIcon, Pencil, Reply, Trash } from '../ui/icons';
import { Attachments } from './Attachments';
import { EditBox } from './EditBox';
import { Files } from './Files';
import { AddReaction, Reactions } from './Reactions';

const isLive = (message: Message) => message.stream?.state === 'live';

/** One message: who, when, what, and what people did with it. */
export const MessageRow = memo(function MessageRow(props: { message: Message; compact: boolean; inThread: boolean }) {
  const { message, compact, inThread } = props;
  const directory = useDirectory();
  const user = directory.users.get(message.user ?? '');
  const name = message.username || nameOf(user, message.user ?? 'Somebody');
  const at = tsMillis(message.ts);
  const [editing, setEditing] = useState(false);
  const live = isLive(message);
  const deleted = message.subtype === 'tombstone';

  const classes = [
    'message',
    compact && 'compact',
    message.ephemeral_to && 'ephemeral',
    live && 'live',
    deleted && 'deleted',
  ];
  return (
    <article
      className={classes.filter(Boolean).join(' ')}
      data-ts={message.ts}
      data-user={message.user}
      data-stream={message.stream?.state}
      aria-label={`${name}, ${fullDate(at)}`}
    >
      {message.ephemeral_to && (
        <div className="message-note">
          <Eye size={14} /> Only visible to you
        </div>
      )}
      {message.broadcast && !inThread && <ThreadNote message={message} />}
      <div className="message-side">
        {compact ? (
          <time className="message-when" dateTime={new Date(at).toISOString()} title={fullDate(at)}>
            {clock(at).replace(/ [AP]M$/, '')}
          </time>
        ) : (
          <Avatar
            user={message.username && message.username !== user?.real_name ? undefined : user}
            name={name}
            size={36}
          />
        )}
      </div>
      <div className="message-main">
        {!compact && (
          <div className="message-head">
            <span className="message-author">{name}</span>
            {(message.bot_id || user?.bot) && <span className="badge">APP</span>}
            {user?.guest && <span className="badge quiet">Guest</span>}
            {user?.stranger && <span className="badge quiet">External</span>}
            <time className="message-time" dateTime={new Date(at).toISOString()} title={fullDate(at)}>
              {clock(at)}
            </time>
          </div>
        )}
        {editing ? (
          <EditBox message={message} onDone={() => setEditing(false)} />
        ) : (
          <Body message={message} live={live} />
        )}
        {message.files && message.files.length > 0 && <Files files={message.files} />}
        <Reactions message={message} />
        {!inThread && <ThreadLink message={message} />}
      </div>
      {!deleted && !editing && <Toolbar message={message} inThread={inThread} onEdit={() => setEditing(true)} />}
    </article>
  );
});

function Body({ message, live }: { message: Message; live: boolean }) {
  const surface = useMessageSurface(message);
  // What a person typed is read as mrkdwn; its blocks say the same without the formatting.
  const blocks = message.bot_id ? (message.blocks ?? []) : [];
  const edited = message.edited !== undefined && message.edited !== null && message.edited !== false && !live;
  return (
    <SurfaceContext value={surface}>
      <div className="message-body">
        {blocks.length > 0 ? <Blocks blocks={blocks} /> : message.text ? <Mrkdwn text={message.text} /> : null}
        {message.attachments && message.attachments.length > 0 && <Attachments attachments={message.attachments} />}
        {live && (
          <span className="typing" role="img" aria-label="still writing">
            <i />
            <i />
            <i />
          </span>
        )}
        {edited && (
          <span
            className="edited"
            title={message.edits ? `Edited ${message.edits} time${message.edits === 1 ? '' : 's'}` : undefined}
          >
            (edited)
          </span>
        )}
      </div>
    </SurfaceContext>
  );
}

/** Clicks in a message go to the app with the message's place; values that people set are theirs alone. */
function useMessageSurface(message: Message): Surface {
  const { act } = useActions();
  const { channel, ts } = message;
  const [values, setValues] = useState<StateValues>({});
  const setValue = useCallback((block: string, action: string, value: ElementValue) => {
    setValues((before) => ({ ...before, [block]: { ...before[block], [action]: value } }));
  }, []);
  return useMemo<Surface>(
    () => ({
      kind: 'message',
      channel,
      values,
      setValue,
      act: (block, element, value) => act({ channel, message_ts: ts }, block, element, value),
    }),
    [channel, ts, values, setValue, act],
  );
}

function ThreadLink({ message }: { message: Message }) {
  const directory = useDirectory();
  const go = useGo();
  const count = message.reply_count ?? 0;
  if (count === 0) return null;
  return (
    <button type="button" className="thread-link" onClick={() => go({ channel: message.channel, thread: message.ts })}>
      <span className="thread-faces">
        {(message.reply_users ?? []).slice(0, 4).map((id) => (
          <Avatar key={id} user={directory.users.get(id)} name={nameOf(directory.users.get(id), id)} size={22} />
        ))}
      </span>
      <b>{count === 1 ? '1 reply' : `${count} replies`}</b>
      {message.latest_reply && <span>Last reply {ago(tsMillis(message.latest_reply), Date.now())}</span>}
    </button>
  );
}

function ThreadNote({ message }: { message: Message }) {
  const go = useGo();
  return (
    <div className="message-note">
      <button
        type="button"
        className="text-button"
        onClick={() => go({ channel: message.channel, thread: message.thread_ts })}
      >
        replied to a thread
      </button>
    </div>
  );
}

const deletion: Confirm = {
  title: { type: 'plain_text', text: 'Delete this message?' },
  text: { type: 'mrkdwn', text: 'It is taken out of the channel, and the app is told.' },
  confirm: { type: 'plain_text', text: 'Delete' },
  style: 'danger',
};

/** What can be done with a message: shown when the pointer or the focus is on it. */
function Toolbar({ message, inThread, onEdit }: { message: Message; inThread: boolean; onEdit: () => void }) {
  const go = useGo();
  const { me, workspace } = useDirectory();
  const { hide, copy, remove, shortcut } = useActions();
  const shortcuts = (workspace.shortcuts ?? []).filter((offered) => offered.type === 'message' && !me.stranger);
  const confirm = useConfirm();
  const thread = isReply(message) ? message.thread_ts : message.ts;
  if (message.ephemeral_to) {
    return (
      <div className="toolbar" role="toolbar" aria-label="Message actions">
        <button
          type="button"
          className="icon-button"
          aria-label="Dismiss message"
          title="Dismiss message"
          onClick={() => hide(message.ts)}
        >
          <Close size={16} />
        </button>
      </div>
    );
  }
  return (
    <div className="toolbar" role="toolbar" aria-label="Message actions">
      <AddReaction message={message} />
      {!inThread && (
        <button
          type="button"
          className="icon-button"
          aria-label="Reply in thread"
          title="Reply in thread"
          onClick={() => go({ channel: message.channel, thread })}
        >
          <Reply size={17} />
        </button>
      )}
      <button
        type="button"
        className="icon-button"
        aria-label="Copy link"
        title="Copy link"
        onClick={() =>
          copy(
            location.origin +
              location.pathname +
              formatRoute({
                channel: message.channel,
                thread: inThread || (message.reply_count ?? 0) > 0 ? thread : undefined,
              }),
          )
        }
      >
        <LinkIcon size={17} />
      </button>
      {shortcuts.map((offered) => (
        <button
          key={offered.callback_id}
          type="button"
          className="icon-button"
          aria-label={offered.name}
          title={offered.name}
          aria-haspopup="dialog"
          onClick={() => shortcut(offered.callback_id, message)}
        >
          <Bolt size={17} />
        </button>
      ))}
      {message.user === me.id && !message.bot_id && (
        <>
          <button type="button" className="icon-button" aria-label="Edit message" title="Edit message" onClick={onEdit}>
            <Pencil size={17} />
          </button>
          <button
            type="button"
            className="icon-button"
            aria-label="Delete message"
            title="Delete message"
            onClick={() => void confirm(deletion).then((yes) => yes && remove(message))}
          >
            <Trash size={17} />
          </button>
        </>
      )}
    </div>
  );
}
