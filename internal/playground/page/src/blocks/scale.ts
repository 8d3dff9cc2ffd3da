/** Round steps that cover [low, high], about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  if (high <= low) high = low + 1;
  const span = high - low;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = ([1, 2, 5, 10].find((factor) => span / count / power <= factor) ?? 10) * power;
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step);
  const out: number[] = [];
  for (let i = first; i <= last; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** A number as a chart's axis shows it. */
export function shortNumber(value: number): string {
  return new Intl.NumberFormat('en-US', {
    notation: Math.abs(value) >= 10_000 ? 'compact' : 'standard',
    maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2,
  }).format(value);
}

/** The path of a piece of a ring from one fraction of the turn to another. */
export function ringPath(cx: number, cy: number, outer: number, inner: number, from: number, to: number): string {
  // A whole turn would begin where it ends and draw nothing.
  const end = Math.min(to, from + 0.99999);
  const point = (radius: number, turn: number) => {
    const angle = turn * 2 * Math.PI - Math.PI / 2;
    return `${(cx + radius * Math.cos(angle)).toFixed(2)} ${(cy + radius * Math.sin(angle)).toFixed(2)}`;
  };
  const large = end - from > 0.5 ? 1 : 0;
  return `M${point(outer, from)}A${outer} ${outer} 0 ${large} 1 ${point(outer, end)}L${point(inner, end)}A${inner} ${inner} 0 ${large} 0 ${point(inner, from)}Z`;
}
