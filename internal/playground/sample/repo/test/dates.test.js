import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hireDays } from '../src/dates.js';

test('the first and the last day both count', () => {
  assert.equal(hireDays('2026-07-01', '2026-07-01'), 1);
  assert.equal(hireDays('2026-07-01', '2026-07-03'), 3);
});

test('a hire over the end of a month', () => {
  assert.equal(hireDays('2026-02-27', '2026-03-01'), 3);
});

test('a hire that ends before it starts is refused', () => {
  assert.throws(() => hireDays('2026-07-03', '2026-07-01'), RangeError);
  assert.throws(() => hireDays('yesterday', '2026-07-01'), RangeError);
});
