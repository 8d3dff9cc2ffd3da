const DAY = 24 * 60 * 60 * 1000;

function parse(date) {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(`${date}T00:00:00Z`) : NaN;
  if (Number.isNaN(time)) {
    throw new RangeError(`not a date: ${date}`);
  }
  return time;
}

// hireDays counts the days of a hire. The first and the last both count.
export function hireDays(from, to) {
  const days = Math.round((parse(to) - parse(from)) / DAY) + 1;
  if (days < 1) {
    throw new RangeError(`the hire ends (${to}) before it starts (${from})`);
  }
  return days;
}
