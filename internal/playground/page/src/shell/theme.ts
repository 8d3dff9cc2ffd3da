import { useEffect, useSyncExternalStore } from 'react';

export type Theme = 'light' | 'dark';

const key = 'deckhand.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const watchers = new Set<() => void>();

/** Light or dark: the system's, until somebody chooses. */
function current(): Theme {
  const chosen = localStorage.getItem(key);
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return dark.matches ? 'dark' : 'light';
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  dark.addEventListener('change', watcher);
  addEventListener('storage', watcher); // another window may have chosen
  return () => {
    watchers.delete(watcher);
    dark.removeEventListener('change', watcher);
    removeEventListener('storage', watcher);
  };
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, current);
}

/** Gives the page its colours. For the root of the page. */
export function useThemedPage() {
  const theme = useTheme();
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
}

/** Chooses the other one, for this browser. */
export function toggleTheme() {
  localStorage.setItem(key, current() === 'dark' ? 'light' : 'dark');
  for (const watcher of watchers) watcher();
}
