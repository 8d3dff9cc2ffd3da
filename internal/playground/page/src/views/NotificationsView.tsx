import { useState, type ReactNode } from 'react';
import { channelName, nameOf, useDirectory } from '../shell/directory';
import { formatRoute } from '../shell/route';
import { useStore, useWorkspace } from '../shell/useWorkspace';
import { api, type Settings } from '../slack/api';
import type { Notification, User } from '../slack/types';
import { dayLabel, fullDate } from '../text/format';
import { Avatar } from '../ui/Avatar';
import { Moon } from '../ui/icons';

const reasons: Record<Notification['reason'], string> = {
  direct: 'direct message',
  mention: 'mentioned',
  thread: 'reply in a thread they follow',
};

/** What people's devices would have shown, newest first, as it happens; and when they keep quiet. */
export function NotificationsView() {
  const { me } = useDirectory();
  const { notifications } = useWorkspace();
  const [all, setAll] = useState(false);
  const shown = notifications.filter((one) => all || one.user === me.id).toReversed();
  const name = nameOf(me, me.id);
  return (
    <section className="home notices" aria-label="Notifications" tabIndex={0}>
      <div className="home-inner">
        <p className="muted">
          What {all ? 'everybody’s' : `${name}’s`} phone and desktop would have shown, by Slack’s default preferences:
          new posts that call somebody. Edits, reactions and messages that only one person sees notify nobody.
        </p>
        <PersonSettings key={me.id} me={me} />
        <div className="notices-bar">
          <h2>{shown.length === 1 ? '1 notification' : `${shown.length} notifications`}</h2>
          <span className="spring" />
          <span role="group" aria-label="Whose notifications" className="notices-whose">
            <button type="button" className="button small" aria-pressed={!all} onClick={() => setAll(false)}>
              {name}
            </button>
            <button
              type="button"
              className="button small"
              aria-pressed={all}
              data-testid="notices-all"
              onClick={() => setAll(true)}
            >
              Everybody
            </button>
          </span>
        </div>
        {/* Not a list that is read aloud as it grows: what it tells of is read in its own place. */}
        <ol className="notices-list" data-testid="notices">
          {shown.map((one) => (
            <Notice key={one.seq} notice={one} toWhom={all} />
          ))}
        </ol>
        {shown.length === 0 && <p className="muted">Nothing so far.</p>}
      </div>
    </section>
  );
}

function Notice({ notice, toWhom }: { notice: Notification; toWhom: boolean }) {
  const directory = useDirectory();
  const { users, channels, me } = directory;
  const from = users.get(notice.from);
  const channel = channels.get(notice.channel);
  const to = users.get(notice.user);
  const place = channel?.is_im ? 'direct message' : `#${channel ? channelName(channel, directory) : notice.channel}`;
  const at = Date.parse(notice.time);
  const zone = to?.tz ?? me.tz;
  return (
    <li>
      <a
        className="notice"
        data-held={notice.held}
        data-notice={notice.ts}
        href={formatRoute({ channel: notice.channel, thread: notice.thread_ts, user: notice.user })}
      >
        <Avatar user={from} name={nameOf(from, notice.from)} size={32} />
        <span className="notice-main">
          <span className="notice-head">
            <b>{nameOf(from, notice.from)}</b> <span>{place}</span>{' '}
            <time dateTime={notice.time} title={fullDate(at)}>
              {sameZoneDay(at)}
              {new Date(at).toLocaleTimeString(to?.locale ?? 'en-US', {
                hour: 'numeric',
                minute: '2-digit',
                timeZone: zone,
              })}
            </time>
          </span>
          <span className="notice-text">{notice.text}</span>
          <span className="notice-why">
            {toWhom && (
              <>
                to <b>{nameOf(to, notice.user)}</b>:{' '}
              </>
            )}
            {reasons[notice.reason]}
            {notice.held && (
              <span className="notice-held">
                <Moon size={13} /> Held back: do not disturb
              </span>
            )}
          </span>
        </span>
      </a>
    </li>
  );
}

function sameZoneDay(at: number): string {
  const label = dayLabel(at, Date.now());
  return label === 'Today' ? '' : `${label}, `;
}

const zones = [
  'Europe/Amsterdam',
  'Europe/London',
  'America/New_York',
  'America/Los_Angeles',
  'Asia/Kolkata',
  'Asia/Tokyo',
];
const locales: [string, string][] = [
  ['en-US', 'English (US)'],
  ['en-GB', 'English (UK)'],
  ['de-DE', 'Deutsch'],
  ['fr-FR', 'Français'],
  ['ja-JP', '日本語'],
];

/** What a person sets in their own Slack: language, time zone and when their devices keep quiet. */
function PersonSettings({ me }: { me: User }) {
  const store = useStore();
  const set = (change: Settings) => void store.attempt(() => api.setPerson(me.id, change));
  const dnd = me.dnd;
  const paused = (dnd?.snoozed_until ?? 0) * 1000 > Date.now();
  const nightly = (dnd?.from ?? '') !== '';
  return (
    <fieldset className="notices-settings">
      <legend>{nameOf(me, me.id)}’s settings</legend>
      <Field label="Time zone">
        <select className="text-input" value={me.tz} onChange={(event) => set({ tz: event.target.value })}>
          {[...new Set([...zones, me.tz ?? ''])].filter(Boolean).map((zone) => (
            <option key={zone}>{zone}</option>
          ))}
        </select>
      </Field>
      <Field label="Language">
        <select className="text-input" value={me.locale} onChange={(event) => set({ locale: event.target.value })}>
          {[
            ...locales,
            ...(locales.some(([id]) => id === me.locale) || !me.locale ? [] : [[me.locale, me.locale]]),
          ].map(([id, label]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Do not disturb">
        <select
          className="text-input"
          data-testid="dnd"
          value={paused ? 'paused' : nightly ? 'nightly' : 'off'}
          onChange={(event) => {
            const to = event.target.value;
            set({
              snooze_minutes: to === 'paused' ? 60 : 0,
              dnd_from: to === 'nightly' ? '22:00' : '',
              dnd_to: to === 'nightly' ? '07:00' : '',
            });
          }}
        >
          <option value="off">Off</option>
          <option value="paused">Paused for an hour</option>
          <option value="nightly">
            {nightly ? `Every day, ${dnd?.from} to ${dnd?.to}` : 'Every day, 22:00 to 07:00'}
          </option>
        </select>
      </Field>
    </fieldset>
  );
}

function Field(props: { label: string; children: ReactNode }) {
  return (
    <label className="notices-field">
      <span>{props.label}</span>
      {props.children}
    </label>
  );
}
