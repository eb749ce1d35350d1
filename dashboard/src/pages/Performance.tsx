/** Wait and run times by job type, over time. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useRef } from "react";
import { throughputQuery, typeStatsQuery, type Window } from "../api/queries";
import type { TypeStats } from "../api/types.gen";
import { ToggleGroup } from "../components/ToggleGroup";
import { type Column, DataTable } from "../components/DataTable";
import { QueryView, Card, Empty, Loading } from "../components/Feedback";
import { formatCompact, formatPercent, formatRate, formatDuration } from "../lib/format";

const PercentileChart = lazy(() => import("../components/PercentileChart").then((module) => ({ default: module.PercentileChart })));

const WINDOWS: readonly Window[] = ["15m", "1h", "6h", "24h", "7d"];

export function Performance() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((option) => option === search.window) ?? "1h";
  const types = useQuery(typeStatsQuery({ window }));
  // The busiest type when the page was opened stays selected, even if another one becomes busier.
  const initialType = useRef<string>(undefined);
  initialType.current ??= types.data?.items[0]?.type;
  const selected = search.type ?? initialType.current;
  const series = useQuery({ ...throughputQuery({ window, ...(selected ? { type: selected } : {}) }), enabled: selected !== undefined });
  const update = useCallback(
    (next: Record<string, string | undefined>) => {
      const params = Object.fromEntries(Object.entries({ window, type: search.type, ...next }).filter((entry): entry is [string, string] => entry[1] !== undefined));
      void navigate({ to: "/performance", search: params, replace: true });
    },
    [navigate, search.type, window],
  );
  const open = useCallback((row: TypeStats) => update({ type: row.type }), [update]);
  const columns: Column<TypeStats>[] = [
    {
      id: "type",
      header: "Type",
      value: (row) => row.type,
      className: "name-cell",
      cell: (row) => (
        <button type="button" className="plain cut strong" title={row.type} aria-pressed={row.type === selected} onClick={() => update({ type: row.type })}>
          {row.type}
        </button>
      ),
    },
    { id: "started", header: "Started", value: (row) => row.totals.started, descendingFirst: true, className: "right num", cell: (row) => formatCompact(row.totals.started) },
    { id: "rate", header: "Finished/s", value: (row) => row.rates.finished, descendingFirst: true, className: "right num", cell: (row) => formatRate(row.rates.finished) },
    { id: "failed", header: "Failed", value: (row) => row.failure_ratio, descendingFirst: true, className: "right num nowrap", cell: (row) => <span className={(row.failure_ratio ?? 0) > 0.2 ? "bad" : undefined}>{formatPercent(row.failure_ratio)}</span> },
    ...(["wait", "run"] as const).flatMap((metric) =>
      (["p50", "p95", "p99"] as const).map((percentile): Column<TypeStats> => ({
        id: `${metric}-${percentile}`,
        header: `${metric} ${percentile}`,
        value: (row) => row[metric][percentile],
        descendingFirst: true,
        className: "right num nowrap",
        cell: (row) => formatDuration(row[metric][percentile]),
      })),
    ),
  ];
  return (
    <>
      <h1 className="hidden-text">Performance</h1>
      <Card title={selected ? `Wait and run times of ${selected}` : "Wait and run times"} label="Percentiles over time" aside={<ToggleGroup label="Window" value={window} options={WINDOWS} onChange={(value) => update({ window: value })} />}>
        <div className="pad">
          {selected === undefined ? (
            <QueryView query={types}>{() => <Empty title="No data in this window">Choose a longer window, or wait for jobs to finish.</Empty>}</QueryView>
          ) : (
            <QueryView query={series} lines={6}>
              {(data) => (
                <Suspense fallback={<Loading lines={6} />}>
                  <div className="columns even">
                    <PercentileChart series={data} metric="wait" title="Wait time, from due to started" />
                    <PercentileChart series={data} metric="run" title="Run time per attempt" />
                  </div>
                </Suspense>
              )}
            </QueryView>
          )}
        </div>
      </Card>
      <Card title="By type" aside={<span className="small soft">percentiles are accurate to within 10 %</span>}>
        <QueryView query={types} lines={6}>
          {(list) => (list.items.length ? <DataTable label="Job types" columns={columns} rows={list.items} rowId={(row) => row.type} onOpen={open} /> : <Empty title="No data in this window">No job was submitted or finished.</Empty>)}
        </QueryView>
      </Card>
    </>
  );
}
