/** Queues with their depth, waits and throughput; pause and limit them. */
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useState } from "react";
import { call } from "../api/client";
import { meQuery, queuesQuery } from "../api/queries";
import type { QueueOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { PauseList } from "../components/PauseList";
import { ThroughputSparkline } from "../components/Sparkline";
import { QueryView, Card, Empty, ErrorBox } from "../components/Feedback";
import { Time } from "../components/Time";
import { formatCompact, formatCount, formatRate, formatDuration } from "../lib/format";
import { formatRateLimit } from "../lib/rates";
import { isAdmin } from "../lib/scopes";

const PauseForm = lazy(() => import("../components/PauseAndLimitForms").then((module) => ({ default: module.PauseForm })));
const LimitForm = lazy(() => import("../components/PauseAndLimitForms").then((module) => ({ default: module.LimitForm })));

export function Queues() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const queues = useQuery(queuesQuery());
  const admin = isAdmin(useQuery(meQuery).data);
  const [dialog, setDialog] = useState<{ form: "pause" | "limit"; queue: QueueOut }>();
  const resume = useMutation({
    mutationFn: (name: string) => call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name }, body: { paused: false } }),
    onSuccess: () => void queries.invalidateQueries(),
  });
  const open = useCallback((queue: QueueOut) => void navigate({ to: "/jobs", search: { queue: queue.name } }), [navigate]);
  const columns: Column<QueueOut>[] = [
    { id: "name", header: "Queue", value: (queue) => queue.name, className: "name-cell", cell: (queue) => <Name queue={queue} /> },
    { id: "ready", header: "Waiting", value: (queue) => queue.statuses.ready, descendingFirst: true, className: "right num", cell: (queue) => formatCompact(queue.statuses.ready) },
    { id: "oldest", header: "Oldest wait", value: (queue) => queue.oldest_wait, descendingFirst: true, className: "right num nowrap", cell: (queue) => formatDuration(queue.oldest_wait) },
    { id: "running", header: "Running", value: (queue) => queue.statuses.running, descendingFirst: true, className: "right num nowrap", cell: (queue) => <Running queue={queue} /> },
    { id: "delayed", header: "Delayed", value: delayed, descendingFirst: true, className: "right num", cell: (queue) => formatCompact(delayed(queue)) },
    { id: "dead", header: "Dead", value: (queue) => queue.statuses.dead, descendingFirst: true, className: "right num", cell: (queue) => <Dead queue={queue} /> },
    { id: "rate", header: "Finished/s", value: (queue) => queue.rates.finished, descendingFirst: true, className: "right num", cell: (queue) => formatRate(queue.rates.finished) },
    { id: "line", header: "Last 30 min", cell: (queue) => <ThroughputSparkline queue={queue.name} /> },
    {
      id: "limits",
      header: "Limits",
      className: "small nowrap",
      cell: (queue) =>
        admin ? (
          <button type="button" className="plain" aria-label={`Limits of ${queue.name}: ${describeLimits(queue)}`} title="Set limits" onClick={() => setDialog({ form: "limit", queue })}>
            {describeLimits(queue)}
          </button>
        ) : (
          describeLimits(queue)
        ),
    },
  ];
  if (admin) {
    columns.push({
      id: "actions",
      header: <span className="hidden-text">Actions</span>,
      className: "right nowrap",
      cell: (queue) => (
        <>
          {queue.paused ? (
            <Button size="compact-xs" loading={resume.isPending && resume.variables === queue.name} onClick={() => resume.mutate(queue.name)} aria-label={`Resume ${queue.name}`}>
              Resume
            </Button>
          ) : (
            <Button size="compact-xs" variant="default" onClick={() => setDialog({ form: "pause", queue })} aria-label={`Pause ${queue.name}`}>
              Pause …
            </Button>
          )}
        </>
      ),
    });
  }
  const close = () => setDialog(undefined);
  return (
    <>
      <h1 className="hidden-text">Queues</h1>
      {resume.error && <ErrorBox error={resume.error} />}
      <Card title="Queues" aside={queues.data && <span className="small soft">{queues.data.next_cursor && `first ${queues.data.items.length} by name, `}as of <Time at={queues.data.as_of} /></span>}>
        <QueryView query={queues} lines={8}>
          {(list) =>
            list.items.length ? (
              <DataTable label="Queues" columns={columns} rows={list.items} rowId={(queue) => queue.name} onOpen={open} />
            ) : (
              <Empty title="No queues yet">
                A queue is created by its first job: <Link to="/jobs/new">submit one</Link>.
              </Empty>
            )
          }
        </QueryView>
      </Card>
      <PauseList admin={admin} types />
      <Suspense fallback={null}>
        {dialog?.form === "pause" && <PauseForm subject={{ queue: dialog.queue.name }} onClose={close} />}
        {dialog?.form === "limit" && <LimitForm subject={{ queue: dialog.queue.name }} current={dialog.queue} onClose={close} />}
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
        <span className="warn small wrap-any pause-note">
          paused
          {queue.until && (
            <>
              ,{" "}
              resumes <Time at={queue.until} />
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
    <span className={full ? "warn" : undefined} title={full ? "limit reached" : undefined}>
      {formatCompact(queue.max_running === null ? queue.statuses.running : running)}
      {queue.max_running !== null && ` of ${formatCount(queue.max_running)}`}
    </span>
  );
}

function Dead({ queue }: { queue: QueueOut }) {
  if (!queue.statuses.dead) return <>0</>;
  return (
    <Link to="/jobs" search={{ queue: queue.name, status: "dead" }} className="bad">
      {formatCompact(queue.statuses.dead)}
    </Link>
  );
}

function delayed(queue: QueueOut): number {
  return queue.statuses.scheduled + queue.statuses.retrying + queue.statuses.blocked;
}

/** Describe the limits of a queue. */
function describeLimits(queue: Pick<QueueOut, "max_running" | "rate">): string {
  const parts = [queue.max_running === null ? "" : `max ${formatCount(queue.max_running)} running`, formatRateLimit(queue.rate)].filter(Boolean);
  return parts.join(", ") || "none";
}
