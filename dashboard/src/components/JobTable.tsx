/** Jobs in rows, wherever they are listed. */
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import type { JobOut } from "../api/types.gen";
import { between, plural, span } from "../lib/format";
import { shortId } from "../lib/ids";
import { type Column, DataTable } from "./DataTable";
import { StateBadge } from "./StateBadge";
import { Time, useNow } from "./Time";

export type JobColumn = "status" | "job" | "queue" | "tenant" | "attempts" | "when" | "took" | "note";

const COLUMNS: Record<JobColumn, Column<JobOut>> = {
  status: { id: "status", header: "Status", cell: (job) => <StateBadge status={job.status} /> },
  job: {
    id: "job",
    header: "Job",
    className: "job-cell",
    cell: (job) => (
      <>
        <Link to="/jobs/$id" params={{ id: job.id }} className="job-link" title={job.id}>
          <span className="cut">{job.type}</span>
          <span className="mono soft small only-wide">{shortId(job.id)}</span>
        </Link>
        <div className="only-narrow small note-line">
          <Note job={job} otherwise={<span className="cut soft">{job.queue}</span>} />
        </div>
      </>
    ),
  },
  queue: { id: "queue", header: "Queue", className: "only-wide short-cell", cell: (job) => <Cut text={job.queue} /> },
  tenant: { id: "tenant", header: "Tenant", className: "only-wide short-cell", cell: (job) => <Cut text={job.tenant} /> },
  attempts: {
    id: "attempts",
    header: "Tries",
    className: "right num only-wide",
    cell: (job) => (
      <span title={`${job.attempts} of ${job.max_attempts} attempts${job.generation ? `, replayed ${job.generation} times` : ""}`}>
        {job.attempts}
        <span className="soft">/{job.max_attempts}</span>
      </span>
    ),
  },
  when: { id: "when", header: "Submitted", className: "nowrap", cell: (job) => <Time at={job.created_at} /> },
  took: { id: "took", header: "Ran", className: "right num only-wide", cell: (job) => <Took job={job} /> },
  note: { id: "note", header: "Note", className: "stretch note-cell only-wide", cell: (job) => <Note job={job} /> },
};

export function JobTable({ jobs, label, columns }: { jobs: readonly JobOut[]; label: string; columns: readonly JobColumn[] }) {
  const navigate = useNavigate();
  const [held, setHeld] = useState<readonly JobOut[] | null>(null);
  const names = columns.join(" ");
  const chosen = useMemo(() => names.split(" ").map((name) => COLUMNS[name as JobColumn]), [names]);
  const open = useCallback((job: JobOut) => void navigate({ to: "/jobs/$id", params: { id: job.id } }), [navigate]);
  const { rows, newer } = held ? steady(held, jobs) : { rows: jobs, newer: 0 };
  return (
    <div className="held-wrap" onPointerEnter={(event) => event.pointerType === "mouse" && setHeld(jobs)} onPointerLeave={() => setHeld(null)}>
      {newer > 0 && <div className="held small">{plural(newer, "newer job")}: shown when the pointer leaves</div>}
      <DataTable
        label={label}
        columns={chosen}
        rows={rows}
        rowId={(job) => job.id}
        onOpen={open}
        folds={false}
      />
    </div>
  );
}

/** The rows stay where they are while somebody points at them; what is in them is as new as it gets. */
export function steady(held: readonly JobOut[], latest: readonly JobOut[]): { rows: JobOut[]; newer: number } {
  const now = new Map(latest.map((job) => [job.id, job]));
  const rows = held.map((job) => now.get(job.id) ?? job);
  const known = new Set(held.map((job) => job.id));
  const last = held[0]?.created_at ?? "";
  return { rows, newer: latest.filter((job) => !known.has(job.id) && job.created_at >= last).length };
}

function Took({ job }: { job: JobOut }) {
  const now = useNow();
  if (job.status === "running" && job.started_at) return <span className="nowrap">{span(Math.max(0, (now - Date.parse(job.started_at)) / 1000))}</span>;
  return <span className="nowrap">{span(between(job.started_at, job.finished_at))}</span>;
}

/** A name where there is little room; all of it on hover. */
function Cut({ text }: { text: string }) {
  return (
    <span className="cut" title={text}>
      {text}
    </span>
  );
}

/** When it is to run; what is due already waits for a worker. */
function Due({ what, at }: { what: string; at: string }) {
  const now = useNow();
  if (Date.parse(at) <= now) return <span title="Due: it waits for a worker">{what} now</span>;
  return (
    <>
      {what} <Time at={at} />
    </>
  );
}

/** One line on what matters about a job in its state, or else its tags. */
function Note({ job, otherwise }: { job: JobOut; otherwise?: ReactNode }) {
  if ((job.status === "dead" || job.status === "retrying") && job.error) {
    return (
      <span className="cut" title={`${job.error.kind}: ${job.error.message}`}>
        {job.status === "retrying" && job.scheduled_at && (
          <>
            <Due what="again" at={job.scheduled_at} />
            {" · "}
          </>
        )}
        <span className="bad">{job.error.kind}</span> {job.error.message}
      </span>
    );
  }
  if (job.status === "cancelled") return <span className="cut soft" title={job.reason ?? ""}>{job.reason}</span>;
  if (job.status === "scheduled" && job.scheduled_at) {
    return (
      <span className="cut soft">
        <Due what="due" at={job.scheduled_at} />
      </span>
    );
  }
  if (job.status === "running") {
    const progress = job.progress as { fraction?: number | null; note?: string | null } | null;
    return (
      <span className="cut soft">
        {progress && typeof progress.fraction === "number" ? `${Math.round(progress.fraction * 100)} % ` : ""}
        {progress?.note ?? (job.worker ? `on ${job.worker}` : "")}
      </span>
    );
  }
  if (otherwise) return otherwise;
  return (
    <span className="cut" title={job.tags.join(", ")}>
      {job.tags.map((tag) => (
        <span key={tag} className="tag">
          {tag}
        </span>
      ))}
    </span>
  );
}
