import { isFilled } from '../elements/values';
import { readState, type RawState } from './state';
import type { ElementValue, Message, Notification, StateValues, View, WorkspaceState } from './types';

/** An answer that was not 2xx. The message is the server's own sentence where it gave one. */
export class ControlError extends Error {}

async function call<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/_control/${path}`, {
      method,
      headers: body === undefined ? undefined : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(20_000),
    });
  } catch {
    throw new ControlError('The playground does not answer. Is it still running?');
  }
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === '' ? undefined : JSON.parse(text);
  } catch {
    answer = undefined;
  }
  if (!response.ok) {
    const said = (answer as { error?: string; message?: string } | undefined) ?? {};
    throw new ControlError(said.message ?? said.error ?? `The playground answered ${response.status} to ${path}.`);
  }
  return answer as T;
}

const query = (params: Record<string, string | undefined>) =>
  new URLSearchParams(
    Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined),
  ).toString();

export interface NewFile {
  name: string;
  mimetype: string;
  content_base64: string;
}

export interface Acted {
  acked?: boolean;
  views?: View[] | null;
  ephemerals?: Message[] | null;
}

export interface Submitted {
  view?: View | null;
  errors?: Record<string, string> | null;
  cleared?: boolean;
  acked?: boolean;
}

/** What a person sets in their own Slack. What is not given stays. */
export interface Settings {
  tz?: string;
  locale?: string;
  /** 0 ends a pause. */
  snooze_minutes?: number;
  /** HH:MM in the person's zone; both empty for none. */
  dnd_from?: string;
  dnd_to?: string;
}

/** What a person did with an element: where it is, and the value that it has now. */
export interface Action {
  user: string;
  channel?: string;
  message_ts?: string;
  view_id?: string;
  block_id?: string;
  action_id: string;
  value?: string;
  selected?: ElementValue;
}

/** Values as they are sent: an empty one is null. */
function wireValues(values: StateValues): Record<string, Record<string, ElementValue | null>> {
  return Object.fromEntries(
    Object.entries(values).map(([block, actions]) => [
      block,
      Object.fromEntries(Object.entries(actions).map(([action, value]) => [action, isFilled(value) ? value : null])),
    ]),
  );
}

export const api = {
  state: async (): Promise<WorkspaceState> => readState(await call<RawState>('GET', 'state')),
  messages: async (channel: string, thread_ts?: string) => {
    const answer = await call<{ messages: Message[] | null }>('GET', `messages?${query({ channel, thread_ts })}`);
    return answer.messages ?? [];
  },
  views: async (user: string) => {
    const answer = await call<{ views: View[] | null }>('GET', `views?${query({ user })}`);
    return answer.views ?? [];
  },
  home: async (user: string) => {
    const answer = await call<{ view: View | null }>('GET', `home?${query({ user })}`);
    return answer.view;
  },
  post: (message: { user: string; channel: string; text: string; thread_ts?: string; files?: NewFile[] }) =>
    call<{ ts: string }>('POST', 'messages', message),
  edit: (message: { user: string; channel: string; ts: string; text: string }) =>
    call<unknown>('POST', 'messages/edit', message),
  remove: (message: { user: string; channel: string; ts: string }) => call<unknown>('POST', 'messages/delete', message),
  notifications: async () =>
    (await call<{ notifications: Notification[] | null }>('GET', 'notifications')).notifications ?? [],
  setPerson: (user: string, settings: Settings) => call<unknown>('POST', 'people', { user, ...settings }),
  join: (member: { user: string; channel: string }) => call<unknown>('POST', 'members', member),
  /** The Stop button of an agent's session. */
  stop: (thread: { user: string; channel: string; thread_ts: string }) => call<unknown>('POST', 'stop', thread),
  /** What a person has entered in a modal so far: the app sees it with the next action there. */
  enter: (user: string, view_id: string, values: StateValues) =>
    call<unknown>('POST', 'state_values', { user, view_id, values: wireValues(values) }),
  act: (action: Action) => call<Acted>('POST', 'actions', action),
  submit: (id: string, user: string, values: StateValues) =>
    call<Submitted>('POST', `views/${encodeURIComponent(id)}/submit`, { user, values: wireValues(values) }),
  close: (id: string, user: string, all: boolean) =>
    call<unknown>('POST', `views/${encodeURIComponent(id)}/close`, { user, all }),
  react: (reaction: { user: string; channel: string; ts: string; name: string; remove?: boolean }) =>
    call<unknown>('POST', 'reactions', reaction),
  /** Opens the direct messages with the app, which it hears of. */
  openAgent: (user: string) => call<unknown>('POST', 'agent', { user }),
  shortcut: (used: { user: string; callback_id: string; channel?: string; message_ts?: string }) =>
    call<Acted>('POST', 'shortcut', used),
  slash: (command: { user: string; channel: string; text: string; thread_ts?: string }) =>
    call<Acted>('POST', 'slash', command),
};
