import { boats } from './boats.js';
import { hireDays } from './dates.js';

// The longer the hire, the better the price. The longest tier comes first.
const tiers = [
  { days: 7, percent: 20 },
  { days: 3, percent: 10 },
];

// discountFor answers the discount of a hire in percent.
export function discountFor(days) {
  const tier = tiers.find((t) => days > t.days);
  return tier ? tier.percent : 0;
}

// quote prices a hire. All amounts are whole cents.
export function quote({ boat, from, to }) {
  const found = boats[boat];
  if (!found) {
    throw new RangeError(`no such boat: ${boat}`);
  }
  const days = hireDays(from, to);
  const full = days * found.perDay;
  const percent = discountFor(days);
  const discount = Math.round((full * percent) / 100);
  return { boat: found.name, days, full, percent, discount, total: full - discount };
}
