import type { ControlEvent } from './types';

export type Link = 'connecting' | 'live' | 'lost';

/**
 * Listens to the workspace until the returned function is called. The browser
 * itself reconnects a dropped stream; one that was refused is opened anew here.
 */
export function listen(onEvent: (event: ControlEvent) => void, onLink: (link: Link) => void): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  const open = () => {
    source = new EventSource('/_control/events');
    source.onmessage = (message) => {
      let event: ControlEvent;
      try {
        event = JSON.parse(String(message.data)) as ControlEvent;
      } catch {
        return;
      }
      if (event.kind === 'hello') onLink('live');
      onEvent(event);
    };
    source.onerror = () => {
      if (stopped) return;
      onLink('lost');
      if (source?.readyState !== EventSource.CLOSED) return;
      clearTimeout(retry);
      retry = setTimeout(open, 1000);
    };
  };
  open();
  return () => {
    stopped = true;
    clearTimeout(retry);
    source?.close();
  };
}
