import { useMemo, type ReactNode } from 'react';
import type { Channel } from '../slack/types';
import { channelTimeline, type Messages } from '../slack/timeline';
import { Avatar } from '../ui/Avatar';
import { Bell, Home, Mark } from '../ui/icons';
import { unread } from './actions';
import { ChannelIcon } from './ChannelIcon';
import { channelName, nameOf, useDirectory, visibleChannels } from './directory';
import { PersonSwitch } from './PersonSwitch';
import { formatRoute, type Route } from './route';
import { useWorkspace } from './useWorkspace';

const none: ReadonlySet<string> = new Set();

export function Sidebar(props: {
  route: Route;
  read: Readonly<Record<string, string>>;
  open: boolean;
  onPerson: (id: string) => void;
}) {
  const { route } = props;
  const directory = useDirectory();
  const { messages, connections } = useWorkspace();
  const { me, bot, workspace } = directory;
  const channels = visibleChannels(directory);

  return (
    <nav className={props.open ? 'sidebar open' : 'sidebar'} aria-label="Workspace">
      <div className="side-team">
        <Mark />
        <span>{workspace.team.name}</span>
      </div>
      <div className="side-scroll">
        <h2>Channels</h2>
        {channels
          .filter((channel) => !channel.is_im)
          .map((channel) => (
            <ChannelRow
              key={channel.id}
              channel={channel}
              here={route.channel === channel.id}
              messages={messages[channel.id]}
              since={props.read[channel.id]}
              icon={<ChannelIcon channel={channel} size={16} />}
            />
          ))}
        <h2>Direct messages</h2>
        {channels
          .filter((channel) => channel.is_im)
          .map((channel) => {
            const other = directory.users.get(channel.members?.find((id) => id !== me.id) ?? '');
            return (
              <ChannelRow
                key={channel.id}
                channel={channel}
                here={route.channel === channel.id}
                messages={messages[channel.id]}
                since={props.read[channel.id]}
                icon={<Avatar user={other} name={nameOf(other, channel.name)} size={20} />}
              />
            );
          })}
        {!me.stranger && (
          <>
            <h2>Apps</h2>
            <a
              className="side-row"
              href={formatRoute({ home: true, user: me.id })}
              aria-current={route.home ? 'page' : undefined}
              data-testid="app-home"
            >
              <Home size={16} />
              <span>{nameOf(bot, 'App')} home</span>
              {connections !== undefined && <Presence there={connections > 0} />}
            </a>
          </>
        )}
        <h2>Playground</h2>
        <a
          className="side-row"
          href={formatRoute({ notices: true, user: me.id })}
          aria-current={route.notices ? 'page' : undefined}
          data-testid="notifications"
        >
          <Bell size={16} />
          <span>Notifications</span>
        </a>
      </div>
      <PersonSwitch route={route} onPerson={props.onPerson} />
    </nav>
  );
}

/** One conversation in the list, with what its reader has missed. */
function ChannelRow(props: { channel: Channel; here: boolean; messages?: Messages; since?: string; icon: ReactNode }) {
  const { channel, here, messages, since } = props;
  const directory = useDirectory();
  const { me } = directory;
  const fresh = useMemo(
    () => (here ? { any: false, mentions: 0 } : unread(channelTimeline(messages, me.id, none), since, directory)),
    [here, messages, since, directory, me.id],
  );
  const count = channel.is_im && fresh.any ? Math.max(1, fresh.mentions) : fresh.mentions;
  return (
    <a
      className="side-row"
      href={formatRoute({ channel: channel.id, user: me.id })}
      aria-current={here ? 'page' : undefined}
      data-unread={fresh.any}
      data-channel={channel.id}
    >
      {props.icon}
      <span>{channelName(channel, directory)}</span>
      {count > 0 && (
        <b className="side-count" aria-label={`${count} unread`}>
          {count}
        </b>
      )}
    </a>
  );
}

function Presence({ there }: { there: boolean }) {
  return (
    <i
      className="side-dot"
      data-on={there}
      role="img"
      aria-label={there ? 'connected' : 'not connected'}
      title={there ? 'Connected' : 'Not connected: nobody will answer'}
    />
  );
}
