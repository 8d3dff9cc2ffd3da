import type { Channel, User, WorkspaceState } from './types';

/** GET /_control/state as it is sent. */
export interface RawState {
  team: { id: string; name: string };
  users: (Omit<User, 'image'> & { avatar?: string; image?: string; deleted?: boolean })[];
  channels: (Channel & { private?: boolean; im?: boolean; shared?: boolean; archived?: boolean; purpose?: string })[];
  groups?: WorkspaceState['groups'];
  bot?: { user: string; shortcuts?: WorkspaceState['shortcuts'] };
  bot_user?: string;
  ready?: boolean;
  connections?: number;
}

/** The workspace in the page's own words: those of Slack's Web API. */
export function readState(raw: RawState): WorkspaceState {
  return {
    team: raw.team,
    users: raw.users
      .filter((user) => !user.deleted)
      .map(({ avatar, ...user }) => ({ ...user, image: user.image ?? avatar })),
    channels: raw.channels
      .filter((channel) => !channel.archived)
      .map((channel) => ({
        id: channel.id,
        name: channel.name,
        topic: channel.topic || channel.purpose,
        members: channel.members,
        is_private: channel.is_private ?? channel.private,
        is_im: channel.is_im ?? channel.im,
        is_ext_shared: channel.is_ext_shared ?? channel.shared,
      })),
    groups: raw.groups,
    bot_user: raw.bot_user ?? raw.bot?.user ?? raw.users.find((user) => user.bot)?.id ?? '',
    shortcuts: raw.bot?.shortcuts,
    connections: raw.connections,
  };
}
