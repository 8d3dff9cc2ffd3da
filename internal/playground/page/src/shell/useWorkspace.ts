import { createContext, useContext, useSyncExternalStore } from 'react';
import { Workspace, type Snapshot } from '../slack/workspace';

export const WorkspaceContext = createContext<Workspace>(new Workspace());

export const useStore = () => useContext(WorkspaceContext);

export function useWorkspace(): Snapshot {
  const store = useStore();
  return useSyncExternalStore(store.subscribe, store.current);
}
