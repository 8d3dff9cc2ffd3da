import { useLayoutEffect, useRef, useState, type RefObject } from 'react';
import type { Block } from '../slack/types';
import { ringPath, shortNumber, ticks } from './scale';

interface Point {
  label: string;
  value: number;
}

interface Series {
  name: string;
  data: Point[];
}

interface ChartData {
  type: string;
  segments?: Point[];
  series?: Series[];
  axis_config?: { categories?: string[]; x_label?: string; y_label?: string };
}

const colour = (i: number) => `var(--chart-${(i % 6) + 1})`;

/** The data_visualization block: a drawing for eyes, and the same as a table behind it. */
export function Chart({ block }: { block: Block }) {
  const chart = block.chart as ChartData | undefined;
  const title = String(block.title ?? '');
  if (!chart) return null;
  const pie = chart.type === 'pie';
  const series: Series[] = pie ? [{ name: 'Value', data: chart.segments ?? [] }] : (chart.series ?? []);
  const categories = chart.axis_config?.categories ?? series[0]?.data.map((point) => point.label) ?? [];
  const legend = pie
    ? (chart.segments ?? []).map((segment) => segment.label)
    : series.length > 1
      ? series.map((one) => one.name)
      : [];
  return (
    <figure className="chart">
      <figcaption>{title}</figcaption>
      <div className={pie ? 'chart-body pie' : 'chart-body'}>
        {pie ? (
          <Pie segments={chart.segments ?? []} title={title} />
        ) : (
          <Plot kind={chart.type} series={series} categories={categories} axis={chart.axis_config} title={title} />
        )}
        {legend.length > 0 && (
          <ul className="chart-legend">
            {legend.map((name, i) => (
              <li key={i}>
                <i style={{ background: colour(i) }} />
                {name}
                {pie && <b>{shortNumber(chart.segments?.[i]?.value ?? 0)}</b>}
              </li>
            ))}
          </ul>
        )}
      </div>
      <details className="chart-data">
        <summary>Data</summary>
        <div className="table-scroll" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col" />
                {series.map((one) => (
                  <th key={one.name} scope="col">
                    {one.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {(pie ? (chart.segments ?? []).map((segment) => segment.label) : categories).map((label) => (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  {series.map((one) => (
                    <td key={one.name}>{one.data.find((point) => point.label === label)?.value ?? ''}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function Pie({ segments, title }: { segments: Point[]; title: string }) {
  const total = segments.reduce((sum, segment) => sum + Math.max(0, segment.value), 0) || 1;
  let turn = 0;
  return (
    <svg viewBox="0 0 160 160" className="chart-pie" role="img" aria-label={`${title}: pie chart`}>
      {segments.map((segment, i) => {
        const from = turn;
        turn += Math.max(0, segment.value) / total;
        return (
          <path
            key={i}
            d={ringPath(80, 80, 74, 44, from, turn)}
            fill={colour(i)}
            stroke="var(--surface)"
            strokeWidth="1.5"
          >
            <title>{`${segment.label}: ${segment.value} (${Math.round((segment.value / total) * 100)} %)`}</title>
          </path>
        );
      })}
    </svg>
  );
}

const height = 240;
const margin = { top: 10, right: 12, bottom: 44, left: 54 };

function Plot(props: {
  kind: string;
  series: Series[];
  categories: string[];
  axis?: ChartData['axis_config'];
  title: string;
}) {
  const { kind, series, categories, axis } = props;
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame, 560);
  const values = series.flatMap((one) => one.data.map((point) => point.value));
  const steps = ticks(Math.min(0, ...values), Math.max(0, ...values), 4);
  const low = steps[0] ?? 0;
  const high = steps[steps.length - 1] ?? 1;
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const y = (value: number) => margin.top + inner.height * (1 - (value - low) / (high - low || 1));
  const band = inner.width / Math.max(1, categories.length);
  const x = (i: number) => margin.left + band * (i + 0.5);
  const widest = Math.max(1, ...categories.map((label) => label.length)) * 6.5 + 8;
  const every = Math.max(1, Math.ceil(widest / band));
  const at = (one: Series, label: string) => one.data.find((point) => point.label === label)?.value;

  return (
    <div ref={frame} className="chart-plot">
      <svg width={width} height={height} role="img" aria-label={`${props.title}: ${kind} chart`}>
        {steps.map((step) => (
          <g key={step}>
            <line
              x1={margin.left}
              x2={width - margin.right}
              y1={y(step)}
              y2={y(step)}
              className={step === 0 ? 'chart-axis' : 'chart-grid'}
            />
            <text x={margin.left - 8} y={y(step) + 4} textAnchor="end">
              {shortNumber(step)}
            </text>
          </g>
        ))}
        {categories.map(
          (label, i) =>
            i % every === 0 && (
              <text key={i} x={x(i)} y={height - margin.bottom + 16} textAnchor="middle">
                {label}
              </text>
            ),
        )}
        {axis?.x_label && (
          <text x={margin.left + inner.width / 2} y={height - 6} textAnchor="middle" className="chart-label">
            {axis.x_label}
          </text>
        )}
        {axis?.y_label && (
          <text
            transform={`translate(11 ${margin.top + inner.height / 2}) rotate(-90)`}
            textAnchor="middle"
            className="chart-label"
          >
            {axis.y_label}
          </text>
        )}
        {series.map((one, s) =>
          kind === 'bar' ? (
            <g key={s} fill={colour(s)}>
              {categories.map((label, i) => {
                const value = at(one, label);
                if (value === undefined) return null;
                const bar = Math.min((band * 0.72) / series.length, 48);
                const left = x(i) - (bar * series.length) / 2 + s * bar;
                return (
                  <rect
                    key={i}
                    x={left + 1}
                    width={Math.max(1, bar - 2)}
                    y={Math.min(y(value), y(0))}
                    height={Math.max(1, Math.abs(y(value) - y(0)))}
                    rx="2"
                  >
                    <title>{`${one.name}, ${label}: ${value}`}</title>
                  </rect>
                );
              })}
            </g>
          ) : (
            <Line
              key={s}
              name={one.name}
              area={kind === 'area'}
              colour={colour(s)}
              base={y(0)}
              points={categories.flatMap((label, i) => {
                const value = at(one, label);
                return value === undefined ? [] : [{ x: x(i), y: y(value), label, value }];
              })}
            />
          ),
        )}
      </svg>
    </div>
  );
}

/** How wide an element is now, so that a drawing keeps its letters readable. */
function useWidth(element: RefObject<HTMLElement | null>, first: number): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const update = () => setWidth(Math.max(200, Math.round(box.clientWidth)));
    update();
    const watch = new ResizeObserver(update);
    watch.observe(box);
    return () => watch.disconnect();
  }, [element]);
  return width;
}

function Line(props: {
  name: string;
  area: boolean;
  colour: string;
  base: number;
  points: { x: number; y: number; label: string; value: number }[];
}) {
  const { points } = props;
  const first = points[0];
  const last = points[points.length - 1];
  if (!first || !last) return null;
  const line = `M${points.map((point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join('L')}`;
  return (
    <g>
      {props.area && (
        <path d={`${line}L${last.x} ${props.base}L${first.x} ${props.base}Z`} fill={props.colour} fillOpacity="0.22" />
      )}
      <path d={line} fill="none" stroke={props.colour} strokeWidth="2" strokeLinejoin="round" />
      {points.map((point) => (
        <circle key={point.label} cx={point.x} cy={point.y} r="3" fill={props.colour}>
          <title>{`${props.name}, ${point.label}: ${point.value}`}</title>
        </circle>
      ))}
    </g>
  );
}
