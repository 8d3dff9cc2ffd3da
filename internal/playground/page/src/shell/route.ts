import { createContext, useContext } from 'react';

/** Where in the workspace the page is, and as whom. */
export interface Route {
  channel?: string;
  thread?: string;
  home?: boolean;
  /** The list of what people's devices would have shown. */
  notices?: boolean;
  user?: string;
}

/** Reads "#/c/C1/t/1712.0001?user=U1"; the person may also stand in the page's own query. */
export function parseRoute(hash: string, search: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?');
  const user = new URLSearchParams(query).get('user') ?? new URLSearchParams(search).get('user') ?? undefined;
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const route: Route = user ? { user } : {};
  if (parts[0] === 'home') return { ...route, home: true };
  if (parts[0] === 'notifications') return { ...route, notices: true };
  if (parts[0] !== 'c' || !parts[1]) return route;
  return { ...route, channel: parts[1], ...(parts[2] === 't' && parts[3] ? { thread: parts[3] } : {}) };
}

export function formatRoute(route: Route): string {
  let path = '/';
  if (route.home) path = '/home';
  else if (route.notices) path = '/notifications';
  else if (route.channel)
    path = `/c/${encodeURIComponent(route.channel)}${route.thread ? `/t/${encodeURIComponent(route.thread)}` : ''}`;
  return `#${path}${route.user ? `?user=${encodeURIComponent(route.user)}` : ''}`;
}

/** Goes to another place as the same person. */
export type Go = (to: Omit<Route, 'user'>) => void;

export const GoContext = createContext<Go>(() => undefined);
export const useGo = () => useContext(GoContext);
