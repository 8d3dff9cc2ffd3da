const locale = 'en-US';

/** Milliseconds since 1970 of a Slack ts ("1712345678.000100"). */
export function tsMillis(ts: string): number {
  return Math.floor(Number(ts) * 1000);
}

export function clock(millis: number): string {
  return new Date(millis).toLocaleTimeString(locale, { hour: 'numeric', minute: '2-digit' });
}

export function fullDate(millis: number): string {
  return new Date(millis).toLocaleString(locale, { dateStyle: 'full', timeStyle: 'medium' });
}

export function sameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

const day = 24 * 60 * 60 * 1000;

function relativeDay(millis: number, now: number): string | undefined {
  if (sameDay(millis, now)) return 'Today';
  if (sameDay(millis, now - day)) return 'Yesterday';
  if (sameDay(millis, now + day)) return 'Tomorrow';
  return undefined;
}

/** The words on the line between two days. */
export function dayLabel(millis: number, now: number): string {
  const date = new Date(millis);
  const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : 'numeric';
  return (
    relativeDay(millis, now) ??
    date.toLocaleDateString(locale, { weekday: 'long', month: 'long', day: 'numeric', year })
  );
}

/** "just now", "3 minutes ago", "Yesterday at 4:05 PM": for a thread's last reply. */
export function ago(millis: number, now: number): string {
  const minutes = Math.floor((now - millis) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return minutes === 1 ? '1 minute ago' : `${minutes} minutes ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 12) return hours === 1 ? '1 hour ago' : `${hours} hours ago`;
  return `${dayLabel(millis, now)} at ${clock(millis)}`;
}

/** Slack's <!date^unix^format>: fills in the format's {tokens}. Tokens that Slack does not have stay as they are. */
export function slackDate(unix: number, format: string, now: number): string {
  const millis = unix * 1000;
  const date = new Date(millis);
  const on = (options: Intl.DateTimeFormatOptions) => date.toLocaleDateString(locale, options);
  const long = () => on({ weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' });
  const medium = () => on({ month: 'long', day: 'numeric', year: 'numeric' });
  const short = () => on({ month: 'short', day: 'numeric', year: 'numeric' });
  const tokens: Record<string, () => string> = {
    date_num: () =>
      [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((n) => String(n).padStart(2, '0')).join('-'),
    date_slash: () => on({ month: '2-digit', day: '2-digit', year: 'numeric' }),
    date_long: long,
    date_long_pretty: () => relativeDay(millis, now) ?? long(),
    date_long_full: long,
    date: medium,
    date_pretty: () => relativeDay(millis, now) ?? medium(),
    date_short: short,
    date_short_pretty: () => relativeDay(millis, now) ?? short(),
    day_divider_pretty: () => dayLabel(millis, now),
    time: () => clock(millis),
    time_secs: () => date.toLocaleTimeString(locale, { hour: 'numeric', minute: '2-digit', second: '2-digit' }),
    ago: () => ago(millis, now),
  };
  return format.replace(/\{([a-z_]+)\}/g, (whole, name: string) => tokens[name]?.() ?? whole);
}

/** "12.4 KB" */
export function fileSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ['KB', 'MB', 'GB'];
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}
