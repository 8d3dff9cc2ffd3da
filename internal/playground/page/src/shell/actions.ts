import { createContext, useContext, useMemo } from 'react';
import type { Action, NewFile } from '../slack/api';
import { api } from '../slack/api';
import { mentions } from '../slack/timeline';
import type { Element, ElementValue, Message, StateValues } from '../slack/types';
import { isFilled } from '../elements/values';
import type { Directory } from './directory';
import type { Workspace } from '../slack/workspace';

/** What the person at the page can do. Whatever fails is shown to them; nothing here throws. */
export interface Actions {
  act: (
    where: { channel: string; message_ts: string } | { view_id: string; entered: StateValues },
    block: string,
    element: Element,
    value: ElementValue,
  ) => Promise<boolean>;
  send: (message: { channel: string; thread?: string; text: string; files: File[] }) => Promise<boolean>;
  edit: (message: Message, text: string) => Promise<boolean>;
  remove: (message: Message) => void;
  react: (message: Message, name: string, remove: boolean) => void;
  join: (channel: string) => void;
  stop: (channel: string, thread: string) => void;
  shortcut: (callback: string, message?: Message) => void;
  hide: (ts: string) => void;
  copy: (text: string) => void;
}

const none: Actions = {
  act: () => Promise.resolve(false),
  send: () => Promise.resolve(false),
  edit: () => Promise.resolve(false),
  remove: () => undefined,
  react: () => undefined,
  join: () => undefined,
  stop: () => undefined,
  shortcut: () => undefined,
  hide: () => undefined,
  copy: () => undefined,
};

export const ActionsContext = createContext<Actions>(none);
export const useActions = () => useContext(ActionsContext);

async function encoded(file: File): Promise<NewFile> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = '';
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return { name: file.name, mimetype: file.type || 'application/octet-stream', content_base64: btoa(binary) };
}

/** Buttons and menus are told apart by their value; elements that hold one send it whole, and nothing when it was cleared. */
function whatWasDone(value: ElementValue): Pick<Action, 'value' | 'selected'> {
  if (value.type === 'overflow') return { value: value.selected_option?.value };
  if (/button/.test(value.type) && value.type !== 'radio_buttons') return { value: value.value ?? undefined };
  return isFilled(value) ? { selected: value } : {};
}

export function useMakeActions(
  store: Workspace,
  directory: Directory | undefined,
  hide: (ts: string) => void,
): Actions {
  return useMemo(() => {
    if (!directory) return none;
    const user = directory.me.id;
    return {
      act: async (where, block, element, value) => {
        const answer = await store.attempt(async () => {
          if ('view_id' in where && Object.keys(where.entered).length > 0)
            await api.enter(user, where.view_id, where.entered);
          const place = 'view_id' in where ? { view_id: where.view_id } : where;
          return api.act({
            user,
            ...place,
            block_id: block,
            action_id: element.action_id ?? '',
            ...whatWasDone(value),
          });
        });
        return answer !== false && answer.acked !== false;
      },
      send: async ({ channel, thread, text, files }) => {
        if (text.startsWith('/') && files.length === 0)
          return (await store.attempt(() => api.slash({ user, channel, text, thread_ts: thread }))) !== false;
        const post = async () =>
          api.post({
            user,
            channel,
            text,
            thread_ts: thread,
            files: files.length > 0 ? await Promise.all(files.map(encoded)) : undefined,
          });
        return (await store.attempt(post)) !== false;
      },
      edit: async (message, text) =>
        (await store.attempt(() => api.edit({ user, channel: message.channel, ts: message.ts, text }))) !== false,
      remove: (message) => void store.attempt(() => api.remove({ user, channel: message.channel, ts: message.ts })),
      join: (channel) => void store.attempt(() => api.join({ user, channel })),
      stop: (channel, thread) => void store.attempt(() => api.stop({ user, channel, thread_ts: thread })),
      shortcut: (callback_id, message) =>
        void store.attempt(() =>
          api.shortcut({ user, callback_id, channel: message?.channel, message_ts: message?.ts }),
        ),
      react: (message, name, remove) => {
        void store.attempt(() =>
          api.react({ user, channel: message.channel, ts: message.ts, name, remove: remove || undefined }),
        );
      },
      hide,
      copy: (text) => {
        navigator.clipboard.writeText(text).then(
          () => store.toast('Link copied.'),
          () => store.toast('The browser did not allow copying.', 'warning'),
        );
      },
    };
  }, [store, directory, hide]);
}

/** What a person has not read: everything after the last time they were in the channel. */
export function unread(
  messages: Message[],
  since: string | undefined,
  directory: Directory,
): { any: boolean; mentions: number } {
  const fresh = messages.filter(
    (message) => message.user !== directory.me.id && (since === undefined || Number(message.ts) > Number(since)),
  );
  return { any: fresh.length > 0, mentions: fresh.filter((message) => mentions(message, directory.me)).length };
}
