/** Finished attempts over time. Loaded on demand, because the chart library is large. */
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { Series } from "../api/types.gen";
import { formatCompact, formatCount, formatExactTime } from "../lib/format";

const LABELS = { succeeded: "succeeded", failed: "failed attempts", dead: "dead jobs" } as const;
const COLORS = { succeeded: "var(--good)", failed: "var(--bad)" } as const;
type Line = keyof typeof LABELS;
const LINES = Object.keys(LABELS) as Line[];
const BARS = ["succeeded", "failed"] as const;

export function ThroughputChart({ series, height = 220 }: { series: Series; height?: number }) {
  const showDate = series.step * series.points.length > 86_400;
  const clock = new Intl.DateTimeFormat(undefined, showDate ? { month: "short", day: "numeric", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" });
  const points = series.points.map((point) => ({ at: point.at, succeeded: point.totals.succeeded, failed: point.totals.failed, dead: point.totals.dead }));
  const totals = points.reduce((sum, point) => ({ succeeded: sum.succeeded + point.succeeded, failed: sum.failed + point.failed, dead: sum.dead + point.dead }), { succeeded: 0, failed: 0, dead: 0 });
  return (
    <figure className="chart" aria-label={`In this window: ${LINES.map((line) => `${formatCount(totals[line])} ${LABELS[line]}`).join(", ")}.`}>
      <ResponsiveContainer width="100%" height={height}>
        <BarChart data={points} margin={{ top: 8, right: 8, bottom: 0, left: 0 }} barCategoryGap="12%" accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="at" tickFormatter={(at: string) => clock.format(Date.parse(at))} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} minTickGap={48} />
          <YAxis width={40} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} axisLine={false} allowDecimals={false} tickFormatter={(value: number) => formatCompact(value)} />
          <Tooltip
            isAnimationActive={false}
            cursor={{ fill: "var(--hover)" }}
            content={({ active, payload, label }) =>
              active && payload?.length ? (
                <div className="chart-tip">
                  <div className="soft">{formatExactTime(String(label))}</div>
                  {LINES.map((line) => (
                    <div key={line}>
                      <span className={`swatch ${line}`} /> {LABELS[line]}: <strong className="num">{formatCount((payload[0]?.payload as Record<Line, number>)[line])}</strong>
                    </div>
                  ))}
                </div>
              ) : null
            }
          />
          {BARS.map((line) => (
            <Bar key={line} dataKey={line} stackId="attempts" fill={COLORS[line]} fillOpacity={line === "succeeded" ? 0.75 : 0.9} isAnimationActive={false} />
          ))}
        </BarChart>
      </ResponsiveContainer>
      <figcaption className="row small soft">
        {LINES.map((line) => (
          <span key={line} className="nowrap">
            <span className={`swatch ${line}`} /> {LABELS[line]} <strong className="num">{formatCompact(totals[line])}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
