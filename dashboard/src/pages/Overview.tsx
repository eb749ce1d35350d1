/** Is work flowing, and if not, why. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { pausesQuery } from "../api/operate";
import { jobsQuery, meQuery, queuesQuery, statsQuery, summaryQuery, throughputQuery, workersQuery, type Window } from "../api/queries";
import type { JobOut, QueueOut, WorkerOut } from "../api/types.gen";
import { Choice } from "../components/Choice";
import { Answered, Card, Empty, ErrorBox, Loading } from "../components/States";
import { Time } from "../components/Time";
import { compact, percent, plural, rate, span } from "../lib/format";
import { type Verdict as Found, verdict } from "../lib/verdict";

const ThroughputChart = lazy(() => import("../components/ThroughputChart").then((module) => ({ default: module.ThroughputChart })));

/** Dead letters come by when they were submitted; of so many, those that died last are shown. */
const LOOKED_AT = 30;
const SHOWN = 8;

const WINDOWS: readonly Window[] = ["15m", "1h", "6h", "24h", "7d"];

export function Overview() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((each) => each === search.window) ?? "1h";
  const stats = useQuery(statsQuery());
  const queues = useQuery(queuesQuery());
  const workers = useQuery(workersQuery);
  const recent = useQuery(summaryQuery({ window: "5m" }));
  const series = useQuery(throughputQuery({ window }));
  const failures = useQuery(jobsQuery({ status: "dead", limit: LOOKED_AT }));
  const admin = useQuery(meQuery).data?.scopes.includes("admin") ?? false;
  const pauses = useQuery({ ...pausesQuery, enabled: admin }).data?.items;
  const all = stats.data && queues.data && workers.data && recent.data;
  const troubled = [stats, queues, workers, recent].find((query) => query.error && !query.data);
  return (
    <>
      <h1 className="hidden-text">Overview</h1>
      {all ? (
        <Verdict found={verdict({ stats: stats.data, queues: queues.data.items, workers: workers.data.items, recent: recent.data, ...(pauses ? { pauses } : {}) })} />
      ) : troubled ? (
        <ErrorBox error={troubled.error} retry={() => void troubled.refetch()} />
      ) : (
        <div className="note calm" role="status">
          Looking …
        </div>
      )}
      <div className="tiles">
        <Tile label="Finished" value={recent.data && rate(recent.data.rates.finished)} unit="/s" note={recent.data && `submitted ${rate(recent.data.rates.submitted)}/s`} />
        <Tile label="Failed attempts" value={recent.data && percent(recent.data.failure_ratio)} note="in 5 minutes" tone={recent.data && (recent.data.failure_ratio ?? 0) > 0.2 ? "warn" : undefined} />
        <Tile label="Waiting" value={stats.data && compact(stats.data.statuses.ready)} note={queues.data && oldest(queues.data.items)} status="ready" />
        <Tile label="Running" value={stats.data && compact(stats.data.statuses.running)} note={workers.data && slots(workers.data.items)} status="running" />
        <Tile label="Later" value={stats.data && compact(stats.data.statuses.scheduled + stats.data.statuses.retrying)} note={stats.data && `${compact(stats.data.statuses.retrying)} after a failure`} status="scheduled" />
        <Tile label="Dead letters" value={stats.data && compact(stats.data.statuses.dead)} note="out of attempts" status="dead" tone={stats.data?.statuses.dead ? "bad" : undefined} />
      </div>
      <div className="columns">
        <div className="stack">
          <Card
            title="Throughput and failures"
            aside={<Choice label="Window" value={window} options={WINDOWS} onChange={(value) => void navigate({ to: "/", search: value === "1h" ? {} : { window: value }, replace: true })} />}
          >
            <div className="pad">
              <Answered query={series} lines={6}>
                {(data) => (
                  <Suspense fallback={<Loading lines={6} />}>
                    <ThroughputChart series={data} />
                  </Suspense>
                )}
              </Answered>
            </div>
          </Card>
          <Card title="Newest dead letters" aside={<Link to="/dead">by error</Link>}>
            <Answered query={failures}>{(page) => (page.items.length ? <Failures jobs={page.items} /> : <Empty title="None">Nothing has run out of attempts.</Empty>)}</Answered>
          </Card>
        </div>
        <div className="stack">
          <Card title="Queues" aside={<Link to="/queues">all</Link>}>
            <Answered query={queues}>{(list) => (list.items.length ? <QueueList queues={list.items} /> : <Empty title="No queues yet">A queue begins with its first job.</Empty>)}</Answered>
          </Card>
          <Card title="Workers" aside={<Link to="/workers">all</Link>}>
            <Answered query={workers}>
              {(list) =>
                list.items.length ? (
                  <WorkerList workers={list.items} />
                ) : (
                  <Empty title="No worker is registered">
                    Start one: <code>holdfast work myapp.jobs:app</code>
                  </Empty>
                )
              }
            </Answered>
          </Card>
        </div>
      </div>
    </>
  );
}

function Verdict({ found }: { found: Found }) {
  return (
    <section className={`note verdict ${found.level}`} aria-label="Verdict" aria-live="polite">
      <span className={`dot ${{ good: "live-on", calm: "", warn: "stale", bad: "bad-dot" }[found.level]}`} />
      <div className="grow">
        <strong className="headline">{found.headline}</strong>
        {found.reasons.length > 0 && (
          <ul>
            {found.reasons.slice(0, 6).map((reason) => (
              <li key={reason.text} className="wrap-any">
                {reason.text}{" "}
                {reason.to && (
                  <Link to={reason.to.path} search={reason.to.search ?? {}}>
                    Look
                  </Link>
                )}
              </li>
            ))}
            {found.reasons.length > 6 && <li>and {found.reasons.length - 6} more</li>}
          </ul>
        )}
      </div>
    </section>
  );
}

interface TileProps {
  label: string;
  value: string | undefined;
  unit?: string;
  note?: string | undefined;
  status?: JobOut["status"];
  tone?: "warn" | "bad" | undefined;
}

function Tile({ label, value, unit, note, status, tone }: TileProps) {
  const inner = (
    <>
      <span className="label">{label}</span>
      <span className={`value ${tone ?? ""}`}>
        {value ?? "…"}
        {value !== undefined && unit && <small>{unit}</small>}
      </span>
      <span className="small soft cut">{note ?? "\u00a0"}</span>
    </>
  );
  return status ? (
    <Link className="tile" to="/jobs" search={{ status }}>
      {inner}
    </Link>
  ) : (
    <div className="tile">{inner}</div>
  );
}

function oldest(queues: readonly QueueOut[]): string {
  const waits = queues.flatMap((queue) => (queue.paused || queue.oldest_wait === null ? [] : [queue.oldest_wait]));
  if (waits.length) return `oldest ${span(Math.max(...waits))}`;
  return queues.some((queue) => queue.paused && queue.statuses.ready > 0) ? "in paused queues" : "none is due";
}

function slots(workers: readonly WorkerOut[]): string {
  const alive = workers.filter((worker) => worker.alive);
  return `of ${plural(alive.reduce((sum, worker) => sum + worker.slots, 0), "slot")}`;
}

function Failures({ jobs }: { jobs: readonly JobOut[] }) {
  const newest = [...jobs].sort((a, b) => Date.parse(b.finished_at ?? b.updated_at) - Date.parse(a.finished_at ?? a.updated_at)).slice(0, SHOWN);
  return (
    <ul className="lines">
      {newest.map((job) => (
        <li key={job.id}>
          <Link to="/jobs/$id" params={{ id: job.id }} className="cut strong" title={job.type}>
            {job.type}
          </Link>
          <span className="cut grow" title={job.error?.message}>
            <span className="bad">{job.error?.kind}</span> {job.error?.message}
          </span>
          <span className="soft small nowrap">
            <Time at={job.finished_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Those in which something waits first, the longest wait on top. */
function QueueList({ queues }: { queues: readonly QueueOut[] }) {
  const shown = [...queues].sort((a, b) => Number(b.paused) - Number(a.paused) || (b.oldest_wait ?? -1) - (a.oldest_wait ?? -1) || b.rates.finished - a.rates.finished).slice(0, 10);
  return (
    <div className="table-wrap">
      <table className="dense">
        <caption className="hidden-text">Queues, those that wait longest first</caption>
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col" className="right">
              Waiting
            </th>
            <th scope="col" className="right">
              Oldest
            </th>
            <th scope="col" className="right">
              Per second
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((queue) => (
            <tr key={queue.name}>
              <td className="stretch">
                <span className="cut">
                  <Link to="/jobs" search={{ queue: queue.name }} title={queue.name}>
                    {queue.name}
                  </Link>
                  {queue.paused && (
                    <span className="warn small" title={queue.reason}>
                      {" "}
                      paused{queue.reason ? `: ${queue.reason}` : ""}
                    </span>
                  )}
                </span>
              </td>
              <td className="right num">{compact(queue.statuses.ready)}</td>
              <td className="right num nowrap">{span(queue.oldest_wait)}</td>
              <td className="right num">{rate(queue.rates.finished)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function WorkerList({ workers }: { workers: readonly WorkerOut[] }) {
  const shown = [...workers].sort((a, b) => Number(a.alive) - Number(b.alive)).slice(0, 8);
  return (
    <ul className="lines">
      {shown.map((worker) => (
        <li key={worker.id}>
          <span className={`dot ${worker.alive ? "live-on" : "bad-dot"}`} />
          <span className="cut grow">{worker.name || worker.id}</span>
          <span className="soft small nowrap num">{worker.alive ? `${worker.running} of ${worker.slots} busy` : `silent for ${span(worker.heartbeat_age)}`}</span>
        </li>
      ))}
      {workers.length > shown.length && <li className="soft">and {workers.length - shown.length} more</li>}
    </ul>
  );
}
