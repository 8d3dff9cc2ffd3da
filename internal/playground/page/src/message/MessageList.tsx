import { Fragment, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useDirectory } from '../shell/directory';
import { rows } from '../slack/timeline';
import type { Message } from '../slack/types';
import { dayLabel, tsMillis } from '../text/format';
import { Chevron } from '../ui/icons';
import { MessageRow } from './MessageRow';
import { useStick } from './useStick';

/** So many messages are drawn at first, and more with each wish for earlier ones. */
const portion = 150;

/**
 * Messages from top to bottom, staying at the end while the reader is there.
 * Give it the place as its key: another place begins anew.
 */
export function MessageList(props: {
  place: string;
  label: string;
  messages: Message[];
  inThread: boolean;
  intro?: ReactNode;
  /** Stands below the first message, the root of a thread. */
  afterFirst?: ReactNode;
}) {
  const { messages } = props;
  const { me } = useDirectory();
  const { scroller, content, away, toEnd } = useStick(props.place);

  // One's own message is always shown, wherever one was reading.
  const last = messages[messages.length - 1];
  const seen = useRef(last?.ts);
  useEffect(() => {
    if (last?.ts !== seen.current && last?.user === me.id && !last.bot_id) toEnd();
    seen.current = last?.ts;
  }, [last, me.id, toEnd]);

  const now = Date.now();
  const [limit, setLimit] = useState(portion);
  const left = Math.max(0, messages.length - limit);
  const list = useMemo(() => {
    if (left === 0) return rows(messages);
    return rows(props.inThread ? [...messages.slice(0, 1), ...messages.slice(1 + left)] : messages.slice(left));
  }, [messages, left, props.inThread]);

  // What the reader sees stays where it is when earlier messages come in above it.
  const fromEnd = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (scroller.current && fromEnd.current !== undefined)
      scroller.current.scrollTop = scroller.current.scrollHeight - fromEnd.current;
    fromEnd.current = undefined;
  }, [limit, scroller]);
  const earlier = left > 0 && (
    <button
      type="button"
      className="text-button earlier"
      onClick={() => {
        if (scroller.current) fromEnd.current = scroller.current.scrollHeight - scroller.current.scrollTop;
        setLimit(limit + portion);
      }}
    >
      Show earlier messages ({left})
    </button>
  );
  return (
    <div className="list-frame">
      <div ref={scroller} className="list-scroll" tabIndex={0} role="region" aria-label={props.label}>
        <div ref={content} className="list" role="log" aria-live="polite" aria-relevant="additions">
          {left === 0 && props.intro}
          {!props.inThread && earlier}
          {list.map((row, i) => (
            <Fragment key={row.message.ts}>
              {row.newDay && !props.inThread && (
                <div className="day" role="separator" aria-label={dayLabel(tsMillis(row.message.ts), now)}>
                  <span>{dayLabel(tsMillis(row.message.ts), now)}</span>
                </div>
              )}
              <MessageRow
                message={row.message}
                compact={row.compact && !(props.inThread && i <= 1)}
                inThread={props.inThread}
              />
              {i === 0 && props.afterFirst}
              {i === 0 && props.inThread && earlier}
            </Fragment>
          ))}
        </div>
      </div>
      {away && (
        <button type="button" className="to-end" onClick={toEnd}>
          <Chevron size={15} /> Latest messages
        </button>
      )}
    </div>
  );
}
