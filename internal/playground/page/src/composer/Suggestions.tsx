import { useEffect, useMemo, useRef, type ReactNode } from 'react';
import { nameOf, useDirectory, visibleChannels, type Directory } from '../shell/directory';
import { searchEmoji } from '../text/emoji';
import { Avatar } from '../ui/Avatar';
import { Hash, Lock, Mark } from '../ui/icons';
import type { Trigger } from './complete';

export interface Suggestion {
  key: string;
  insert: string;
  label: string;
  hint?: string;
  icon: ReactNode;
}

const most = 8;

export function useSuggestions(trigger: Trigger | undefined): Suggestion[] {
  const directory = useDirectory();
  return useMemo(() => (trigger ? suggest(trigger, directory) : []), [trigger, directory]);
}

function suggest(trigger: Trigger, directory: Directory): Suggestion[] {
  const query = trigger.query.toLowerCase();
  switch (trigger.kind) {
    case ':':
      return searchEmoji(query, most).map(({ name, char }) => ({
        key: name,
        insert: char,
        label: `:${name}:`,
        icon: <span className="emoji">{char}</span>,
      }));
    case '#':
      return visibleChannels(directory)
        .filter((channel) => !channel.is_im && channel.name.toLowerCase().includes(query))
        .slice(0, most)
        .map((channel) => ({
          key: channel.id,
          insert: `#${channel.name}`,
          label: channel.name,
          hint: channel.topic,
          icon: channel.is_private ? <Lock size={16} /> : <Hash size={16} />,
        }));
    case '/':
      return commands(directory).filter((command) => command.insert.slice(1).startsWith(query));
    case '@':
      return people(query, directory);
  }
}

function commands({ bot }: Directory): Suggestion[] {
  if (!bot) return [];
  return [
    {
      key: bot.id,
      insert: `/${bot.name}`,
      label: `/${bot.name}`,
      hint: `${nameOf(bot, 'The app')}'s own command`,
      icon: <Mark size={20} />,
    },
  ];
}

function people(query: string, { users, groups, bot, me }: Directory): Suggestion[] {
  const found: (Suggestion & { rank: number })[] = [];
  for (const user of users.values()) {
    const name = nameOf(user, user.id);
    const words = [user.name, ...name.split(/\s+/)].map((word) => word.toLowerCase());
    if (!words.some((word) => word.startsWith(query)) && !name.toLowerCase().startsWith(query)) continue;
    const rank = user.id === bot?.id ? 0 : user.id === me.id ? 2 : 1;
    found.push({
      rank,
      key: user.id,
      insert: `@${user.name}`,
      label: name,
      hint: user.id === me.id ? `@${user.name} (you)` : `@${user.name}`,
      icon: <Avatar user={user} name={name} size={20} />,
    });
  }
  for (const group of groups.values()) {
    if (group.handle.toLowerCase().startsWith(query))
      found.push({
        rank: 3,
        key: group.id,
        insert: `@${group.handle}`,
        label: `@${group.handle}`,
        hint: group.name,
        icon: <Hash size={16} />,
      });
  }
  for (const range of ['here', 'channel']) {
    if (query !== '' && range.startsWith(query))
      found.push({
        rank: 4,
        key: range,
        insert: `@${range}`,
        label: `@${range}`,
        hint: 'Notify everyone here',
        icon: <Hash size={16} />,
      });
  }
  return found.sort((a, b) => a.rank - b.rank).slice(0, most);
}

/** The list above the composer. The focus stays in the text. */
export function Suggestions(props: {
  id: string;
  suggestions: Suggestion[];
  selected: number;
  onHover: (i: number) => void;
  onPick: (suggestion: Suggestion) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[props.selected]?.scrollIntoView({ block: 'nearest' });
  }, [props.selected]);
  return (
    <div ref={list} id={props.id} className="suggestions" role="listbox" aria-label="Suggestions">
      {props.suggestions.map((suggestion, i) => (
        <div
          key={suggestion.key}
          id={`${props.id}-${i}`}
          role="option"
          aria-selected={i === props.selected}
          className="listbox-option"
          data-at={i === props.selected}
          onPointerMove={() => props.onHover(i)}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => props.onPick(suggestion)}
        >
          {suggestion.icon}
          <span className="listbox-label">
            {suggestion.label}
            {suggestion.hint && <small>{suggestion.hint}</small>}
          </span>
        </div>
      ))}
    </div>
  );
}
