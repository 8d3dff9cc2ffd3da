/** What the control API answers, and the parts of Block Kit that the page draws. */

export interface User {
  id: string;
  name: string;
  real_name: string;
  image?: string;
  title?: string;
  groups?: string[] | null;
  guest?: boolean;
  stranger?: boolean;
  bot?: boolean;
  tz?: string;
  locale?: string;
  /** When this person's devices keep quiet: until a time (Unix seconds), and daily from one hour to another. */
  dnd?: { quiet: boolean; snoozed_until: number; from: string; to: string };
}

/** What a post would have shown on a person's lock screen, and why it called them. */
export interface Notification {
  seq: number;
  time: string;
  user: string;
  reason: 'direct' | 'mention' | 'thread';
  channel: string;
  thread_ts?: string;
  ts: string;
  from: string;
  text: string;
  /** The person's devices kept quiet. */
  held: boolean;
}

export interface Channel {
  id: string;
  name: string;
  is_private?: boolean;
  is_im?: boolean;
  is_ext_shared?: boolean;
  members?: string[] | null;
  topic?: string;
}

export interface UserGroup {
  id: string;
  handle: string;
  name?: string;
}

export interface Team {
  id: string;
  name: string;
}

/** A shortcut of the app: in a message's menu, or global. */
export interface Shortcut {
  name: string;
  type: string;
  callback_id: string;
  description?: string;
}

export interface WorkspaceState {
  team: Team;
  users: User[];
  channels: Channel[];
  groups?: UserGroup[] | null;
  bot_user: string;
  shortcuts?: Shortcut[] | null;
  connections?: number;
}

export interface Reaction {
  name: string;
  users?: string[] | null;
  count: number;
}

export interface SlackFile {
  id: string;
  name: string;
  title?: string;
  mimetype?: string;
  size?: number;
  url_private?: string;
}

export interface Attachment {
  color?: string;
  fallback?: string;
  pretext?: string;
  author_name?: string;
  title?: string;
  title_link?: string;
  text?: string;
  footer?: string;
  fields?: { title?: string; value?: string; short?: boolean }[];
  blocks?: Block[];
}

/** An agent's session in a thread, as agents.sessions.setStatus describes it. */
export interface AgentSession {
  status: string;
  title?: string;
  initiator?: string;
}

/** A prompt that an assistant suggests: a click sends its message. */
export interface Prompt {
  title: string;
  message: string;
}

export interface Message {
  ts: string;
  channel: string;
  user?: string;
  bot_id?: string;
  username?: string;
  text?: string;
  blocks?: Block[] | null;
  attachments?: Attachment[] | null;
  thread_ts?: string;
  reply_count?: number;
  latest_reply?: string;
  reply_users?: string[];
  broadcast?: boolean;
  icon_emoji?: string;
  icon_url?: string;
  session?: AgentSession | null;
  reactions?: Reaction[] | null;
  edited?: unknown;
  edits?: number;
  stream?: { state?: string; task_display_mode?: string } | null;
  files?: SlackFile[] | null;
  ephemeral_to?: string;
  subtype?: string;
  status?: string;
}

/** A block of any type. Each component reads the fields that its type has. */
export interface Block {
  type: string;
  block_id?: string;
  [field: string]: unknown;
}

export interface TextObject {
  type: 'plain_text' | 'mrkdwn';
  text: string;
  emoji?: boolean;
  verbatim?: boolean;
}

export interface Option {
  text: TextObject;
  value: string;
  description?: TextObject;
  url?: string;
}

export interface OptionGroup {
  label: TextObject;
  options: Option[];
}

export interface Confirm {
  title?: TextObject;
  text?: TextObject;
  confirm?: TextObject;
  deny?: TextObject;
  style?: 'primary' | 'danger';
}

export interface Element {
  type: string;
  action_id?: string;
  [field: string]: unknown;
}

/** An element's value, in the shape that it has in Slack's `state.values` and in `actions`. */
export interface ElementValue {
  type: string;
  value?: string | null;
  selected_option?: Option | null;
  selected_options?: Option[];
  selected_user?: string | null;
  selected_users?: string[];
  selected_channel?: string | null;
  selected_channels?: string[];
  selected_conversation?: string | null;
  selected_conversations?: string[];
  selected_date?: string | null;
  selected_time?: string | null;
  selected_date_time?: number | null;
  rich_text_value?: Block | null;
}

/** `state.values` of a view or a message: block_id → action_id → value. */
export type StateValues = Record<string, Record<string, ElementValue>>;

export interface View {
  id: string;
  type: 'modal' | 'home';
  title?: TextObject;
  submit?: TextObject | null;
  close?: TextObject | null;
  blocks: Block[];
  hash?: string;
  callback_id?: string;
  root_view_id?: string;
  previous_view_id?: string | null;
  notify_on_close?: boolean;
}

export type ControlEvent =
  | { kind: 'hello'; connections?: number }
  | { kind: 'connections'; connections: number }
  | { kind: 'channels' }
  | { kind: 'message'; message: Message }
  | { kind: 'deleted'; channel: string; ts: string }
  | { kind: 'view'; user: string; view: View | null }
  | { kind: 'home'; user: string; view: View | null }
  | { kind: 'session'; channel: string; thread_ts: string; session: AgentSession }
  | { kind: 'prompts'; channel: string; thread_ts?: string; title?: string; prompts: Prompt[] }
  | { kind: 'status'; channel: string; thread_ts?: string; status: string }
  | { kind: 'notification'; notification: Notification }
  | { kind: 'person'; user: string }
  | { kind: 'warning'; user?: string; text: string };
