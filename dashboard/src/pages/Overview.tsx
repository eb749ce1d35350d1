/** Overview: whether jobs are being processed and, if not, why. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { pausesQuery } from "../api/adminQueries";
import { jobsQuery, meQuery, queuesQuery, statsQuery, summaryQuery, throughputQuery, workersQuery, type Window } from "../api/queries";
import type { JobOut, QueueOut, WorkerOut } from "../api/types.gen";
import { DemoData } from "../components/DemoData";
import { ToggleGroup } from "../components/ToggleGroup";
import { QueryView, Card, Empty, ErrorBox, Loading } from "../components/Feedback";
import { Time } from "../components/Time";
import { formatCompact, formatPercent, pluralize, formatRate, formatDuration } from "../lib/format";
import { assessHealth, type Health } from "../lib/health";
import { isAdmin } from "../lib/scopes";

const ThroughputChart = lazy(() => import("../components/ThroughputChart").then((module) => ({ default: module.ThroughputChart })));

/** The API sorts dead letters by submission. This many are fetched, to show those that failed last. */
const FETCHED_DEAD_LETTERS = 30;
const SHOWN_DEAD_LETTERS = 8;

const WINDOWS: readonly Window[] = ["15m", "1h", "6h", "24h", "7d"];

export function Overview() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((option) => option === search.window) ?? "1h";
  const stats = useQuery(statsQuery());
  const queues = useQuery(queuesQuery());
  const workers = useQuery(workersQuery);
  const recent = useQuery(summaryQuery({ window: "5m" }));
  const series = useQuery(throughputQuery({ window }));
  const deadLetters = useQuery(jobsQuery({ status: "dead", limit: FETCHED_DEAD_LETTERS }));
  const me = useQuery(meQuery).data;
  const admin = isAdmin(me);
  const pauses = useQuery({ ...pausesQuery, enabled: admin }).data?.items;
  const loaded = stats.data && queues.data && workers.data && recent.data;
  const failed = [stats, queues, workers, recent].find((query) => query.error && !query.data);
  return (
    <>
      <h1 className="hidden-text">Overview</h1>
      {loaded ? (
        <HealthSummary health={assessHealth({ stats: stats.data, queues: queues.data.items, workers: workers.data.items, recent: recent.data, ...(pauses ? { pauses } : {}) })} />
      ) : failed ? (
        <ErrorBox error={failed.error} retry={() => void failed.refetch()} />
      ) : (
        <div className="note calm" role="status">
          Loading …
        </div>
      )}
      {me?.demo && admin && <DemoData />}
      <div className="tiles">
        <Tile label="Finished" value={recent.data && formatRate(recent.data.rates.finished)} unit="/s" note={recent.data && `submitted ${formatRate(recent.data.rates.submitted)}/s`} />
        <Tile label="Failed attempts" value={recent.data && formatPercent(recent.data.failure_ratio)} note="last 5 minutes" tone={recent.data && (recent.data.failure_ratio ?? 0) > 0.2 ? "warn" : undefined} />
        <Tile label="Waiting" value={stats.data && formatCompact(stats.data.statuses.ready)} note={queues.data && oldestWait(queues.data.items)} status="ready" />
        <Tile label="Running" value={stats.data && formatCompact(stats.data.statuses.running)} note={workers.data && slotCount(workers.data.items)} status="running" />
        <Tile label="Delayed" value={stats.data && formatCompact(stats.data.statuses.scheduled + stats.data.statuses.retrying)} note={stats.data && `${formatCompact(stats.data.statuses.retrying)} retrying`} status="scheduled" />
        <Tile label="Dead letters" value={stats.data && formatCompact(stats.data.statuses.dead)} note="failed permanently" status="dead" tone={stats.data?.statuses.dead ? "bad" : undefined} />
      </div>
      <div className="columns">
        <div className="stack">
          <Card
            title="Throughput and failures"
            aside={<ToggleGroup label="Window" value={window} options={WINDOWS} onChange={(value) => void navigate({ to: "/", search: value === "1h" ? {} : { window: value }, replace: true })} />}
          >
            <div className="pad">
              <QueryView query={series} lines={6}>
                {(data) => (
                  <Suspense fallback={<Loading lines={6} />}>
                    <ThroughputChart series={data} />
                  </Suspense>
                )}
              </QueryView>
            </div>
          </Card>
          <Card title="Newest dead letters" aside={<Link to="/dead">Group by error</Link>}>
            <QueryView query={deadLetters}>{(page) => (page.items.length ? <DeadLetterList jobs={page.items} /> : <Empty title="No dead letters">No job has failed permanently.</Empty>)}</QueryView>
          </Card>
        </div>
        <div className="stack">
          <Card title="Queues" aside={<Link to="/queues">Show all</Link>}>
            <QueryView query={queues}>{(list) => (list.items.length ? <QueueList queues={list.items} /> : <Empty title="No queues yet">A queue is created by its first job.</Empty>)}</QueryView>
          </Card>
          <Card title="Workers" aside={<Link to="/workers">Show all</Link>}>
            <QueryView query={workers}>
              {(list) =>
                list.items.length ? (
                  <WorkerList workers={list.items} />
                ) : (
                  <Empty title="No workers">
                    Start one: <code>holdfast work myapp.jobs:app</code>
                  </Empty>
                )
              }
            </QueryView>
          </Card>
        </div>
      </div>
    </>
  );
}

function HealthSummary({ health }: { health: Health }) {
  return (
    <section className={`note health ${health.level}`} aria-label="Health" aria-live="polite">
      <span className={`dot ${{ good: "live-on", calm: "", warn: "stale", bad: "bad-dot" }[health.level]}`} />
      <div className="grow">
        <strong className="headline">{health.headline}</strong>
        {health.reasons.length > 0 && (
          <ul>
            {health.reasons.slice(0, 6).map((reason) => (
              <li key={reason.text} className="wrap-any">
                {reason.text}{" "}
                {reason.link && (
                  <Link to={reason.link.path} search={reason.link.search ?? {}}>
                    Show
                  </Link>
                )}
              </li>
            ))}
            {health.reasons.length > 6 && <li>and {health.reasons.length - 6} more</li>}
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
  const content = (
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
      {content}
    </Link>
  ) : (
    <div className="tile">{content}</div>
  );
}

function oldestWait(queues: readonly QueueOut[]): string {
  const waits = queues.flatMap((queue) => (queue.paused || queue.oldest_wait === null ? [] : [queue.oldest_wait]));
  if (waits.length) return `oldest ${formatDuration(Math.max(...waits))}`;
  return queues.some((queue) => queue.paused && queue.statuses.ready > 0) ? "in paused queues" : "no job is due";
}

function slotCount(workers: readonly WorkerOut[]): string {
  const alive = workers.filter((worker) => worker.alive);
  return `of ${pluralize(alive.reduce((sum, worker) => sum + worker.slots, 0), "slot")}`;
}

function DeadLetterList({ jobs }: { jobs: readonly JobOut[] }) {
  const newest = [...jobs].sort((a, b) => Date.parse(b.finished_at ?? b.updated_at) - Date.parse(a.finished_at ?? a.updated_at)).slice(0, SHOWN_DEAD_LETTERS);
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

/** Queues, paused ones first, then by longest wait. */
function QueueList({ queues }: { queues: readonly QueueOut[] }) {
  const shown = [...queues].sort((a, b) => Number(b.paused) - Number(a.paused) || (b.oldest_wait ?? -1) - (a.oldest_wait ?? -1) || b.rates.finished - a.rates.finished).slice(0, 10);
  return (
    <div className="table-wrap">
      <table className="dense">
        <caption className="hidden-text">Queues by longest wait</caption>
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
              Finished/s
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
              <td className="right num">{formatCompact(queue.statuses.ready)}</td>
              <td className="right num nowrap">{formatDuration(queue.oldest_wait)}</td>
              <td className="right num">{formatRate(queue.rates.finished)}</td>
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
          <span className="soft small nowrap num">{worker.alive ? `${worker.running} of ${worker.slots} busy` : `no heartbeat for ${formatDuration(worker.heartbeat_age)}`}</span>
        </li>
      ))}
      {workers.length > shown.length && <li className="soft">and {workers.length - shown.length} more</li>}
    </ul>
  );
}
