/** Percentiles step by step. Loaded when it is shown: charts are large. */
import { CartesianGrid, Line, LineChart, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { Percentiles, Series } from "../api/types.gen";
import { exact, span } from "../lib/format";

const PARTS = ["p50", "p95", "p99"] as const;
type Part = (typeof PARTS)[number];
const COLOURS: Record<Part, string> = { p50: "var(--good)", p95: "var(--warn)", p99: "var(--bad)" };
const WORDS: Record<Part, string> = { p50: "half of them within", p95: "95 % within", p99: "99 % within" };

export function PercentileChart({ series, what, title, height = 200 }: { series: Series; what: "wait" | "run"; title: string; height?: number }) {
  const day = series.step * series.points.length > 86_400;
  const clock = new Intl.DateTimeFormat(undefined, day ? { month: "short", day: "numeric", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" });
  const points = series.points.map((point) => ({ at: point.at, ...pick(point[what]) }));
  const newest = points.findLast((point) => point.p50 !== null);
  const said = newest ? PARTS.map((part) => `${WORDS[part]} ${span(newest[part])}`).join(", ") : "nothing ended in this window";
  return (
    <figure className="chart" aria-label={`${title}. Lately: ${said}.`}>
      <h3>{title}</h3>
      <ResponsiveContainer width="100%" height={height}>
        <LineChart data={points} margin={{ top: 8, right: 8, bottom: 0, left: 0 }} accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="at" tickFormatter={(at: string) => clock.format(Date.parse(at))} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} minTickGap={48} />
          <YAxis width={52} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} axisLine={false} tickFormatter={(value: number) => span(value)} />
          <Tooltip
            isAnimationActive={false}
            cursor={{ stroke: "var(--line-strong)" }}
            content={({ active, payload, label }) =>
              active && payload?.length ? (
                <div className="chart-tip">
                  <div className="soft">{exact(String(label))}</div>
                  {PARTS.map((part) => (
                    <div key={part}>
                      <span className={`swatch ${part}`} /> {WORDS[part]} <strong className="num">{span((payload[0]?.payload as Record<Part, number | null>)[part])}</strong>
                    </div>
                  ))}
                </div>
              ) : null
            }
          />
          {PARTS.map((part) => (
            // A step in which nothing ended is a gap, not a zero; a lone one is a dot.
            <Line key={part} dataKey={part} stroke={COLOURS[part]} strokeWidth={1.6} dot={{ r: 1.6, fill: COLOURS[part], strokeWidth: 0 }} connectNulls={false} isAnimationActive={false} type="linear" />
          ))}
        </LineChart>
      </ResponsiveContainer>
      <figcaption className="row small soft">
        {PARTS.map((part) => (
          <span key={part} className="nowrap">
            <span className={`swatch ${part}`} /> {part} <strong className="num">{span(newest?.[part])}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function pick(percentiles: Percentiles): Record<Part, number | null> {
  return { p50: percentiles.p50, p95: percentiles.p95, p99: percentiles.p99 };
}
