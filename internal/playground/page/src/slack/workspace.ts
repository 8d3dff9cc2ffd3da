import { api, ControlError } from './api';
import { listen, type Link } from './events';
import { compareTs, type Messages } from './timeline';
import type { AgentSession, ControlEvent, Message, Notification, Prompt, View, WorkspaceState } from './types';

export interface Toast {
  id: number;
  text: string;
  tone: 'warning' | 'info';
}

/** Everything that the page shows of the workspace. Never changed in place. */
export interface Snapshot {
  link: Link;
  workspace?: WorkspaceState;
  /** Why the workspace could not be loaded. */
  failure?: string;
  messages: Readonly<Record<string, Messages>>;
  /** The modals that a person has open, the topmost last. */
  views: Readonly<Record<string, readonly View[]>>;
  homes: Readonly<Record<string, View | null>>;
  /** "is reading auth.go…" by channel and thread. */
  statuses: Readonly<Record<string, string>>;
  /** Agents' sessions by channel and thread; one that is processing can be stopped. */
  sessions: Readonly<Record<string, AgentSession>>;
  /** Suggested prompts by channel and thread. */
  prompts: Readonly<Record<string, readonly Prompt[]>>;
  /** How many sockets the app has open; none means that nobody will answer. */
  connections?: number;
  /** What people's devices would have shown, oldest first. */
  notifications: readonly Notification[];
  toasts: readonly Toast[];
}

export const statusKey = (channel: string, thread?: string) => `${channel}/${thread ?? ''}`;

/**
 * The page's copy of the workspace: loads it, keeps it up to date from the
 * event stream, and loads it again whenever the stream was interrupted.
 * Events are applied once per frame, so that a fast stream costs one render.
 */
export class Workspace {
  private snapshot: Snapshot = {
    link: 'connecting',
    messages: {},
    views: {},
    homes: {},
    statuses: {},
    sessions: {},
    prompts: {},
    notifications: [],
    toasts: [],
  };
  private readonly watchers = new Set<() => void>();
  private queue: ControlEvent[] = [];
  private frame: ReturnType<typeof setTimeout> | undefined;
  /** How many loads are under way. What they answer may be older than an event that came meanwhile, so events wait. */
  private loading = 0;
  private stopListening: (() => void) | undefined;
  private toastId = 0;
  private person = '';
  private thread: { channel: string; root: string } | undefined;

  readonly subscribe = (watcher: () => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  readonly current = () => this.snapshot;

  /** Starts listening; the returned function stops it. */
  start(): () => void {
    this.stopListening = listen(
      (event) => {
        if (event.kind === 'hello') {
          this.set({ connections: event.connections });
          void this.load();
        } else if (event.kind === 'channels') void this.load();
        else if (event.kind === 'person') void this.loadPeople();
        else this.enqueue(event);
      },
      (link) => this.set({ link }),
    );
    return () => {
      this.stopListening?.();
      clearTimeout(this.frame);
      this.frame = undefined;
    };
  }

  /** Loads what only this person sees: their open modals. */
  async watch(person: string) {
    this.person = person;
    if (person === '') return;
    try {
      const views = await api.views(person);
      this.set({ views: { ...this.snapshot.views, [person]: views } });
    } catch (error) {
      this.report(error);
    }
  }

  /** Loads a thread's replies; the newest one asked for is loaded again after an interruption. */
  async openThread(channel: string, root: string) {
    this.thread = { channel, root };
    this.loading++;
    try {
      const replies = await api.messages(channel, root);
      const all = { ...this.snapshot.messages[channel] };
      for (const message of replies) all[message.ts] = message;
      this.set({ messages: { ...this.snapshot.messages, [channel]: all } });
    } catch (error) {
      this.report(error);
    } finally {
      this.loaded();
    }
  }

  /** Loads a person's home tab, which tells the app that it was opened. */
  async openAgent(person: string) {
    try {
      await api.openAgent(person);
    } catch (error) {
      this.report(error);
    }
  }

  async openHome(person: string) {
    try {
      const home = await api.home(person);
      this.set({ homes: { ...this.snapshot.homes, [person]: home } });
    } catch (error) {
      this.report(error);
    }
  }

  /** Does something for the person; what goes wrong is shown as a toast. False when it did. */
  async attempt<T>(work: () => Promise<T>): Promise<T | false> {
    try {
      return await work();
    } catch (error) {
      this.report(error);
      return false;
    }
  }

  toast(text: string, tone: Toast['tone'] = 'info') {
    if (this.snapshot.toasts.some((toast) => toast.text === text)) return;
    const id = ++this.toastId;
    this.set({ toasts: [...this.snapshot.toasts, { id, text, tone }] });
    setTimeout(() => this.dismiss(id), 8000);
  }

  dismiss(id: number) {
    this.set({ toasts: this.snapshot.toasts.filter((toast) => toast.id !== id) });
  }

  private report(error: unknown) {
    this.toast(
      error instanceof ControlError ? error.message : 'Something went wrong in this page. The console has more.',
      'warning',
    );
    if (!(error instanceof ControlError)) console.error(error);
  }

  private async load() {
    this.loading++;
    try {
      const workspace = await api.state();
      const [notifications, ...channels] = await Promise.all([
        api.notifications(),
        ...workspace.channels.map((channel) => api.messages(channel.id)),
      ]);
      const messages: Record<string, Messages> = {};
      workspace.channels.forEach((channel, i) => {
        messages[channel.id] = Object.fromEntries((channels[i] ?? []).map((message) => [message.ts, message]));
      });
      this.set({ workspace, messages, notifications, statuses: {}, sessions: {}, failure: undefined });
      await this.watch(this.person);
      if (this.thread) await this.openThread(this.thread.channel, this.thread.root);
    } catch (error) {
      this.set({ failure: error instanceof Error ? error.message : String(error) });
    } finally {
      this.loaded();
    }
  }

  /** Loads who there is, after somebody has changed their settings. */
  private async loadPeople() {
    try {
      this.set({ workspace: await api.state() });
    } catch (error) {
      this.report(error);
    }
  }

  private loaded() {
    this.loading--;
    if (this.queue.length > 0) this.schedule();
  }

  private enqueue(event: ControlEvent) {
    this.queue.push(event);
    this.schedule();
  }

  private schedule() {
    // A timer, not requestAnimationFrame: a window in the background must not fall behind.
    this.frame ??= setTimeout(() => {
      this.frame = undefined;
      if (this.loading > 0) return;
      const events = this.queue;
      this.queue = [];
      this.set(events.reduce(applyEvent, this.snapshot));
      for (const late of events) {
        if (late.kind === 'warning' && (!late.user || late.user === this.person)) this.toast(late.text, 'warning');
      }
    }, 16);
  }

  private set(change: Partial<Snapshot>) {
    this.snapshot = { ...this.snapshot, ...change };
    for (const watcher of this.watchers) watcher();
  }
}

/** The snapshot after an event. */
export function applyEvent(snapshot: Snapshot, event: ControlEvent): Snapshot {
  switch (event.kind) {
    case 'message':
      return withMessage(snapshot, event.message);
    case 'deleted': {
      const { [event.ts]: _, ...rest } = snapshot.messages[event.channel] ?? {};
      return { ...snapshot, messages: { ...snapshot.messages, [event.channel]: rest } };
    }
    case 'view':
      return {
        ...snapshot,
        views: { ...snapshot.views, [event.user]: withView(snapshot.views[event.user] ?? [], event.view) },
      };
    case 'home':
      return { ...snapshot, homes: { ...snapshot.homes, [event.user]: event.view } };
    case 'status':
      return {
        ...snapshot,
        statuses: { ...snapshot.statuses, [statusKey(event.channel, event.thread_ts)]: event.status },
      };
    case 'session':
      return {
        ...snapshot,
        sessions: { ...snapshot.sessions, [statusKey(event.channel, event.thread_ts)]: event.session },
      };
    case 'prompts':
      return {
        ...snapshot,
        prompts: { ...snapshot.prompts, [statusKey(event.channel, event.thread_ts)]: event.prompts },
      };
    case 'notification': {
      const { notification } = event;
      if (snapshot.notifications.some((known) => known.seq === notification.seq)) return snapshot;
      return { ...snapshot, notifications: [...snapshot.notifications, notification] };
    }
    case 'connections':
      return { ...snapshot, connections: event.connections };
    default:
      return snapshot;
  }
}

function withMessage(snapshot: Snapshot, message: Message): Snapshot {
  const channel = { ...snapshot.messages[message.channel], [message.ts]: message };
  // A reply may come without its root; the thread's link must not wait for a reload.
  const root = message.thread_ts && message.thread_ts !== message.ts ? channel[message.thread_ts] : undefined;
  if (root && !message.ephemeral_to) {
    const replies = Object.values(channel).filter(
      (m) => m.thread_ts === root.ts && m.ts !== root.ts && !m.ephemeral_to,
    ).length;
    const latest = root.latest_reply && compareTs(root.latest_reply, message.ts) > 0 ? root.latest_reply : message.ts;
    channel[root.ts] = { ...root, reply_count: Math.max(root.reply_count ?? 0, replies), latest_reply: latest };
  }
  return { ...snapshot, messages: { ...snapshot.messages, [message.channel]: channel } };
}

/** A view replaces the one with its id, or is laid on top of its parent. Null closes all. */
function withView(stack: readonly View[], view: View | null): readonly View[] {
  if (!view) return [];
  const at = stack.findIndex((other) => other.id === view.id);
  if (at >= 0) return [...stack.slice(0, at), view];
  const parent = view.previous_view_id ? stack.findIndex((other) => other.id === view.previous_view_id) : -1;
  return [...stack.slice(0, parent + 1), view];
}
