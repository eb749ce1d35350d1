/** Jobs in rows, wherever they are listed. */
import { Link, useNavigate } from "@tanstack/react-router";
import type { JobOut } from "../api/types.gen";
import { between, span } from "../lib/format";
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
          <Note job={job} />
        </div>
      </>
    ),
  },
  queue: { id: "queue", header: "Queue", className: "only-wide", cell: (job) => <span className="cut">{job.queue}</span> },
  tenant: { id: "tenant", header: "Tenant", className: "only-wide", cell: (job) => <span className="cut">{job.tenant}</span> },
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
  note: { id: "note", header: "Note", className: "stretch only-wide", cell: (job) => <Note job={job} /> },
};

export function JobTable({ jobs, label, columns }: { jobs: readonly JobOut[]; label: string; columns: readonly JobColumn[] }) {
  const navigate = useNavigate();
  return (
    <DataTable
      label={label}
      columns={columns.map((name) => COLUMNS[name])}
      rows={jobs}
      rowId={(job) => job.id}
      onOpen={(job) => void navigate({ to: "/jobs/$id", params: { id: job.id } })}
    />
  );
}

function Took({ job }: { job: JobOut }) {
  const now = useNow();
  if (job.status === "running" && job.started_at) return <span className="nowrap">{span(Math.max(0, (now - Date.parse(job.started_at)) / 1000))}</span>;
  return <span className="nowrap">{span(between(job.started_at, job.finished_at))}</span>;
}

/** One line on what matters about a job in its state. */
function Note({ job }: { job: JobOut }) {
  if ((job.status === "dead" || job.status === "retrying") && job.error) {
    return (
      <span className="cut" title={`${job.error.kind}: ${job.error.message}`}>
        {job.status === "retrying" && job.scheduled_at && (
          <>
            again <Time at={job.scheduled_at} />
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
      <span className="soft">
        due <Time at={job.scheduled_at} />
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
  return (
    <span className="cut">
      {job.tags.map((tag) => (
        <span key={tag} className="tag">
          {tag}
        </span>
      ))}
    </span>
  );
}
