import { sameDay, tsMillis } from '../text/format';
import type { Message, User } from './types';

/** Timestamps by their time; those of different length differ in seconds. */
export function compareTs(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

export type Messages = Readonly<Record<string, Message>>;

/** An ephemeral message is seen by one person; everything else by everybody who sees the channel. */
export function visibleTo(message: Message, me: string): boolean {
  return !message.ephemeral_to || message.ephemeral_to === me;
}

export function isReply(message: Message): boolean {
  return message.thread_ts !== undefined && message.thread_ts !== '' && message.thread_ts !== message.ts;
}

const byTime = (a: Message, b: Message) => compareTs(a.ts, b.ts);

/** What stands in the channel itself: everything but replies, and replies that were also sent to the channel. */
export function channelTimeline(messages: Messages | undefined, me: string, hidden: ReadonlySet<string>): Message[] {
  return Object.values(messages ?? {})
    .filter(
      (m) => (!isReply(m) || m.broadcast || m.subtype === 'thread_broadcast') && visibleTo(m, me) && !hidden.has(m.ts),
    )
    .sort(byTime);
}

/** A thread: its root first, then its replies. */
export function threadTimeline(
  messages: Messages | undefined,
  root: string,
  me: string,
  hidden: ReadonlySet<string>,
): Message[] {
  return Object.values(messages ?? {})
    .filter((m) => (m.ts === root || m.thread_ts === root) && visibleTo(m, me) && !hidden.has(m.ts))
    .sort(byTime);
}

export interface Row {
  message: Message;
  /** The first of a day: a divider stands above it. */
  newDay: boolean;
  /** Follows closely on the same author's message: drawn without avatar and name. */
  compact: boolean;
}

const groupingTime = 5 * 60 * 1000;

export function rows(timeline: Message[]): Row[] {
  return timeline.map((message, i) => {
    const previous = timeline[i - 1];
    const at = tsMillis(message.ts);
    const newDay = !previous || !sameDay(at, tsMillis(previous.ts));
    const compact =
      !newDay &&
      authorKey(message) === authorKey(previous) &&
      at - tsMillis(previous.ts) < groupingTime &&
      !message.ephemeral_to &&
      !previous.ephemeral_to &&
      !(previous.reply_count ?? 0) &&
      !message.broadcast;
    return { message, newDay, compact };
  });
}

function authorKey(message: Message): string {
  return `${message.user ?? ''}/${message.bot_id ?? ''}/${message.username ?? ''}`;
}

/** Whether a text or its blocks mention this person. */
export function mentions(message: Message, user: User): boolean {
  const source = (message.text ?? '') + (message.blocks ? JSON.stringify(message.blocks) : '');
  return (
    source.includes(`<@${user.id}>`) ||
    source.includes(`"user_id":"${user.id}"`) ||
    /<!(here|channel|everyone)>/.test(source)
  );
}
