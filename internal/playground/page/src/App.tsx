import { useCallback, useEffect, useMemo, useState } from 'react';
import type { Suggested } from './composer/Composer';
import { ActionsContext, useMakeActions } from './shell/actions';
import { Banner } from './shell/Banner';
import { ChannelPane, ThreadPane } from './shell/Conversation';
import { DirectoryProvider, nameOf, useDirectory, visibleChannels } from './shell/directory';
import { formatRoute, GoContext, parseRoute, type Go, type Route } from './shell/route';
import { Sidebar } from './shell/Sidebar';
import { toggleTheme, useTheme, useThemedPage } from './shell/theme';
import { Toasts } from './shell/Toasts';
import { useRead } from './shell/useRead';
import { useStore, useWorkspace } from './shell/useWorkspace';
import type { WorkspaceState } from './slack/types';
import { ConfirmProvider } from './ui/Confirm';
import { Mark, Menu as MenuIcon, Moon, Sun } from './ui/icons';
import { HomeView } from './views/HomeView';
import { ModalView } from './views/ModalView';
import { NotificationsView } from './views/NotificationsView';

const personKey = 'deckhand.person';

export function App() {
  const { workspace, failure } = useWorkspace();
  const store = useStore();
  useThemedPage();
  useEffect(() => store.start(), [store]);
  if (!workspace) {
    return (
      <div className="splash" role="status">
        <Mark size={56} />
        <p>{failure ?? 'Opening the workspace…'}</p>
      </div>
    );
  }
  return <Desk workspace={workspace} />;
}

function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash, location.search));
  useEffect(() => {
    const changed = () => setRoute(parseRoute(location.hash, location.search));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

/** The page once the workspace is there: finds out who is looking. */
function Desk({ workspace }: { workspace: WorkspaceState }) {
  const route = useRoute();
  const store = useStore();
  const people = workspace.users.filter((user) => !user.bot);
  const me =
    people.find((user) => user.id === route.user) ??
    people.find((user) => user.id === localStorage.getItem(personKey)) ??
    people[0];

  useEffect(() => {
    if (!me) return;
    localStorage.setItem(personKey, me.id);
    void store.watch(me.id);
  }, [me, store]);
  if (!me)
    return (
      <div className="splash">
        <p>This workspace has no people.</p>
      </div>
    );
  return (
    <DirectoryProvider workspace={workspace} me={me}>
      <Layout route={route} />
    </DirectoryProvider>
  );
}

function Layout({ route }: { route: Route }) {
  const directory = useDirectory();
  const { me, channels } = directory;
  const { views, link } = useWorkspace();
  const store = useStore();
  const theme = useTheme();
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [menu, setMenu] = useState(false);
  const [suggested, setSuggested] = useState<Suggested>();

  const visible = visibleChannels(directory);
  const start = visible.find((channel) => channel.name === 'engineering') ?? visible[0];
  const asked = route.channel ? channels.get(route.channel) : undefined;
  const home = route.home === true && !me.stranger;
  const notices = route.notices === true;
  const channel = home || notices ? undefined : asked && visible.includes(asked) ? asked : start;
  const thread = channel && channel === asked ? route.thread : undefined;

  const go = useCallback<Go>(
    (to) => {
      location.hash = formatRoute({ ...to, user: me.id });
    },
    [me.id],
  );
  const actions = useMakeActions(
    store,
    directory,
    useCallback((ts: string) => setHidden((before) => new Set(before).add(ts)), []),
  );
  const read = useRead(me.id, channel?.id);

  // The address always says where one is and as whom, so that it can be copied and reloaded.
  const address = formatRoute({ home, notices, channel: channel?.id, thread, user: me.id });
  useEffect(() => {
    if (location.hash !== address) history.replaceState(null, '', location.pathname + address);
    setMenu(false);
  }, [address]);
  useEffect(() => {
    document.title = `${channel ? (channel.is_im ? nameOf(directory.bot, 'Direct message') : `#${channel.name}`) : notices ? 'Notifications' : 'Home'} · ${me.real_name} · Deckhand playground`;
  }, [channel, me, directory.bot]);

  const modals = useMemo(() => views[me.id] ?? [], [views, me.id]);
  const modal = modals[modals.length - 1];
  const tools = (
    <button
      type="button"
      className="icon-button"
      data-testid="theme"
      aria-label={theme === 'dark' ? 'Light colours' : 'Dark colours'}
      title={theme === 'dark' ? 'Light colours' : 'Dark colours'}
      onClick={toggleTheme}
    >
      {theme === 'dark' ? <Sun /> : <Moon />}
    </button>
  );
  const tryIt = (text: string) => {
    if (!start) return;
    go({ channel: start.id });
    setSuggested((before) => ({ text, id: (before?.id ?? 0) + 1 }));
  };

  return (
    <GoContext value={go}>
      <ActionsContext value={actions}>
        <ConfirmProvider>
          <div className="app">
            <Banner onTry={tryIt} target={start ? `#${start.name}` : 'a channel'} />
            {link === 'lost' && (
              <div className="offline" role="alert">
                The playground does not answer. Trying again…
              </div>
            )}
            <div className={thread ? 'desk with-thread' : 'desk'}>
              <button
                type="button"
                className="icon-button drawer"
                aria-label="Channels"
                aria-expanded={menu}
                onClick={() => setMenu(!menu)}
              >
                <MenuIcon />
              </button>
              <Sidebar
                route={{ home, notices, channel: channel?.id, thread }}
                read={read}
                open={menu}
                onPerson={(id) => {
                  location.hash = formatRoute({ home, notices, channel: channel?.id, thread, user: id });
                }}
              />
              {menu && <div className="drawer-scrim" onClick={() => setMenu(false)} />}
              <main className="main">
                {channel && <ChannelPane channel={channel} hidden={hidden} tools={tools} suggested={suggested} />}
                {channel && thread && <ThreadPane key={thread} channel={channel} root={thread} hidden={hidden} />}
                {notices && (
                  <>
                    <header className="pane-header home-header">
                      <h1>Notifications</h1>
                      <span className="spring" />
                      {tools}
                    </header>
                    <NotificationsView />
                  </>
                )}
                {home && (
                  <>
                    <header className="pane-header home-header">
                      <h1>{nameOf(directory.bot, 'App')}</h1>
                      <span className="spring" />
                      {tools}
                    </header>
                    <HomeView key={me.id} />
                  </>
                )}
              </main>
            </div>
            {modal && <ModalView view={modal} depth={modals.length} />}
            <Toasts />
          </div>
        </ConfirmProvider>
      </ActionsContext>
    </GoContext>
  );
}
