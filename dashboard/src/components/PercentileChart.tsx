/** Percentiles over time. Loaded on demand, because the chart library is large. */
import { CartesianGrid, Line, LineChart, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { Percentiles, Series } from "../api/types.gen";
import { formatExactTime, formatDuration } from "../lib/format";

const PARTS = ["p50", "p95", "p99"] as const;
type Part = (typeof PARTS)[number];
const COLORS: Record<Part, string> = { p50: "var(--good)", p95: "var(--warn)", p99: "var(--bad)" };
const LABELS: Record<Part, string> = { p50: "50 % within", p95: "95 % within", p99: "99 % within" };

export function PercentileChart({ series, metric, title, height = 200 }: { series: Series; metric: "wait" | "run"; title: string; height?: number }) {
  const showDate = series.step * series.points.length > 86_400;
  const clock = new Intl.DateTimeFormat(undefined, showDate ? { month: "short", day: "numeric", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" });
  const points = series.points.map((point) => ({ at: point.at, ...pick(point[metric]) }));
  const latest = points.findLast((point) => point.p50 !== null);
  const summary = latest ? PARTS.map((part) => `${LABELS[part]} ${formatDuration(latest[part])}`).join(", ") : "no data in this window";
  return (
    <figure className="chart" aria-label={`${title}. Most recent: ${summary}.`}>
      <h3>{title}</h3>
      <ResponsiveContainer width="100%" height={height}>
        <LineChart data={points} margin={{ top: 8, right: 8, bottom: 0, left: 0 }} accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="at" tickFormatter={(at: string) => clock.format(Date.parse(at))} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} minTickGap={48} />
          <YAxis width={52} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} axisLine={false} tickFormatter={(value: number) => formatDuration(value)} />
          <Tooltip
            isAnimationActive={false}
            cursor={{ stroke: "var(--line-strong)" }}
            content={({ active, payload, label }) =>
              active && payload?.length ? (
                <div className="chart-tip">
                  <div className="soft">{formatExactTime(String(label))}</div>
                  {PARTS.map((part) => (
                    <div key={part}>
                      <span className={`swatch ${part}`} /> {LABELS[part]} <strong className="num">{formatDuration((payload[0]?.payload as Record<Part, number | null>)[part])}</strong>
                    </div>
                  ))}
                </div>
              ) : null
            }
          />
          {PARTS.map((part) => (
            // An interval without data is a gap, not zero. A single value is a dot.
            <Line key={part} dataKey={part} stroke={COLORS[part]} strokeWidth={1.6} dot={{ r: 1.6, fill: COLORS[part], strokeWidth: 0 }} connectNulls={false} isAnimationActive={false} type="linear" />
          ))}
        </LineChart>
      </ResponsiveContainer>
      <figcaption className="row small soft">
        {PARTS.map((part) => (
          <span key={part} className="nowrap">
            <span className={`swatch ${part}`} /> {part} <strong className="num">{formatDuration(latest?.[part])}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function pick(percentiles: Percentiles): Record<Part, number | null> {
  return { p50: percentiles.p50, p95: percentiles.p95, p99: percentiles.p99 };
}
