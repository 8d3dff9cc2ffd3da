import { describe, expect, it } from 'vitest';
import { complete, triggerAt, wrap } from './complete';

describe('triggerAt', () => {
  it.each([
    ['@de', 3, { kind: '@', query: 'de', start: 0 }],
    ['hi @', 4, { kind: '@', query: '', start: 3 }],
    ['see #en more', 7, { kind: '#', query: 'en', start: 4 }],
    [':ta', 3, { kind: ':', query: 'ta', start: 0 }],
    ['/deck', 5, { kind: '/', query: 'deck', start: 0 }],
    [':t', 2, undefined],
    ['a@b', 3, undefined],
    ['@ada ', 5, undefined],
    ['hi /deck', 8, undefined],
  ])('%j at %d', (text, caret, want) => expect(triggerAt(text, caret)).toEqual(want));
});

it('completes what was being typed', () => {
  expect(complete('hi @de there', 6, { kind: '@', query: 'de', start: 3 }, '@deckhand')).toEqual({
    text: 'hi @deckhand there',
    caret: 13,
  });
});

describe('wrap', () => {
  it('puts marks around the selection, and takes them away again', () => {
    expect(wrap('a b c', 2, 3, '*')).toEqual({ text: 'a *b* c', from: 3, to: 4 });
    expect(wrap('a *b* c', 3, 4, '*')).toEqual({ text: 'a b c', from: 2, to: 3 });
  });
  it('puts code blocks on lines of their own', () => {
    expect(wrap('x', 0, 1, '```').text).toBe('```\nx\n```');
  });
});
