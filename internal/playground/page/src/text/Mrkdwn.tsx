import { Fragment, memo, type ReactNode } from 'react';
import { nameOf, useDirectory } from '../shell/directory';
import { useGo } from '../shell/route';
import { emojiChar, withEmoji } from './emoji';
import { fullDate, slackDate } from './format';
import { safeHref } from './links';
import { parseMrkdwn, type Chunk, type Inline } from './mrkdwn';

/** A text in Slack's mrkdwn. */
export const Mrkdwn = memo(function Mrkdwn(props: { text: string }) {
  return (
    <>
      {parseMrkdwn(props.text).map((chunk, i) => (
        <ChunkView key={i} chunk={chunk} />
      ))}
    </>
  );
});

function ChunkView({ chunk }: { chunk: Chunk }): ReactNode {
  switch (chunk.t) {
    case 'pre':
      return <Pre text={chunk.text} />;
    case 'quote':
      return (
        <blockquote className="quote">
          {chunk.children.map((child, i) => (
            <ChunkView key={i} chunk={child} />
          ))}
        </blockquote>
      );
    case 'para':
      return (
        <div className="para">
          <Inlines nodes={chunk.children} />
        </div>
      );
  }
}

/** A block of code. It scrolls sideways by itself, and by the keyboard. */
export function Pre(props: { text: string; language?: string }) {
  return (
    <pre className="pre" tabIndex={0} aria-label={props.language ? `${props.language} code` : 'code'}>
      <code>{props.language === 'diff' || props.language === 'patch' ? diffLines(props.text) : props.text}</code>
    </pre>
  );
}

function diffLines(text: string): ReactNode[] {
  return text.split('\n').map((line, i) => {
    const kind = /^(\+\+\+|---|@@|diff |index )/.test(line)
      ? 'head'
      : line.startsWith('+')
        ? 'add'
        : line.startsWith('-')
          ? 'del'
          : 'same';
    return (
      <span key={i} className={`diff-${kind}`}>
        {line}
        {'\n'}
      </span>
    );
  });
}

export function Inlines({ nodes }: { nodes: Inline[] }) {
  return (
    <>
      {nodes.map((node, i) => (
        <Fragment key={i}>{inline(node)}</Fragment>
      ))}
    </>
  );
}

function inline(node: Inline): ReactNode {
  switch (node.t) {
    case 'text':
      return node.text;
    case 'break':
      return <br />;
    case 'bold':
      return (
        <strong>
          <Inlines nodes={node.children} />
        </strong>
      );
    case 'italic':
      return (
        <em>
          <Inlines nodes={node.children} />
        </em>
      );
    case 'strike':
      return (
        <s>
          <Inlines nodes={node.children} />
        </s>
      );
    case 'code':
      return <code className="code">{node.text}</code>;
    case 'emoji':
      return <Emoji name={node.name} />;
    case 'link':
      return <Link href={node.href}>{withEmoji(node.text)}</Link>;
    case 'user':
      return <UserMention id={node.id} label={node.label} />;
    case 'channel':
      return <ChannelMention id={node.id} label={node.label} />;
    case 'group':
      return <GroupMention id={node.id} label={node.label} />;
    case 'broadcast':
      return <span className="mention mention-me">@{node.range}</span>;
    case 'date':
      return <SlackDate {...node} />;
  }
}

export function Emoji({ name }: { name: string }) {
  const char = emojiChar(name);
  if (!char) return <>:{name}:</>;
  return (
    <span className="emoji" role="img" aria-label={`${name.replaceAll('_', ' ')} emoji`} title={`:${name}:`}>
      {char}
    </span>
  );
}

/** A link that opens in a window of its own, or plain text when its address is not safe. */
export function Link(props: { href: string; children: ReactNode }) {
  const href = safeHref(props.href);
  if (!href) return <>{props.children}</>;
  return (
    <a className="link" href={href} target="_blank" rel="noopener noreferrer">
      {props.children}
    </a>
  );
}

export function UserMention({ id, label }: { id: string; label?: string }) {
  const { users, me } = useDirectory();
  const user = users.get(id);
  return (
    <span className={id === me.id ? 'mention mention-me' : 'mention'} title={user?.title}>
      @{user ? nameOf(user, id) : (label?.replace(/^@/, '') ?? id)}
    </span>
  );
}

export function ChannelMention({ id, label }: { id: string; label?: string }) {
  const { channels } = useDirectory();
  const go = useGo();
  const channel = channels.get(id);
  const name = channel?.name ?? label ?? id;
  if (!channel) return <span className="mention">#{name}</span>;
  return (
    <button type="button" className="mention mention-link" onClick={() => go({ channel: id })}>
      #{name}
    </button>
  );
}

export function GroupMention({ id, label }: { id: string; label?: string }) {
  const { groups, me } = useDirectory();
  const handle = groups.get(id)?.handle ?? label?.replace(/^@/, '') ?? id;
  return (
    <span className={me.groups?.includes(id) || me.groups?.includes(handle) ? 'mention mention-me' : 'mention'}>
      @{handle}
    </span>
  );
}

export function SlackDate(props: { unix: number; format: string; href?: string; fallback?: string }) {
  const text = slackDate(props.unix, props.format, Date.now()) || props.fallback;
  const time = (
    <time dateTime={new Date(props.unix * 1000).toISOString()} title={fullDate(props.unix * 1000)}>
      {text}
    </time>
  );
  return props.href ? <Link href={props.href}>{time}</Link> : time;
}
