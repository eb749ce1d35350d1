/** Table of jobs. */
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import type { JobOut } from "../api/types.gen";
import { secondsBetween, pluralize, formatDuration } from "../lib/format";
import { shortId } from "../lib/ids";
import { type Column, DataTable } from "./DataTable";
import { StatusBadge } from "./StatusBadge";
import { Time, useNow } from "./Time";

export type JobColumn = "status" | "job" | "queue" | "tenant" | "attempts" | "when" | "took" | "note";

const COLUMNS: Record<JobColumn, Column<JobOut>> = {
  status: { id: "status", header: "Status", cell: (job) => <StatusBadge status={job.status} /> },
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
          <Details job={job} fallback={<span className="cut soft">{job.queue}</span>} />
        </div>
      </>
    ),
  },
  queue: { id: "queue", header: "Queue", className: "only-wide short-cell", cell: (job) => <Truncated text={job.queue} /> },
  tenant: { id: "tenant", header: "Tenant", className: "only-wide short-cell", cell: (job) => <Truncated text={job.tenant} /> },
  attempts: {
    id: "attempts",
    header: "Attempts",
    className: "right num only-wide",
    cell: (job) => (
      <span title={`${job.attempts} of ${job.max_attempts} attempts${job.generation ? `, replayed ${pluralize(job.generation, "time")}` : ""}`}>
        {job.attempts}
        <span className="soft">/{job.max_attempts}</span>
      </span>
    ),
  },
  when: { id: "when", header: "Submitted", className: "nowrap", cell: (job) => <Time at={job.created_at} /> },
  took: { id: "took", header: "Run time", className: "right num only-wide", cell: (job) => <RunTime job={job} /> },
  note: { id: "note", header: "Details", className: "stretch note-cell only-wide", cell: (job) => <Details job={job} /> },
};

export function JobTable({ jobs, label, columns }: { jobs: readonly JobOut[]; label: string; columns: readonly JobColumn[] }) {
  const navigate = useNavigate();
  const [frozen, setFrozen] = useState<readonly JobOut[] | null>(null);
  const names = columns.join(" ");
  const shownColumns = useMemo(() => names.split(" ").map((name) => COLUMNS[name as JobColumn]), [names]);
  const open = useCallback((job: JobOut) => void navigate({ to: "/jobs/$id", params: { id: job.id } }), [navigate]);
  const { rows, newer } = frozen ? freezeRows(frozen, jobs) : { rows: jobs, newer: 0 };
  return (
    <div className="freeze-area" onPointerEnter={(event) => event.pointerType === "mouse" && setFrozen(jobs)} onPointerLeave={() => setFrozen(null)}>
      {newer > 0 && <div className="newer-jobs small">{pluralize(newer, "newer job")}: move the pointer away to show</div>}
      <DataTable
        label={label}
        columns={shownColumns}
        rows={rows}
        rowId={(job) => job.id}
        onOpen={open}
        stacked={false}
      />
    </div>
  );
}

/** Keep the rows in place while the pointer is over them, with their latest content, and count the newer jobs. */
export function freezeRows(frozen: readonly JobOut[], latest: readonly JobOut[]): { rows: JobOut[]; newer: number } {
  const latestById = new Map(latest.map((job) => [job.id, job]));
  const rows = frozen.map((job) => latestById.get(job.id) ?? job);
  const known = new Set(frozen.map((job) => job.id));
  const newestShown = frozen[0]?.created_at ?? "";
  return { rows, newer: latest.filter((job) => !known.has(job.id) && job.created_at >= newestShown).length };
}

function RunTime({ job }: { job: JobOut }) {
  const now = useNow();
  if (job.status === "running" && job.started_at) return <span className="nowrap">{formatDuration(Math.max(0, (now - Date.parse(job.started_at)) / 1000))}</span>;
  return <span className="nowrap">{formatDuration(secondsBetween(job.started_at, job.finished_at))}</span>;
}

/** Truncated text with the full text as its tooltip. */
function Truncated({ text }: { text: string }) {
  return (
    <span className="cut" title={text}>
      {text}
    </span>
  );
}

/** Due time of a job. A job that is already due waits for a worker. */
function Due({ label, at }: { label: string; at: string }) {
  const now = useNow();
  if (Date.parse(at) <= now) return <span title="Due: waiting for a worker">{label} now</span>;
  return (
    <>
      {label} <Time at={at} />
    </>
  );
}

/** Most relevant detail of a job in its status: error, due time, progress or tags. */
function Details({ job, fallback }: { job: JobOut; fallback?: ReactNode }) {
  if ((job.status === "dead" || job.status === "retrying") && job.error) {
    return (
      <span className="cut" title={`${job.error.kind}: ${job.error.message}`}>
        {job.status === "retrying" && job.scheduled_at && (
          <>
            <Due label="retry" at={job.scheduled_at} />
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
        <Due label="due" at={job.scheduled_at} />
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
  if (fallback) return fallback;
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
