import { describe, expect, it } from 'vitest';
import { inWords } from './signs';

describe('signs without a font', () => {
  it.each([
    ['✅ Done · 2 steps', '[done] Done · 2 steps'],
    ['⚠️ *Rewrites history*', '[warning] *Rewrites history*'],
    ['⏹️ Stopped', '[stopped] Stopped'],
    ['🎉 ok', '[tada] ok'],
    ['1 # * © a → b', '1 # * © a → b'],
  ])('%s', (text, want) =>
    expect(inWords(text, (char) => char !== '©')).toBe(want),
  );
  it('leaves what a font has', () => expect(inWords('✅ 🎉', (char) => char === '🎉')).toBe('✅ [tada]'));
});
