/** How long jobs wait and run, by type, and how that changed. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useRef } from "react";
import { throughputQuery, typesQuery, type Window } from "../api/queries";
import type { TypeFigures } from "../api/types.gen";
import { Choice } from "../components/Choice";
import { type Column, DataTable } from "../components/DataTable";
import { Answered, Card, Empty, Loading } from "../components/States";
import { compact, percent, rate, span } from "../lib/format";

const PercentileChart = lazy(() => import("../components/PercentileChart").then((module) => ({ default: module.PercentileChart })));

const WINDOWS: readonly Window[] = ["15m", "1h", "6h", "24h", "7d"];

export function Performance() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((each) => each === search.window) ?? "1h";
  const types = useQuery(typesQuery({ window }));
  // The busiest when the page was opened: it stays, though another may be busier meanwhile.
  const first = useRef<string>(undefined);
  first.current ??= types.data?.items[0]?.type;
  const chosen = search.type ?? first.current;
  const series = useQuery({ ...throughputQuery({ window, ...(chosen ? { type: chosen } : {}) }), enabled: chosen !== undefined });
  const go = useCallback(
    (next: Record<string, string | undefined>) => {
      const kept = Object.fromEntries(Object.entries({ window, type: search.type, ...next }).filter((each): each is [string, string] => each[1] !== undefined));
      void navigate({ to: "/performance", search: kept, replace: true });
    },
    [navigate, search.type, window],
  );
  const open = useCallback((row: TypeFigures) => go({ type: row.type }), [go]);
  const columns: Column<TypeFigures>[] = [
    {
      id: "type",
      header: "Type",
      value: (row) => row.type,
      className: "name-cell",
      cell: (row) => (
        <button type="button" className="plain cut strong" title={row.type} aria-pressed={row.type === chosen} onClick={() => go({ type: row.type })}>
          {row.type}
        </button>
      ),
    },
    { id: "started", header: "Started", value: (row) => row.totals.started, highFirst: true, className: "right num", cell: (row) => compact(row.totals.started) },
    { id: "rate", header: "Done /s", value: (row) => row.rates.finished, highFirst: true, className: "right num", cell: (row) => rate(row.rates.finished) },
    { id: "failed", header: "Failed", value: (row) => row.failure_ratio, highFirst: true, className: "right num nowrap", cell: (row) => <span className={(row.failure_ratio ?? 0) > 0.2 ? "bad" : undefined}>{percent(row.failure_ratio)}</span> },
    ...(["wait", "run"] as const).flatMap((what) =>
      (["p50", "p95", "p99"] as const).map((part): Column<TypeFigures> => ({
        id: `${what}-${part}`,
        header: `${what} ${part}`,
        value: (row) => row[what][part],
        highFirst: true,
        className: "right num nowrap",
        cell: (row) => span(row[what][part]),
      })),
    ),
  ];
  return (
    <>
      <h1 className="hidden-text">Performance</h1>
      <Card title={chosen ? `How long ${chosen} takes` : "How long jobs take"} label="Percentiles over time" aside={<Choice label="Window" value={window} options={WINDOWS} onChange={(value) => go({ window: value })} />}>
        <div className="pad">
          {chosen === undefined ? (
            <Answered query={types}>{() => <Empty title="Nothing happened in this window">Choose a longer one, or wait for jobs to end.</Empty>}</Answered>
          ) : (
            <Answered query={series} lines={6}>
              {(data) => (
                <Suspense fallback={<Loading lines={6} />}>
                  <div className="columns even">
                    <PercentileChart series={data} what="wait" title="Waited, from due to started" />
                    <PercentileChart series={data} what="run" title="Ran, each attempt" />
                  </div>
                </Suspense>
              )}
            </Answered>
          )}
        </div>
      </Card>
      <Card title="By type" aside={<span className="small soft">percentiles are off by a tenth at the most</span>}>
        <Answered query={types} lines={6}>
          {(list) => (list.items.length ? <DataTable label="Types of jobs" columns={columns} rows={list.items} rowId={(row) => row.type} onOpen={open} /> : <Empty title="No type to show">Nothing was submitted or ended in this window.</Empty>)}
        </Answered>
      </Card>
    </>
  );
}
