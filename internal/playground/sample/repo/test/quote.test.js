import assert from 'node:assert/strict';
import { test } from 'node:test';

import { quote } from '../src/quote.js';

test('two days cost the full price', () => {
  const q = quote({ boat: 'dinghy', from: '2026-07-01', to: '2026-07-02' });
  assert.equal(q.percent, 0);
  assert.equal(q.total, 9180);
});

test('five days get 10 % off', () => {
  const q = quote({ boat: 'canoe', from: '2026-07-01', to: '2026-07-05' });
  assert.equal(q.percent, 10);
  assert.equal(q.total, 11250);
});

test('a full week gets 20 % off', () => {
  const q = quote({ boat: 'dinghy', from: '2026-07-06', to: '2026-07-12' });
  assert.equal(q.days, 7);
  assert.equal(q.percent, 20);
  assert.equal(q.total, 25704);
});

test('ten days get 20 % off', () => {
  const q = quote({ boat: 'cruiser', from: '2026-07-01', to: '2026-07-10' });
  assert.equal(q.percent, 20);
  assert.equal(q.total, 151200);
});

test('a boat that we do not have is refused', () => {
  assert.throws(() => quote({ boat: 'submarine', from: '2026-07-01', to: '2026-07-02' }), /no such boat/);
});
