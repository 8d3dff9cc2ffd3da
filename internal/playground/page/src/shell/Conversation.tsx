import { useEffect, useMemo, type ReactNode } from 'react';
import { Composer, type Suggested } from '../composer/Composer';
import { MessageList } from '../message/MessageList';
import { channelTimeline, threadTimeline } from '../slack/timeline';
import type { Channel } from '../slack/types';
import { statusKey } from '../slack/workspace';
import { Avatar } from '../ui/Avatar';
import { Back, Close } from '../ui/icons';
import { useActions } from './actions';
import { ChannelIcon } from './ChannelIcon';
import { channelName, nameOf, useDirectory } from './directory';
import { useGo } from './route';
import { useStore, useWorkspace } from './useWorkspace';

/** A channel or direct message. */
export function ChannelPane(props: {
  channel: Channel;
  hidden: ReadonlySet<string>;
  tools: ReactNode;
  suggested?: Suggested;
}) {
  const { channel } = props;
  const directory = useDirectory();
  const { messages } = useWorkspace();
  const { me } = directory;
  const timeline = useMemo(
    () => channelTimeline(messages[channel.id], me.id, props.hidden),
    [messages, channel.id, me.id, props.hidden],
  );
  const name = channelName(channel, directory);
  const other = channel.is_im ? directory.users.get(channel.members?.find((id) => id !== me.id) ?? '') : undefined;
  const member = channel.members?.includes(me.id) ?? true;
  const store = useStore();
  const agent = channel.is_im && other?.bot === true;
  useEffect(() => {
    if (agent) void store.openAgent(me.id);
  }, [store, agent, me.id]);

  return (
    <section className="pane channel" aria-label={channel.is_im ? `Direct message with ${name}` : `Channel ${name}`}>
      <header className="pane-header">
        <h1>
          {channel.is_im ? <Avatar user={other} name={name} size={24} /> : <ChannelIcon channel={channel} />}
          {name}
        </h1>
        {channel.topic && (
          <span className="pane-topic" title={channel.topic}>
            {channel.topic}
          </span>
        )}
        <span className="spring" />
        {!channel.is_im && channel.members && <Members ids={channel.members} />}
        {props.tools}
      </header>
      <MessageList
        key={`${me.id}/${channel.id}`}
        place={`${me.id}/${channel.id}`}
        label={`Messages in ${name}`}
        messages={timeline}
        inThread={false}
        intro={<Intro channel={channel} name={name} />}
      />
      {member ? (
        <>
          <Prompts channel={channel.id} />
          <Composer
            channel={channel.id}
            placeholder={channel.is_im ? `Message ${name}` : `Message #${name}`}
            testId="composer"
            autoFocus
            suggested={props.suggested}
          />
          <StatusLine channel={channel.id} />
        </>
      ) : (
        <NotMember channel={channel} />
      )}
    </section>
  );
}

function NotMember({ channel }: { channel: Channel }) {
  const { join } = useActions();
  return (
    <div className="not-member">
      <p>
        You are not a member of <b>#{channel.name}</b>.
      </p>
      <button type="button" className="button primary" onClick={() => join(channel.id)}>
        Join the channel
      </button>
    </div>
  );
}

function Members({ ids }: { ids: string[] }) {
  const { users } = useDirectory();
  const names = ids.map((id) => nameOf(users.get(id), id));
  return (
    <span className="members" title={names.join(', ')} aria-label={`${ids.length} members: ${names.join(', ')}`}>
      {ids.slice(0, 3).map((id) => (
        <Avatar key={id} user={users.get(id)} name={nameOf(users.get(id), id)} size={22} />
      ))}
      <b>{ids.length}</b>
    </span>
  );
}

function Intro({ channel, name }: { channel: Channel; name: string }) {
  const { bot, users, me } = useDirectory();
  if (channel.is_im) {
    const other = users.get(channel.members?.find((id) => id !== me.id) ?? '');
    return (
      <div className="intro">
        <Avatar user={other} name={name} size={48} />
        <h2>{name}</h2>
        <p>
          {other?.id === bot?.id ? `Write to ${name} here: no mention needed.` : `This is between you and ${name}.`}
        </p>
      </div>
    );
  }
  return (
    <div className="intro">
      <span className="intro-icon">
        <ChannelIcon channel={channel} size={26} />
      </span>
      <h2>
        {channel.is_private ? '' : '#'}
        {name}
      </h2>
      <p>{channel.topic || `The beginning of #${name}.`}</p>
    </div>
  );
}

/** A thread in the side pane. */
export function ThreadPane(props: { channel: Channel; root: string; hidden: ReadonlySet<string> }) {
  const { channel, root } = props;
  const directory = useDirectory();
  const { messages, sessions } = useWorkspace();
  const title = (sessions[statusKey(channel.id, root)] ?? messages[channel.id]?.[root]?.session)?.title;
  const go = useGo();
  const { me } = directory;
  const timeline = useMemo(
    () => threadTimeline(messages[channel.id], root, me.id, props.hidden),
    [messages, channel.id, root, me.id, props.hidden],
  );
  const replies = timeline.filter((message) => message.ts !== root && !message.ephemeral_to).length;
  const name = channelName(channel, directory);
  const close = () => go({ channel: channel.id });
  const store = useStore();
  useEffect(() => void store.openThread(channel.id, root), [store, channel.id, root]);

  return (
    <section
      className="pane thread"
      aria-label={`Thread in ${name}`}
      data-testid="thread"
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <header className="pane-header">
        <button type="button" className="icon-button thread-back" aria-label="Back to the channel" onClick={close}>
          <Back />
        </button>
        <h1>
          Thread{' '}
          <small>
            {channel.is_im ? name : `#${name}`}
            {title && ` · ${title}`}
          </small>
        </h1>
        <span className="spring" />
        <button type="button" className="icon-button" aria-label="Close thread" onClick={close}>
          <Close />
        </button>
      </header>
      <MessageList
        key={`${me.id}/${channel.id}/${root}`}
        place={`${me.id}/${channel.id}/${root}`}
        label="Messages in this thread"
        messages={timeline}
        inThread
        intro={
          timeline.length === 0 ? <p className="muted thread-empty">This thread does not exist any more.</p> : undefined
        }
        afterFirst={
          replies > 0 ? (
            <div className="thread-count">
              <span>{replies === 1 ? '1 reply' : `${replies} replies`}</span>
            </div>
          ) : undefined
        }
      />
      <Prompts channel={channel.id} thread={root} />
      <Composer channel={channel.id} thread={root} placeholder="Reply…" testId="thread-composer" autoFocus />
      <StatusLine channel={channel.id} thread={root} />
    </section>
  );
}

/** What the app suggests to say. */
function Prompts({ channel, thread }: { channel: string; thread?: string }) {
  const { prompts } = useWorkspace();
  const { send } = useActions();
  const offered = prompts[statusKey(channel, thread)] ?? [];
  if (offered.length === 0) return null;
  return (
    <div className="prompts" role="group" aria-label="Suggestions">
      {offered.map((prompt) => (
        <button
          key={prompt.title}
          type="button"
          className="button small"
          title={prompt.message}
          onClick={() => void send({ channel, thread, text: prompt.message, files: [] })}
        >
          {prompt.title}
        </button>
      ))}
    </div>
  );
}

/** "Deckhand is reading auth.go…", under the composer. It keeps its line when there is none. */
function StatusLine({ channel, thread }: { channel: string; thread?: string }) {
  const { statuses, sessions, messages, connections } = useWorkspace();
  const { bot } = useDirectory();
  const { stop } = useActions();
  const session = thread ? (sessions[statusKey(channel, thread)] ?? messages[channel]?.[thread]?.session) : undefined;
  const text = statuses[statusKey(channel, thread)] ?? (thread ? messages[channel]?.[thread]?.status : undefined);
  return (
    <div className="status" role="status" aria-live="polite" data-testid={thread ? 'thread-status' : 'status'}>
      {text && (
        <>
          <span className="status-dots">
            <i />
            <i />
            <i />
          </span>
          <b>{nameOf(bot, 'The app')}</b> {text}
        </>
      )}
      {!text && connections === 0 && <>{nameOf(bot, 'The app')} is not connected: nobody will answer.</>}
      {thread && session?.status === 'processing' && (
        <button type="button" className="stop" data-testid="stop" onClick={() => stop(channel, thread)}>
          Stop
        </button>
      )}
    </div>
  );
}
