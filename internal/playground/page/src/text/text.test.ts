import { describe, expect, it } from 'vitest';
import { emojiChar, searchEmoji, withEmoji } from './emoji';
import { ago, dayLabel, fileSize, slackDate, tsMillis } from './format';
import { localSrc, safeHref } from './links';
import { remarkSlack, type Node } from './markdownSlack';

describe('emoji', () => {
  it.each([
    ['eyes', '👀'],
    ['+1', '👍'],
    ['thumbsup', '👍'],
    ['white_check_mark', '✅'],
    ['wave::skin-tone-5', '👋🏾'],
    ['hourglass_flowing_sand', '⏳'],
  ])(':%s:', (name, char) => expect(emojiChar(name)).toBe(char));

  it('knows no others', () => {
    expect(emojiChar('no_such_emoji')).toBeUndefined();
    expect(emojiChar('constructor')).toBeUndefined();
  });

  it('replaces shortcodes in plain text and leaves times alone', () => {
    expect(withEmoji('ok :tada: at 10:30:15 :nope:')).toBe('ok 🎉 at 10:30:15 :nope:');
  });

  it('finds what begins with the letters first', () => {
    expect(searchEmoji('rocket', 3)[0]).toEqual({ name: 'rocket', char: '🚀' });
    expect(searchEmoji('tad', 5).map((emoji) => emoji.name)).toContain('tada');
  });
});

describe('times', () => {
  const now = new Date(2024, 4, 15, 12, 0).getTime();
  it('reads a Slack ts', () => expect(tsMillis('1712345678.000100')).toBe(1712345678000));
  it('names days', () => {
    expect(dayLabel(now - 1000, now)).toBe('Today');
    expect(dayLabel(now - 86_400_000, now)).toBe('Yesterday');
    expect(dayLabel(new Date(2024, 4, 1).getTime(), now)).toBe('Wednesday, May 1');
    expect(dayLabel(new Date(2022, 4, 1).getTime(), now)).toBe('Sunday, May 1, 2022');
  });
  it('says how long ago', () => {
    expect(ago(now - 5000, now)).toBe('just now');
    expect(ago(now - 60_000, now)).toBe('1 minute ago');
    expect(ago(now - 3 * 3_600_000, now)).toBe('3 hours ago');
  });
  it("fills in a date's format and leaves unknown tokens", () => {
    const unix = new Date(2024, 4, 15, 16, 5).getTime() / 1000;
    expect(slackDate(unix, 'Due {date_short_pretty} at {time}, {what}', now)).toBe('Due Today at 4:05 PM, {what}');
    expect(slackDate(unix, '{date_num}', now)).toBe('2024-05-15');
  });
  it('writes sizes', () =>
    expect([12, 1200, 34_000, 5_600_000].map(fileSize)).toEqual(['12 bytes', '1.2 KB', '34 KB', '5.6 MB']));
});

describe('links', () => {
  it.each(['javascript:alert(1)', 'data:text/html,x', 'vbscript:x', '/path', 'JaVaScRiPt:alert(1)', ''])(
    'refuses %j',
    (href) => expect(safeHref(href)).toBeUndefined(),
  );
  it.each(['https://example.com', 'mailto:a@b.c'])('takes %s', (href) => expect(safeHref(href)).toBe(href));

  const here = { hostname: '127.0.0.1', port: '8065', origin: 'http://127.0.0.1:8065' };
  it.each([
    ['/files/a.png', '/files/a.png'],
    ['http://localhost:8065/files/a.png?x=1', '/files/a.png?x=1'],
    ['http://127.0.0.1:8065/a', '/a'],
    ['data:image/png;base64,AA', 'data:image/png;base64,AA'],
    ['data:text/html,x', undefined],
    ['https://example.com/a.png', undefined],
    ['http://127.0.0.1:9999/a.png', undefined],
    ['javascript:alert(1)', undefined],
    [undefined, undefined],
  ])('loads %s from here only', (src, want) => expect(localSrc(src, here)).toBe(want));
});

describe('remarkSlack', () => {
  const run = (children: Node[]) => {
    const tree: Node = { type: 'root', children: [{ type: 'paragraph', children }] };
    remarkSlack()(tree);
    return tree.children?.[0]?.children?.map((node) => node.value ?? node.data?.hProperties.node);
  };
  it('finds mentions and shortcodes in texts', () => {
    expect(run([{ type: 'text', value: 'hi <@U0ADA> :tada: 10:30' }])).toEqual([
      'hi ',
      '{"t":"user","id":"U0ADA"}',
      ' ',
      '{"t":"emoji","name":"tada"}',
      ' 10:30',
    ]);
  });
  it('finds those that CommonMark takes for HTML', () => {
    expect(run([{ type: 'html', value: '<!here>' }])).toEqual(['{"t":"broadcast","range":"here"}']);
  });
  it('makes HTML visible text', () => {
    expect(run([{ type: 'html', value: '<script>' }])).toEqual(['<script>']);
  });
  it('breaks lines where the text does', () => {
    const tree: Node = {
      type: 'root',
      children: [{ type: 'paragraph', children: [{ type: 'text', value: 'one\ntwo' }] }],
    };
    remarkSlack()(tree);
    expect(tree.children?.[0]?.children?.map((node) => node.type)).toEqual(['text', 'break', 'text']);
  });
  it('does not look into code', () => {
    expect(run([{ type: 'inlineCode', value: '<@U0ADA>' }])).toEqual(['<@U0ADA>']);
  });
});
