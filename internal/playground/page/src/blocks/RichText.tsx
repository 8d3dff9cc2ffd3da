import { Fragment, type ReactNode } from 'react';
import { withEmoji } from '../text/emoji';
import { ChannelMention, Emoji, GroupMention, Link, Pre, SlackDate, UserMention } from '../text/Mrkdwn';

interface Style {
  bold?: boolean;
  italic?: boolean;
  strike?: boolean;
  code?: boolean;
  underline?: boolean;
  highlight?: boolean;
}

/** Any node of a rich_text block: the elements within sections and the sections themselves. */
interface Part {
  type: string;
  elements?: Part[];
  text?: string;
  style?: Style | string;
  indent?: number;
  offset?: number;
  border?: number;
  language?: string;
  name?: string;
  unicode?: string;
  url?: string;
  user_id?: string;
  channel_id?: string;
  usergroup_id?: string;
  range?: string;
  timestamp?: number;
  format?: string;
  fallback?: string;
  value?: string;
}

/** The elements of a rich_text block, or of a cell that holds rich text. */
export function RichText(props: { elements: unknown }) {
  const parts = Array.isArray(props.elements) ? (props.elements as Part[]) : [];
  return (
    <div className="rich">
      {parts.map((part, i) => (
        <RichPart key={i} part={part} />
      ))}
    </div>
  );
}

function RichPart({ part }: { part: Part }): ReactNode {
  switch (part.type) {
    case 'rich_text_section':
      return (
        <div className="para">
          <Leaves parts={part.elements} />
        </div>
      );
    case 'rich_text_quote':
      return (
        <blockquote className="quote">
          <Leaves parts={part.elements} />
        </blockquote>
      );
    case 'rich_text_preformatted':
      return (
        <Pre
          text={(part.elements ?? []).map((leaf) => leaf.text ?? leaf.url ?? '').join('')}
          language={part.language}
        />
      );
    case 'rich_text_list':
      return <RichList part={part} />;
    default:
      return <Leaf part={part} />;
  }
}

const bullets = ['disc', 'circle', 'square'];
const numbers = ['decimal', 'lower-alpha', 'lower-roman'];

function RichList({ part }: { part: Part }) {
  const ordered = part.style === 'ordered';
  const indent = part.indent ?? 0;
  const List = ordered ? 'ol' : 'ul';
  return (
    <List
      start={ordered ? (part.offset ?? 0) + 1 : undefined}
      className={part.border ? 'rich-list bordered' : 'rich-list'}
      style={{ marginLeft: indent * 24, listStyleType: (ordered ? numbers : bullets)[indent % 3] }}
    >
      {(part.elements ?? []).map((item, i) => (
        <li key={i}>
          <Leaves parts={item.elements} />
        </li>
      ))}
    </List>
  );
}

function Leaves({ parts }: { parts?: Part[] }) {
  return (
    <>
      {(parts ?? []).map((part, i) => (
        <Leaf key={i} part={part} />
      ))}
    </>
  );
}

function Leaf({ part }: { part: Part }): ReactNode {
  return styled(leaf(part), typeof part.style === 'object' ? part.style : undefined);
}

function leaf(part: Part): ReactNode {
  switch (part.type) {
    case 'text':
      return lines(part.text ?? '');
    case 'link':
      return <Link href={part.url ?? ''}>{part.text || part.url}</Link>;
    case 'emoji':
      return part.name ? <Emoji name={part.name} /> : null;
    case 'user':
      return <UserMention id={part.user_id ?? ''} />;
    case 'channel':
      return <ChannelMention id={part.channel_id ?? ''} />;
    case 'usergroup':
      return <GroupMention id={part.usergroup_id ?? ''} />;
    case 'broadcast':
      return <span className="mention mention-me">@{part.range}</span>;
    case 'date':
      return (
        <SlackDate
          unix={part.timestamp ?? 0}
          format={part.format ?? '{date}'}
          href={part.url}
          fallback={part.fallback}
        />
      );
    case 'color':
      return (
        <span className="color-chip">
          <i style={{ background: /^#[0-9a-f]{3,8}$/i.test(part.value ?? '') ? part.value : undefined }} />
          {part.value}
        </span>
      );
    case 'tag':
      return <span className="tag">{withEmoji(part.text ?? '')}</span>;
    default:
      return part.url ? <Link href={part.url}>{part.text || part.url}</Link> : lines(part.text ?? '');
  }
}

function lines(text: string): ReactNode {
  return text.split('\n').map((line, i) => (
    <Fragment key={i}>
      {i > 0 && <br />}
      {line}
    </Fragment>
  ));
}

function styled(content: ReactNode, style: Style | undefined): ReactNode {
  if (!style) return content;
  let out = content;
  if (style.code) out = <code className="code">{out}</code>;
  if (style.bold) out = <strong>{out}</strong>;
  if (style.italic) out = <em>{out}</em>;
  if (style.strike) out = <s>{out}</s>;
  if (style.underline) out = <u>{out}</u>;
  if (style.highlight) out = <mark>{out}</mark>;
  return out;
}
