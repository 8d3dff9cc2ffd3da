import table from './emoji.txt?raw';

/*
 * emoji.txt holds Slack's shortcodes, a line per emoji: "name,other_name char".
 * It is made from iamcal/emoji-data 16.0.0, Copyright (c) 2013 Cal Henderson, MIT.
 */

const tones = ['', '\u{1F3FB}', '\u{1F3FC}', '\u{1F3FD}', '\u{1F3FE}', '\u{1F3FF}'];

interface Emoji {
  names: string[];
  char: string;
}

const list: Emoji[] = table
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const space = line.lastIndexOf(' ');
    return { names: line.slice(0, space).split(','), char: line.slice(space + 1) };
  });

const byName = new Map(list.flatMap((emoji) => emoji.names.map((name) => [name, emoji.char] as const)));

/** The characters of a shortcode ("eyes", "wave::skin-tone-3"), or undefined if Slack has none by that name. */
export function emojiChar(shortcode: string): string | undefined {
  const [name = '', tone] = shortcode.split('::');
  const char = byName.get(name);
  const level = /^skin-tone-([2-6])$/.exec(tone ?? '')?.[1];
  if (char === undefined || level === undefined) return char;
  return char.replace(/\uFE0F$/, '') + tones[Number(level) - 1];
}

const byChar = new Map(list.map((emoji) => [emoji.char.replace('\uFE0F', ''), emoji.names[0]] as const));

/** The first shortcode of an emoji without its variation selector, or undefined if Slack has none. */
export function emojiName(char: string): string | undefined {
  return byChar.get(char);
}

/** Up to `limit` shortcodes for what a person has typed so far: those that begin with it come first. */
export function searchEmoji(prefix: string, limit: number): { name: string; char: string }[] {
  const query = prefix.toLowerCase();
  const begins: { name: string; char: string }[] = [];
  const contains: { name: string; char: string }[] = [];
  for (const { names, char } of list) {
    const start = names.find((name) => name.startsWith(query));
    const inside = start ?? names.find((name) => name.includes(query));
    if (start !== undefined) begins.push({ name: start, char });
    else if (inside !== undefined) contains.push({ name: inside, char });
  }
  return [...begins, ...contains].slice(0, limit);
}

/** Replaces the shortcodes in a plain text ("done :tada:") by their characters. */
export function withEmoji(text: string): string {
  return text.replace(/:([a-z0-9_+'-]+(?:::skin-tone-[2-6])?):/g, (whole, name: string) => emojiChar(name) ?? whole);
}
