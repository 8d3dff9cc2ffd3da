import assert from 'node:assert/strict';
import { test } from 'node:test';

import { receipt } from '../src/receipt.js';

test('a receipt names the discount', () => {
  const text = receipt({ boat: 'Canoe', days: 5, full: 12500, percent: 10, discount: 1250, total: 11250 });
  assert.equal(text, 'Canoe, 5 days: €125.00\nDiscount 10 %: -€12.50\nTo pay: €112.50');
});

test('a receipt without a discount does not mention one', () => {
  const text = receipt({ boat: 'Canoe', days: 1, full: 2500, percent: 0, discount: 0, total: 2500 });
  assert.equal(text, 'Canoe, 1 day: €25.00\nTo pay: €25.00');
});
