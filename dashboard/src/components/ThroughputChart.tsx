/** What ended, step by step. Loaded when it is shown: charts are large. */
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { Series } from "../api/types.gen";
import { compact, count, exact } from "../lib/format";

const NAMES = { succeeded: "succeeded", failed: "failed attempts", dead: "died of them" } as const;
const COLOURS = { succeeded: "var(--good)", failed: "var(--bad)" } as const;
type Line = keyof typeof NAMES;
const LINES = Object.keys(NAMES) as Line[];
const BARS = ["succeeded", "failed"] as const;

export function ThroughputChart({ series, height = 220 }: { series: Series; height?: number }) {
  const day = series.step * series.points.length > 86_400;
  const clock = new Intl.DateTimeFormat(undefined, day ? { month: "short", day: "numeric", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" });
  const points = series.points.map(({ at, totals }) => ({ at, succeeded: totals.succeeded, failed: totals.failed, dead: totals.dead }));
  const whole = series.points.reduce((sum, { totals }) => ({ succeeded: sum.succeeded + totals.succeeded, failed: sum.failed + totals.failed, dead: sum.dead + totals.dead }), { succeeded: 0, failed: 0, dead: 0 });
  return (
    <figure className="chart" aria-label={`In this window ${LINES.map((line) => `${count(whole[line])} ${NAMES[line]}`).join(", ")}.`}>
      <ResponsiveContainer width="100%" height={height}>
        <BarChart data={points} margin={{ top: 8, right: 8, bottom: 0, left: 0 }} barCategoryGap="12%" accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="at" tickFormatter={(at: string) => clock.format(Date.parse(at))} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} minTickGap={48} />
          <YAxis width={40} stroke="var(--faint)" tick={{ fontSize: 11, fill: "var(--soft)" }} tickLine={false} axisLine={false} allowDecimals={false} tickFormatter={(value: number) => compact(value)} />
          <Tooltip
            isAnimationActive={false}
            cursor={{ fill: "var(--hover)" }}
            content={({ active, payload, label }) =>
              active && payload?.length ? (
                <div className="chart-tip">
                  <div className="soft">{exact(String(label))}</div>
                  {LINES.map((line) => (
                    <div key={line}>
                      <span className={`swatch ${line}`} /> {NAMES[line]}: <strong className="num">{count((payload[0]?.payload as Record<Line, number>)[line])}</strong>
                    </div>
                  ))}
                </div>
              ) : null
            }
          />
          {BARS.map((line) => (
            <Bar key={line} dataKey={line} stackId="ended" fill={COLOURS[line]} fillOpacity={line === "succeeded" ? 0.75 : 0.9} isAnimationActive={false} />
          ))}
        </BarChart>
      </ResponsiveContainer>
      <figcaption className="row small soft">
        {LINES.map((line) => (
          <span key={line} className="nowrap">
            <span className={`swatch ${line}`} /> {NAMES[line]} <strong className="num">{compact(whole[line])}</strong>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
