/** Workers with their load, running jobs and heartbeat. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../api/client";
import { groupByWorker, runningQuery, workersQuery } from "../api/queries";
import type { JobOut, WorkerOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { FormModal } from "../components/FormModal";
import { QueryView, Card, Empty } from "../components/Feedback";
import { Time } from "../components/Time";
import { formatBytes, formatCount, pluralize, formatDuration } from "../lib/format";

const SHOWN_JOBS = 4;

export function Workers() {
  const workers = useQuery(workersQuery);
  const running = useQuery(runningQuery).data;
  const jobsByWorker = groupByWorker(running?.items ?? []);
  const [draining, setDraining] = useState<WorkerOut>();
  const all = workers.data?.items ?? [];
  const columns: Column<WorkerOut>[] = [
    { id: "name", header: "Worker", value: (worker) => worker.name || worker.id, className: "name-cell", cell: (worker) => <Name worker={worker} /> },
    { id: "busy", header: "Busy", value: (worker) => worker.running / Math.max(1, worker.slots), descendingFirst: true, className: "nowrap num", cell: (worker) => <Busy worker={worker} /> },
    { id: "jobs", header: "Running", className: "stretch wide-cell", cell: (worker) => <RunningJobs jobs={jobsByWorker.get(worker.id) ?? []} running={worker.running} /> },
    { id: "queues", header: "Queues", className: "small", cell: (worker) => <span className="queue-names" title={worker.queues.join(", ")}>{worker.queues.map((queue) => queue.replace(/:\d+$/, "")).join(", ") || "all"}</span> },
    { id: "heartbeat", header: "Heartbeat", value: (worker) => worker.heartbeat_age, className: "right num nowrap", cell: (worker) => <span className={worker.alive ? undefined : "bad"}>{formatDuration(worker.heartbeat_age)} ago</span> },
    { id: "since", header: "Started", value: (worker) => worker.started_at, className: "right nowrap", cell: (worker) => <Time at={worker.started_at} /> },
    ...(all.some((worker) => worker.memory !== null)
      ? [{ id: "memory", header: "Memory", value: (worker) => worker.memory, descendingFirst: true, className: "right num nowrap", cell: (worker) => (worker.memory === null ? <span className="soft">–</span> : formatBytes(worker.memory)) } satisfies Column<WorkerOut>]
      : []),
    { id: "version", header: "Version", value: (worker) => worker.version, cell: (worker) => <code>{worker.version || "–"}</code> },
  ];
  if (all.some((worker) => worker.actions?.includes("drain") || worker.draining)) {
    columns.push({
      id: "actions",
      header: <span className="hidden-text">Actions</span>,
      className: "right nowrap",
      cell: (worker) =>
        worker.actions?.includes("drain") ? (
          <Button size="compact-xs" variant="default" aria-label={`Drain ${worker.name || worker.id}`} onClick={() => setDraining(worker)}>
            Drain …
          </Button>
        ) : null,
    });
  }
  return (
    <>
      <h1 className="hidden-text">Workers</h1>
      <Card title="Workers" aside={workers.data && <SlotUsage workers={workers.data.items} />}>
        <QueryView query={workers} lines={6}>
          {(list) =>
            list.items.length ? (
              <>
                <DataTable label="Workers" columns={columns} rows={list.items} rowId={(worker) => worker.id} />
                {list.more && <p className="small soft foot">Only the oldest {formatCount(list.items.length)} are shown.</p>}
              </>
            ) : (
              <Empty title="No workers">
                Jobs wait until a worker is running. Start one: <code>holdfast work myapp.jobs:app</code>
              </Empty>
            )
          }
        </QueryView>
      </Card>
      {draining && <Drain worker={draining} siblings={all.filter((other) => other.id !== draining.id && other.node !== null && other.node === draining.node && other.alive)} onClose={() => setDraining(undefined)} />}
    </>
  );
}

/** Confirmation of a drain. `siblings` are the other workers of the node, which stop too. */
function Drain({ worker, siblings, onClose }: { worker: WorkerOut; siblings: readonly WorkerOut[]; onClose: () => void }) {
  return (
    <FormModal title={`Drain ${worker.name || worker.id}`} verb="Drain worker" danger onClose={onClose} send={() => call<"drain_worker">("POST", "/v1/workers/{id}/drain", { path: { id: worker.id } })}>
      {() => (
        <>
          <p>The worker stops claiming jobs, finishes {worker.running ? `its ${pluralize(worker.running, "running job")}` : "its running jobs"}, releases jobs that do not finish in time, and exits. It restarts only if its process manager starts it again.</p>
          {siblings.length > 0 && (
            <p className="wrap-any">
              Its whole node stops, including {pluralize(siblings.length, "other process", "other processes")}: {siblings.map((sibling) => sibling.name || sibling.id).join(", ")}.
            </p>
          )}
        </>
      )}
    </FormModal>
  );
}

function SlotUsage({ workers }: { workers: readonly WorkerOut[] }) {
  const alive = workers.filter((worker) => worker.alive);
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = alive.reduce((sum, worker) => sum + worker.running, 0);
  const versions = new Set(alive.map((worker) => worker.version));
  return (
    <span className="small soft">
      {formatCount(busy)} of {pluralize(slots, "slot")} busy
      {versions.size > 1 && <span className="warn"> · {versions.size} different versions</span>}
    </span>
  );
}

function Name({ worker }: { worker: WorkerOut }) {
  return (
    <>
      <span className="cut strong" title={worker.id}>
        <span className={`dot inline ${worker.alive ? "live-on" : "bad-dot"}`} /> {worker.name || worker.id}
        {!worker.alive ? (
          <span className="bad small"> no heartbeat</span>
        ) : worker.unresponsive_since !== null ? (
          <span className="bad small"> {worker.blocked_by === null ? "no sign of life" : `blocked by ${worker.blocked_by}`}</span>
        ) : (
          worker.draining && <span className="warn small"> draining</span>
        )}
      </span>
      {worker.host !== null && (
        <span className="cut small soft">
          {worker.host}
          {worker.pid !== null && `, pid ${worker.pid}`}
        </span>
      )}
    </>
  );
}

function Busy({ worker }: { worker: WorkerOut }) {
  return (
    <>
      <meter className="slots" min={0} max={Math.max(1, worker.slots)} value={worker.running} aria-label={`${worker.running} of ${worker.slots} slots`} /> {worker.running} of {worker.slots}
    </>
  );
}

function RunningJobs({ jobs, running }: { jobs: readonly JobOut[]; running: number }) {
  if (!jobs.length) return <span className="soft">{running ? pluralize(running, "job") : "none"}</span>;
  return (
    <span className="cut">
      {jobs.slice(0, SHOWN_JOBS).map((job, index) => (
        <span key={job.id}>
          {index > 0 && ", "}
          <Link to="/jobs/$id" params={{ id: job.id }} title={job.id}>
            {job.type}
          </Link>
        </span>
      ))}
      {jobs.length > SHOWN_JOBS && <span className="soft"> and {formatCount(jobs.length - SHOWN_JOBS)} more</span>}
    </span>
  );
}
