const money = (cents) => `€${(cents / 100).toFixed(2)}`;

// receipt writes a quote for people.
export function receipt(q) {
  const lines = [`${q.boat}, ${q.days} ${q.days === 1 ? 'day' : 'days'}: ${money(q.full)}`];
  if (q.discount > 0) {
    lines.push(`Discount ${q.percent} %: -${money(q.discount)}`);
  }
  lines.push(`To pay: ${money(q.total)}`);
  return lines.join('\n');
}
