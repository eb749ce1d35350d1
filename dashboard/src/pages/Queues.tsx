/** Queues: how deep, how long, how fast; rest them, limit them. */
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useState } from "react";
import { call } from "../api/client";
import { meQuery, queuesQuery } from "../api/queries";
import type { QueueOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { Pauses } from "../components/Pauses";
import { QueueSparkline } from "../components/Sparkline";
import { Answered, Card, Empty, ErrorBox } from "../components/States";
import { Time } from "../components/Time";
import { compact, count, rate, span } from "../lib/format";
import { writeRate } from "../lib/rates";

const PauseForm = lazy(() => import("../components/QueueForms").then((module) => ({ default: module.PauseForm })));
const LimitForm = lazy(() => import("../components/QueueForms").then((module) => ({ default: module.LimitForm })));

export function Queues() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const queues = useQuery(queuesQuery());
  const admin = useQuery(meQuery).data?.scopes.includes("admin") ?? false;
  const [asking, setAsking] = useState<{ what: "pause" | "limit"; queue: QueueOut }>();
  const resume = useMutation({
    mutationFn: (name: string) => call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name }, body: { paused: false } }),
    onSuccess: () => void queries.invalidateQueries(),
  });
  const open = useCallback((queue: QueueOut) => void navigate({ to: "/jobs", search: { queue: queue.name } }), [navigate]);
  const columns: Column<QueueOut>[] = [
    { id: "name", header: "Queue", value: (queue) => queue.name, className: "name-cell", cell: (queue) => <Name queue={queue} /> },
    { id: "ready", header: "Waiting", value: (queue) => queue.statuses.ready, highFirst: true, className: "right num", cell: (queue) => compact(queue.statuses.ready) },
    { id: "oldest", header: "Oldest wait", value: (queue) => queue.oldest_wait, highFirst: true, className: "right num nowrap", cell: (queue) => span(queue.oldest_wait) },
    { id: "running", header: "Running", value: (queue) => queue.statuses.running, highFirst: true, className: "right num nowrap", cell: (queue) => <Running queue={queue} /> },
    { id: "later", header: "Later", value: later, highFirst: true, className: "right num", cell: (queue) => compact(later(queue)) },
    { id: "dead", header: "Dead", value: (queue) => queue.statuses.dead, highFirst: true, className: "right num", cell: (queue) => <Dead queue={queue} /> },
    { id: "rate", header: "Done /s", value: (queue) => queue.rates.finished, highFirst: true, className: "right num", cell: (queue) => rate(queue.rates.finished) },
    { id: "line", header: "30 minutes", cell: (queue) => <QueueSparkline queue={queue.name} /> },
    {
      id: "limits",
      header: "Limits",
      className: "small nowrap",
      cell: (queue) =>
        admin ? (
          <button type="button" className="plain" aria-label={`Limits of ${queue.name}: ${limits(queue)}`} title="Set its limits" onClick={() => setAsking({ what: "limit", queue })}>
            {limits(queue)}
          </button>
        ) : (
          limits(queue)
        ),
    },
  ];
  if (admin) {
    columns.push({
      id: "act",
      header: <span className="hidden-text">Actions</span>,
      className: "right nowrap",
      cell: (queue) => (
        <>
          {queue.paused ? (
            <Button size="compact-xs" loading={resume.isPending && resume.variables === queue.name} onClick={() => resume.mutate(queue.name)} aria-label={`Resume ${queue.name}`}>
              Resume
            </Button>
          ) : (
            <Button size="compact-xs" variant="default" onClick={() => setAsking({ what: "pause", queue })} aria-label={`Pause ${queue.name}`}>
              Pause …
            </Button>
          )}
        </>
      ),
    });
  }
  const close = () => setAsking(undefined);
  return (
    <>
      <h1 className="hidden-text">Queues</h1>
      {resume.error && <ErrorBox error={resume.error} />}
      <Card title="Queues" aside={queues.data && <span className="small soft">counted <Time at={queues.data.as_of} /></span>}>
        <Answered query={queues} lines={8}>
          {(list) =>
            list.items.length ? (
              <DataTable label="Queues" columns={columns} rows={list.items} rowId={(queue) => queue.name} onOpen={open} />
            ) : (
              <Empty title="No queues yet">
                A queue begins with its first job: <Link to="/jobs/new">submit one</Link>.
              </Empty>
            )
          }
        </Answered>
      </Card>
      <Pauses admin={admin} types />
      <Suspense fallback={null}>
        {asking?.what === "pause" && <PauseForm subject={{ queue: asking.queue.name }} onClose={close} />}
        {asking?.what === "limit" && <LimitForm subject={{ queue: asking.queue.name }} now={asking.queue} onClose={close} />}
      </Suspense>
    </>
  );
}

function Name({ queue }: { queue: QueueOut }) {
  return (
    <>
      <Link to="/jobs" search={{ queue: queue.name }} className="cut strong" title={queue.name}>
        {queue.name}
      </Link>
      {queue.paused && (
        <span className="warn small wrap-any paused-why">
          paused
          {queue.until && (
            <>
              {" "}
              until <Time at={queue.until} />
            </>
          )}
          {queue.reason && `: ${queue.reason}`}
        </span>
      )}
    </>
  );
}

function Running({ queue }: { queue: QueueOut }) {
  const running = queue.running ?? queue.statuses.running;
  const full = queue.max_running !== null && running >= queue.max_running;
  return (
    <span className={full ? "warn" : undefined} title={full ? "as many as may" : undefined}>
      {compact(queue.max_running === null ? queue.statuses.running : running)}
      {queue.max_running !== null && ` of ${count(queue.max_running)}`}
    </span>
  );
}

function Dead({ queue }: { queue: QueueOut }) {
  if (!queue.statuses.dead) return <>0</>;
  return (
    <Link to="/jobs" search={{ queue: queue.name, status: "dead" }} className="bad">
      {compact(queue.statuses.dead)}
    </Link>
  );
}

function later(queue: QueueOut): number {
  return queue.statuses.scheduled + queue.statuses.retrying + queue.statuses.blocked;
}

/** The limits of a queue in words. */
export function limits(queue: Pick<QueueOut, "max_running" | "rate">): string {
  const said = [queue.max_running === null ? "" : `${count(queue.max_running)} at once`, writeRate(queue.rate)].filter(Boolean);
  return said.join(", ") || "none";
}
