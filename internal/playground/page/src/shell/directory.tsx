import { createContext, useContext, useMemo, type ReactNode } from 'react';
import type { Channel, User, UserGroup, WorkspaceState } from '../slack/types';

/** Who and what there is in the workspace, by id; and who is looking. */
export interface Directory {
  workspace: WorkspaceState;
  me: User;
  bot?: User;
  users: ReadonlyMap<string, User>;
  channels: ReadonlyMap<string, Channel>;
  groups: ReadonlyMap<string, UserGroup>;
}

const Context = createContext<Directory | undefined>(undefined);

export function DirectoryProvider(props: { workspace: WorkspaceState; me: User; children: ReactNode }) {
  const { workspace, me } = props;
  const directory = useMemo<Directory>(() => {
    const users = new Map(workspace.users.map((user) => [user.id, user]));
    return {
      workspace,
      me,
      bot: users.get(workspace.bot_user),
      users,
      channels: new Map(workspace.channels.map((channel) => [channel.id, channel])),
      groups: new Map((workspace.groups ?? []).map((group) => [group.id, group])),
    };
  }, [workspace, me]);
  return <Context value={directory}>{props.children}</Context>;
}

export function useDirectory(): Directory {
  const directory = useContext(Context);
  if (!directory) throw new Error('useDirectory outside a DirectoryProvider');
  return directory;
}

export const nameOf = (user: User | undefined, fallback: string) => user?.real_name || user?.name || fallback;

/** A channel's name as this person sees it: a direct message bears the other's name. */
export function channelName(channel: Channel, directory: Directory): string {
  if (!channel.is_im) return channel.name;
  const others = (channel.members ?? []).filter((id) => id !== directory.me.id);
  return others.map((id) => nameOf(directory.users.get(id), id)).join(', ') || channel.name;
}

/** The channels that this person can see. Guests and strangers see only those that they are in. */
export function visibleChannels(directory: Directory): Channel[] {
  const { me } = directory;
  return directory.workspace.channels.filter((channel) => {
    if (channel.members?.includes(me.id)) return true;
    return !channel.is_private && !channel.is_im && !me.guest && !me.stranger;
  });
}
