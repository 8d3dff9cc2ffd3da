import { useEffect, useState } from 'react';
import { useWorkspace } from './useWorkspace';

type Read = Readonly<Record<string, string>>;

const keyOf = (person: string) => `deckhand.read.${person}`;

function load(person: string): Read | undefined {
  try {
    return (JSON.parse(localStorage.getItem(keyOf(person)) ?? 'null') as Read | null) ?? undefined;
  } catch {
    return undefined;
  }
}

const newest = (timestamps: string[]) =>
  timestamps.reduce((latest, ts) => (Number(ts) > Number(latest) ? ts : latest), '0');

/**
 * Until when each channel has been read by a person, kept in this browser. What
 * was there before the first visit counts as read.
 */
export function useRead(person: string, channel: string | undefined): Read {
  const { messages } = useWorkspace();
  const [read, setRead] = useState<Read>({});

  useEffect(() => {
    setRead(
      load(person) ?? Object.fromEntries(Object.entries(messages).map(([id, all]) => [id, newest(Object.keys(all))])),
    );
    // A person's marks are read once; from then on they are changed below.
  }, [person]);

  const latest = channel ? newest(Object.keys(messages[channel] ?? {})) : undefined;
  useEffect(() => {
    if (!channel || latest === undefined) return;
    setRead((before) => (before[channel] === latest ? before : { ...before, [channel]: latest }));
  }, [channel, latest, person]);
  useEffect(() => {
    if (Object.keys(read).length > 0) localStorage.setItem(keyOf(person), JSON.stringify(read));
  }, [read]);
  return read;
}
