/**
 * Slack's mrkdwn as a tree. It follows Slack's reading: markers count only at
 * the edge of a word, never reach over a line's end, and code holds no markup.
 */

export type Inline =
  | { t: 'text'; text: string }
  | { t: 'bold' | 'italic' | 'strike'; children: Inline[] }
  | { t: 'code'; text: string }
  | { t: 'emoji'; name: string }
  | { t: 'link'; href: string; text: string }
  | { t: 'user' | 'channel' | 'group'; id: string; label?: string }
  | { t: 'broadcast'; range: string }
  | { t: 'date'; unix: number; format: string; href?: string; fallback: string }
  | { t: 'break' };

export type Chunk = { t: 'para'; children: Inline[] } | { t: 'quote'; children: Chunk[] } | { t: 'pre'; text: string };

/** Undoes Slack's three escapes. */
export function unescape(text: string): string {
  return text.replace(/&(lt|gt|amp);/g, (_, name: string) => (name === 'lt' ? '<' : name === 'gt' ? '>' : '&'));
}

export function parseMrkdwn(source: string): Chunk[] {
  const chunks: Chunk[] = [];
  const fence = /```/g;
  let at = 0;
  for (;;) {
    fence.lastIndex = at;
    const open = fence.exec(source);
    const close = open ? source.indexOf('```', open.index + 3) : -1;
    if (!open || close < 0) break;
    pushLines(chunks, source.slice(at, open.index).replace(/\n$/, ''), at === open.index);
    const body = source
      .slice(open.index + 3, close)
      .replace(/^\n/, '')
      .replace(/\n$/, '');
    chunks.push({ t: 'pre', text: plain(body) });
    at = close + 3;
    if (source[at] === '\n') at++;
  }
  pushLines(chunks, source.slice(at), at === source.length);
  return chunks;
}

/** Adds the lines between two code blocks: paragraphs and quotes. */
function pushLines(chunks: Chunk[], text: string, empty: boolean) {
  if (empty) return;
  const lines = text.split('\n');
  let para: string[] = [];
  const flush = () => {
    if (para.length > 0) chunks.push({ t: 'para', children: parseInline(para.join('\n')) });
    para = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const rest = /^(?:>>>|&gt;&gt;&gt;) ?(.*)$/s.exec([line, ...lines.slice(i + 1)].join('\n'));
    if (rest) {
      flush();
      chunks.push({ t: 'quote', children: [{ t: 'para', children: parseInline(rest[1] ?? '') }] });
      return;
    }
    const quoted = [];
    for (let q; i < lines.length && (q = /^(?:>|&gt;) ?(.*)$/.exec(lines[i] ?? '')); i++) quoted.push(q[1] ?? '');
    if (quoted.length > 0) {
      flush();
      chunks.push({ t: 'quote', children: [{ t: 'para', children: parseInline(quoted.join('\n')) }] });
      i--;
      continue;
    }
    para.push(line);
  }
  flush();
}

const markers = { '*': 'bold', _: 'italic', '~': 'strike' } as const;
type Marker = keyof typeof markers;

const word = /[\p{L}\p{N}]/u;

export function parseInline(text: string): Inline[] {
  const out: Inline[] = [];
  let plainText = '';
  const flush = () => {
    if (plainText !== '') out.push({ t: 'text', text: unescape(plainText) });
    plainText = '';
  };
  const push = (node: Inline) => {
    flush();
    out.push(node);
  };
  let i = 0;
  while (i < text.length) {
    const rest = text.slice(i, i + 2100);
    const before = text[i - 1];
    const char = text[i] as string;
    let match: RegExpExecArray | null;
    if (char === '\n') {
      push({ t: 'break' });
      i++;
    } else if (char === '<' && (match = /^<([^<>\n]+)>/.exec(text.slice(i, i + 8100)))) {
      const node = angle(match[1] ?? '');
      if (node) push(node);
      else plainText += match[0];
      i += match[0].length;
    } else if (char === '`' && (match = /^`([^`\n]+)`/.exec(text.slice(i, i + 4100)))) {
      push({ t: 'code', text: plain(match[1] ?? '') });
      i += match[0].length;
    } else if (
      char === ':' &&
      (match = /^:([a-z0-9_+'-]+(?:::skin-tone-[2-6])?):/.exec(rest)) &&
      !(before && /[\d]/.test(before) && /^\d+$/.test(match[1] ?? ''))
    ) {
      push({ t: 'emoji', name: match[1] ?? '' });
      i += match[0].length;
    } else if (char === 'h' && (!before || !word.test(before)) && (match = /^https?:\/\/[^\s<>|]+/.exec(rest))) {
      const href = trimLink(match[0]);
      push({ t: 'link', href: unescape(href), text: unescape(href) });
      i += href.length;
    } else if (char in markers) {
      const end = closing(text, i);
      if (end > 0) {
        push({ t: markers[char as Marker], children: parseInline(text.slice(i + 1, end)) });
        i = end + 1;
      } else {
        plainText += char;
        i++;
      }
    } else {
      plainText += char;
      i++;
    }
  }
  flush();
  return out;
}

/** Where the marker at `start` closes, or -1 when it does not open anything. */
function closing(text: string, start: number): number {
  const marker = text[start] as string;
  const before = text[start - 1];
  const after = text[start + 1];
  if (before !== undefined && (word.test(before) || before === marker)) return -1;
  if (after === undefined || /\s/.test(after) || after === marker) return -1;
  for (let i = start + 2; i < text.length; i++) {
    const char = text[i];
    if (char === '\n') return -1;
    if (char === '`') {
      const end = text.indexOf('`', i + 1);
      if (end > 0 && !text.slice(i, end).includes('\n')) i = end;
    } else if (char === '<') {
      const end = text.indexOf('>', i + 1);
      if (end > 0 && !text.slice(i, end).includes('\n')) i = end;
    } else if (char === marker) {
      const next = text[i + 1];
      if (!/\s/.test(text[i - 1] as string) && (next === undefined || !(word.test(next) || next === marker))) return i;
    }
  }
  return -1;
}

/** Punctuation at the end of a bare address belongs to the sentence. */
function trimLink(url: string): string {
  const cut = url.replace(/(?:[.,;:!?'"*_~]|&gt;)+$/, '');
  return cut.endsWith(')') && !cut.includes('(') ? cut.replace(/\)+$/, '') : cut;
}

/** What stands between < and >, or undefined when it is not Slack's markup. */
export function angle(inner: string): Inline | undefined {
  const bar = inner.indexOf('|');
  const head = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? undefined : unescape(inner.slice(bar + 1));
  let match: RegExpExecArray | null;
  if ((match = /^@([UWB][A-Z0-9]+)$/.exec(head))) return { t: 'user', id: match[1] ?? '', label };
  if ((match = /^#([CGD][A-Z0-9]+)$/.exec(head))) return { t: 'channel', id: match[1] ?? '', label };
  if ((match = /^!subteam\^([A-Z0-9]+)$/.exec(head))) return { t: 'group', id: match[1] ?? '', label };
  if ((match = /^!(here|channel|everyone)$/.exec(head))) return { t: 'broadcast', range: match[1] ?? '' };
  if ((match = /^!date\^(\d+)\^([^^]*)(?:\^(.+))?$/.exec(head)))
    return { t: 'date', unix: Number(match[1]), format: match[2] ?? '', href: match[3], fallback: label ?? '' };
  if (head.startsWith('!')) return { t: 'text', text: label ?? `<${head}>` };
  if (/^(https?:\/\/|mailto:|tel:)/i.test(head)) {
    const href = unescape(head);
    return { t: 'link', href, text: label ?? href.replace(/^(mailto|tel):/i, '') };
  }
  return undefined;
}

/** Code as it is read: links lose their brackets, everything else stays. */
function plain(code: string): string {
  return unescape(
    code.replace(/<(https?:\/\/[^|>\s]+)(?:\|([^>]*))?>/g, (_, url: string, label?: string) => label ?? url),
  );
}
