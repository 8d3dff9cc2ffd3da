export interface Trigger {
  kind: '@' | '#' | ':' | '/';
  query: string;
  /** Where the sign stands in the text. */
  start: number;
}

/** What is being typed just before the caret, if it can be completed. */
export function triggerAt(text: string, caret: number): Trigger | undefined {
  const before = text.slice(0, caret);
  const slash = /^\/(\S*)$/.exec(before);
  if (slash) return { kind: '/', query: slash[1] ?? '', start: 0 };
  const match = /(?:^|[\s([{"'*_~>])([@#:])([\p{L}\p{N}_.+'-]*)$/u.exec(before);
  if (!match) return undefined;
  const kind = match[1] as '@' | '#' | ':';
  const query = match[2] ?? '';
  if (kind === ':' && query.length < 2) return undefined;
  return { kind, query, start: caret - query.length - 1 };
}

/** The text with what was being typed replaced, and where the caret goes. */
export function complete(
  text: string,
  caret: number,
  trigger: Trigger,
  with_: string,
): { text: string; caret: number } {
  const head = text.slice(0, trigger.start) + with_ + ' ';
  return { text: head + text.slice(caret).replace(/^ /, ''), caret: head.length };
}

/** The selection put between two marks, or taken out of them. */
export function wrap(text: string, from: number, to: number, mark: string): { text: string; from: number; to: number } {
  const inner = text.slice(from, to);
  const block = mark === '```';
  const open = block ? '```\n' : mark;
  const close = block ? '\n```' : mark;
  if (text.slice(from - open.length, from) === open && text.slice(to, to + close.length) === close && !block)
    return {
      text: text.slice(0, from - open.length) + inner + text.slice(to + close.length),
      from: from - open.length,
      to: to - open.length,
    };
  return {
    text: text.slice(0, from) + open + inner + close + text.slice(to),
    from: from + open.length,
    to: to + open.length,
  };
}
