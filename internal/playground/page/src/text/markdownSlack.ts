import { angle, type Inline } from './mrkdwn';

/** As much of mdast as is needed to put Slack's own markup into a CommonMark tree. */
export interface Node {
  type: string;
  value?: string;
  children?: Node[];
  data?: { hName: string; hProperties: Record<string, string> };
}

const slackMarkup = /\n|<[@#!][^<>\n]+>|:[a-z0-9_+'-]+(?:::skin-tone-[2-6])?:/g;

/**
 * A remark plugin that reads CommonMark as Slack does. Mentions (<@U…>, <#C…>, <!here>), dates and :shortcodes: in
 * texts become elements named slack-inline, which carry the parsed node as
 * JSON. A single line end is a line break. Code stays as it is, and HTML is
 * visible text.
 */
export function remarkSlack() {
  return (tree: unknown) => walk(tree as Node);
}

function walk(node: Node) {
  if (!node.children) return;
  node.children = node.children.flatMap((child) => {
    if ((child.type === 'text' || child.type === 'html') && child.value !== undefined) return split(child.value);
    walk(child);
    return [child];
  });
}

function split(text: string): Node[] {
  const out: Node[] = [];
  let at = 0;
  for (const match of text.matchAll(slackMarkup)) {
    const token = match[0];
    if (token === '\n') {
      if (match.index > at) out.push({ type: 'text', value: text.slice(at, match.index) });
      out.push({ type: 'break' });
      at = match.index + 1;
      continue;
    }
    const inline: Inline | undefined = token.startsWith('<')
      ? angle(token.slice(1, -1))
      : { t: 'emoji', name: token.slice(1, -1) };
    if (!inline || inline.t === 'text') continue;
    if (match.index > at) out.push({ type: 'text', value: text.slice(at, match.index) });
    out.push({
      type: 'slackInline',
      children: [],
      data: { hName: 'slack-inline', hProperties: { node: JSON.stringify(inline) } },
    });
    at = match.index + token.length;
  }
  if (at < text.length) out.push({ type: 'text', value: text.slice(at) });
  return out;
}
