/** Who runs jobs: how busy they are, what with, and when they were last heard of. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../api/client";
import { byWorker, runningQuery } from "../api/operate";
import { workersQuery } from "../api/queries";
import type { JobOut, WorkerOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { FormModal } from "../components/FormModal";
import { Answered, Card, Empty } from "../components/States";
import { Time } from "../components/Time";
import { bytes, count, plural, span } from "../lib/format";

const SHOWN = 4;

export function Workers() {
  const workers = useQuery(workersQuery);
  const running = useQuery(runningQuery).data;
  const held = byWorker(running?.items ?? []);
  const [draining, setDraining] = useState<WorkerOut>();
  const all = workers.data?.items ?? [];
  const columns: Column<WorkerOut>[] = [
    { id: "name", header: "Worker", value: (worker) => worker.name || worker.id, className: "name-cell", cell: (worker) => <Name worker={worker} /> },
    { id: "busy", header: "Busy", value: (worker) => worker.running / Math.max(1, worker.slots), highFirst: true, className: "nowrap num", cell: (worker) => <Busy worker={worker} /> },
    { id: "jobs", header: "Runs now", className: "stretch wide-cell", cell: (worker) => <Held jobs={held.get(worker.id) ?? []} running={worker.running} /> },
    { id: "queues", header: "Queues", className: "small", cell: (worker) => <span className="queue-names" title={worker.queues.join(", ")}>{worker.queues.map((queue) => queue.replace(/:\d+$/, "")).join(", ") || "all"}</span> },
    { id: "heard", header: "Heard of", value: (worker) => worker.heartbeat_age, className: "right num nowrap", cell: (worker) => <span className={worker.alive ? undefined : "bad"}>{span(worker.heartbeat_age)} ago</span> },
    { id: "since", header: "Started", value: (worker) => worker.started_at, className: "right nowrap", cell: (worker) => <Time at={worker.started_at} /> },
    ...(all.some((worker) => worker.memory !== null)
      ? [{ id: "memory", header: "Memory", value: (worker) => worker.memory, highFirst: true, className: "right num nowrap", cell: (worker) => (worker.memory === null ? <span className="soft">–</span> : bytes(worker.memory)) } satisfies Column<WorkerOut>]
      : []),
    { id: "version", header: "Version", value: (worker) => worker.version, cell: (worker) => <code>{worker.version || "–"}</code> },
  ];
  if (all.some((worker) => worker.actions?.includes("drain") || worker.draining)) {
    columns.push({
      id: "act",
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
      <Card title="Workers" aside={workers.data && <Fleet workers={workers.data.items} />}>
        <Answered query={workers} lines={6}>
          {(list) =>
            list.items.length ? (
              <DataTable label="Workers" columns={columns} rows={list.items} rowId={(worker) => worker.id} />
            ) : (
              <Empty title="No worker is registered">
                Jobs wait until one is there. Start it where your code is: <code>holdfast work myapp.jobs:app</code>
              </Empty>
            )
          }
        </Answered>
      </Card>
      {draining && <Drain worker={draining} beside={all.filter((each) => each.id !== draining.id && each.node !== null && each.node === draining.node && each.alive)} onClose={() => setDraining(undefined)} />}
    </>
  );
}

/** What it means, and for whom, before it is done. */
function Drain({ worker, beside, onClose }: { worker: WorkerOut; beside: readonly WorkerOut[]; onClose: () => void }) {
  return (
    <FormModal title={`Drain ${worker.name || worker.id}`} verb="Drain it" danger onClose={onClose} send={() => call<"drain_worker">("POST", "/v1/workers/{id}/drain", { path: { id: worker.id } })}>
      {() => (
        <>
          <p>It takes nothing new, lets {worker.running ? `the ${plural(worker.running, "job")} that it runs` : "what it runs"} finish, hands back what does not in time, and ends. It does not come back by itself: whoever started it may start it again.</p>
          {beside.length > 0 && (
            <p className="wrap-any">
              Its node ends as a whole, with {plural(beside.length, "other process", "other processes")}: {beside.map((each) => each.name || each.id).join(", ")}.
            </p>
          )}
        </>
      )}
    </FormModal>
  );
}

function Fleet({ workers }: { workers: readonly WorkerOut[] }) {
  const alive = workers.filter((worker) => worker.alive);
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = alive.reduce((sum, worker) => sum + worker.running, 0);
  const versions = new Set(alive.map((worker) => worker.version));
  return (
    <span className="small soft">
      {count(busy)} of {plural(slots, "slot")} busy
      {versions.size > 1 && <span className="warn"> · {versions.size} versions at once</span>}
    </span>
  );
}

function Name({ worker }: { worker: WorkerOut }) {
  return (
    <>
      <span className="cut strong" title={worker.id}>
        <span className={`dot inline ${worker.alive ? "live-on" : "bad-dot"}`} /> {worker.name || worker.id}
        {!worker.alive ? <span className="bad small"> silent</span> : worker.draining && <span className="warn small"> draining</span>}
      </span>
      {worker.host !== null && (
        <span className="cut small soft">
          {worker.host}
          {worker.pid !== null && `, process ${worker.pid}`}
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

function Held({ jobs, running }: { jobs: readonly JobOut[]; running: number }) {
  if (!jobs.length) return <span className="soft">{running ? plural(running, "job") : "nothing"}</span>;
  return (
    <span className="cut">
      {jobs.slice(0, SHOWN).map((job, index) => (
        <span key={job.id}>
          {index > 0 && ", "}
          <Link to="/jobs/$id" params={{ id: job.id }} title={job.id}>
            {job.type}
          </Link>
        </span>
      ))}
      {jobs.length > SHOWN && <span className="soft"> and {count(jobs.length - SHOWN)} more</span>}
    </span>
  );
}
