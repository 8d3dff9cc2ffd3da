import { describe, expect, it } from 'vitest';
import { angle, parseInline, parseMrkdwn, type Inline } from './mrkdwn';

const text = (t: string): Inline => ({ t: 'text', text: t });

describe('parseInline', () => {
  it.each<[string, Inline[]]>([
    ['plain', [text('plain')]],
    ['*bold* text', [{ t: 'bold', children: [text('bold')] }, text(' text')]],
    [
      '_it_ and ~gone~',
      [{ t: 'italic', children: [text('it')] }, text(' and '), { t: 'strike', children: [text('gone')] }],
    ],
    ['*_both_*', [{ t: 'bold', children: [{ t: 'italic', children: [text('both')] }] }]],
    ['(*bold*), then', [text('('), { t: 'bold', children: [text('bold')] }, text('), then')]],
    ['`a < b`', [{ t: 'code', text: 'a < b' }]],
    ['`*no*`', [{ t: 'code', text: '*no*' }]],
    ['`a &lt; b`', [{ t: 'code', text: 'a < b' }]],
    ['one\ntwo', [text('one'), { t: 'break' }, text('two')]],
    ['done :tada:', [text('done '), { t: 'emoji', name: 'tada' }]],
    [':+1::skin-tone-3:', [{ t: 'emoji', name: '+1::skin-tone-3' }]],
    ['&lt;b&gt; &amp; &amp;lt;', [text('<b> & &lt;')]],
  ])('%s', (source, want) => expect(parseInline(source)).toEqual(want));

  it.each([
    '2 * 3 * 4',
    'snake_case_name',
    'a*b*c',
    '* not a list',
    '*open',
    '**',
    '~/.config',
    'file_*',
    '*a\nb*',
    '`open',
    '10:30:45',
    '<b>',
    '<@nobody>',
    'a <',
    '__init__',
  ])('leaves %j as it is', (source) => {
    const flat = parseInline(source).map((node) =>
      node.t === 'text' ? node.text : node.t === 'break' ? '\n' : `[${node.t}]`,
    );
    expect(flat.join('')).toBe(source);
  });

  it('closes at the last marker that can close', () => {
    expect(parseInline('*a*b*')).toEqual([{ t: 'bold', children: [text('a*b')] }]);
    expect(parseInline('*`a*b`*')).toEqual([{ t: 'bold', children: [{ t: 'code', text: 'a*b' }] }]);
  });

  it('links bare addresses without the sentence around them', () => {
    expect(parseInline('see https://example.com/a_b_c?x=1&amp;y=2.')).toEqual([
      text('see '),
      { t: 'link', href: 'https://example.com/a_b_c?x=1&y=2', text: 'https://example.com/a_b_c?x=1&y=2' },
      text('.'),
    ]);
    expect(parseInline('(https://example.com/x)')).toEqual([
      text('('),
      { t: 'link', href: 'https://example.com/x', text: 'https://example.com/x' },
      text(')'),
    ]);
  });
});

describe('angle', () => {
  it.each<[string, Inline | undefined]>([
    ['@U0ADA', { t: 'user', id: 'U0ADA', label: undefined }],
    ['@U0ADA|ada', { t: 'user', id: 'U0ADA', label: 'ada' }],
    ['#C0ENG|engineering', { t: 'channel', id: 'C0ENG', label: 'engineering' }],
    ['!subteam^S0APPROVERS|@approvers', { t: 'group', id: 'S0APPROVERS', label: '@approvers' }],
    ['!here', { t: 'broadcast', range: 'here' }],
    ['!channel|channel', { t: 'broadcast', range: 'channel' }],
    [
      '!date^1392734382^{date_short}|Feb 18',
      { t: 'date', unix: 1392734382, format: '{date_short}', href: undefined, fallback: 'Feb 18' },
    ],
    [
      '!date^1392734382^{time}^https://example.com|x',
      { t: 'date', unix: 1392734382, format: '{time}', href: 'https://example.com', fallback: 'x' },
    ],
    ['https://example.com|the &amp; site', { t: 'link', href: 'https://example.com', text: 'the & site' }],
    ['mailto:ada@example.com', { t: 'link', href: 'mailto:ada@example.com', text: 'ada@example.com' }],
    ['javascript:alert(1)|x', undefined],
    ['!unknown^1|label', { t: 'text', text: 'label' }],
    ['b', undefined],
  ])('<%s>', (inner, want) => expect(angle(inner)).toEqual(want));
});

describe('parseMrkdwn', () => {
  it('keeps code blocks whole and lets text stand around them', () => {
    expect(parseMrkdwn('before\n```\nif a &lt; b {\n\t*x*\n}\n```\nafter')).toEqual([
      { t: 'para', children: [text('before')] },
      { t: 'pre', text: 'if a < b {\n\t*x*\n}' },
      { t: 'para', children: [text('after')] },
    ]);
  });

  it('takes an unclosed fence as text', () => {
    expect(parseMrkdwn('```open')).toEqual([{ t: 'para', children: [text('```open')] }]);
  });

  it('joins quoted lines, written either way', () => {
    expect(parseMrkdwn('&gt; one\n> two\nthree')).toEqual([
      { t: 'quote', children: [{ t: 'para', children: [text('one'), { t: 'break' }, text('two')] }] },
      { t: 'para', children: [text('three')] },
    ]);
  });

  it('quotes all that follows three signs', () => {
    expect(parseMrkdwn('said:\n&gt;&gt;&gt; one\ntwo')).toEqual([
      { t: 'para', children: [text('said:')] },
      { t: 'quote', children: [{ t: 'para', children: [text('one'), { t: 'break' }, text('two')] }] },
    ]);
  });

  it('keeps empty lines', () => {
    expect(parseMrkdwn('a\n\nb')).toEqual([
      { t: 'para', children: [text('a'), { t: 'break' }, { t: 'break' }, text('b')] },
    ]);
  });

  it('has nothing to say about nothing', () => {
    expect(parseMrkdwn('')).toEqual([]);
  });
});
