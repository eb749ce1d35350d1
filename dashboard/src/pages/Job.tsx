/** Details of one job: status, timeline, attempts, payload and actions. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { apiUrl, Problem } from "../api/client";
import { jobQuery, meQuery } from "../api/queries";
import type { JobDetail, Json, StepOut } from "../api/types.gen";
import { Attempts } from "../components/Attempts";
import { CopyButton } from "../components/CopyButton";
import { JobActions } from "../components/JobActions";
import { JsonTree } from "../components/JsonTree";
import { QueryView, Card, Empty } from "../components/Feedback";
import { StatusBadge } from "../components/StatusBadge";
import { Time } from "../components/Time";
import { Timeline } from "../components/Timeline";
import { WhyNotRunning } from "../components/WhyNotRunning";
import { secondsBetween, formatDuration, pluralize } from "../lib/format";
import { stringifyExact } from "../lib/json";
import { isAdmin } from "../lib/scopes";
import { asCurl, asPython } from "../lib/snippets";

export function Job() {
  const { id } = useParams({ strict: false }) as { id: string };
  const job = useQuery(jobQuery(id));
  if (job.error instanceof Problem && job.error.status === 404 && !job.data) {
    return (
      <Empty title="Job not found">
        <p>It was deleted, its retention period has ended, or it belongs to another tenant.</p>
        <p>
          <Link to="/jobs">Show all jobs</Link>
        </p>
      </Empty>
    );
  }
  return (
    <QueryView query={job} lines={8}>
      {(detail) => <Page job={detail} />}
    </QueryView>
  );
}

function Page({ job }: { job: JobDetail }) {
  const me = useQuery(meQuery).data;
  const scopes = me?.scopes ?? [];
  const navigate = useNavigate();
  const tenant = isAdmin(me) ? job.tenant : undefined;
  const canSubmit = scopes.includes("admin") || scopes.includes("submit");
  // Next to a long list of attempts, the payload and result go into the other column.
  const hasAttempts = job.attempt_log.length > 0;
  const values = (
    <>
      {job.status === "succeeded" && <Value title="Result" value={job.result as unknown as Json} />}
      <Value title="Payload" value={job.payload as unknown as Json} />
    </>
  );
  return (
    <>
      <div className="row apart top">
        <div className="stack tight grow">
          <div className="row">
            <h1 className="wrap-any">{job.type}</h1>
            <StatusBadge status={job.status} />
          </div>
          <div className="row tight small soft">
            <code className="wrap-any">{job.id}</code>
            <CopyButton text={job.id} label="Copy id" />
          </div>
        </div>
        <div className="row tight">
          <JobActions job={job} />
          {canSubmit && (
            <Button onClick={() => void navigate({ to: "/jobs/new", search: { from: job.id } })} size="xs" variant="default" title="Open a new job with these settings, to edit before you submit it">
              Edit and resubmit
            </Button>
          )}
        </div>
      </div>
      <div className="columns">
        <div className="stack">
          {job.error && job.status !== "succeeded" && (
            <div className="note bad" role="note">
              <div className="grow wrap-any">
                <strong>{job.error.kind}</strong> {job.error.message}
                {job.error.fingerprint && (
                  <div className="small">
                    <Link to="/jobs" search={{ error: job.error.fingerprint, status: "dead" }}>
                      Dead letters with this error
                    </Link>
                  </div>
                )}
              </div>
            </div>
          )}
          {job.status === "cancelled" && (
            <div className="note calm" role="note">
              <div className="wrap-any">Cancelled: {job.reason || "no reason given"}.</div>
            </div>
          )}
          <WhyNotRunning job={job} />
          {job.status === "running" && <Progress progress={job.progress as unknown as Json} />}
          <Card title="Timeline">
            <Timeline job={job} />
          </Card>
          <Attempts job={job} />
          {job.steps.length > 0 && <Steps steps={job.steps} />}
          <Truncated job={job} />
          {!hasAttempts && values}
        </div>
        <div className="stack">
          <Card title="About">
            <div className="pad">
              <Facts job={job} />
            </div>
          </Card>
          {hasAttempts && values}
          <Card title="Submit a copy">
            <div className="pad row tight">
              <CopyButton text={() => asCurl(job, apiUrl("v1/jobs"), tenant)} label="Copy as curl" />
              <CopyButton text={() => asPython(job, apiUrl("").replace(/\/$/, ""), tenant)} label="Copy as Python" />
            </div>
          </Card>
        </div>
      </div>
    </>
  );
}

function Facts({ job }: { job: JobDetail }) {
  const facts: [string, ReactNode][] = [
    ["Queue", <Link key="q" to="/jobs" search={{ queue: job.queue }}>{job.queue}</Link>],
    ["Tenant", job.tenant],
    ["Submitted", <Time key="s" at={job.created_at} />],
    ["Due", job.scheduled_at && <Time key="d" at={job.scheduled_at} />],
    ["Started", job.started_at && <Time key="b" at={job.started_at} />],
    ["Finished", job.finished_at && <Time key="f" at={job.finished_at} />],
    ["Wait time", formatDuration(secondsBetween(job.scheduled_at ?? job.created_at, job.started_at))],
    ["Run time", formatDuration(secondsBetween(job.started_at, job.finished_at))],
    ["Attempts", `${job.attempts} of ${job.max_attempts}`],
    ["Priority", job.priority],
    ["Cost", job.cost === 1 ? null : job.cost],
    ["Timeout", job.timeout === null ? null : formatDuration(job.timeout)],
    ["Deadline", job.deadline && <Time key="e" at={job.deadline} />],
    ["Worker", job.worker],
    ["Lease expires", job.lease_until && <Time key="l" at={job.lease_until} />],
    ["Concurrency key", job.concurrency_key && <code key="c">{job.concurrency_key}</code>],
    ["Idempotency key", job.idempotency_key && <code key="i">{job.idempotency_key}</code>],
    ["Tags", job.tags.length ? <Tags key="t" tags={job.tags} /> : null],
    ["Replayed", job.generation ? pluralize(job.generation, "time") : null],
    ["Parent", job.lineage.parent_id && <JobLink key="p" id={job.lineage.parent_id} />],
    ["Schedule", job.lineage.schedule],
    ["Workflow", job.workflow_id && <code key="w">{job.workflow_id}</code>],
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === null || value === undefined || value === "" || value === "–" ? null : (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function JobLink({ id }: { id: string }) {
  return (
    <Link to="/jobs/$id" params={{ id }}>
      <code>{id}</code>
    </Link>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <span className="row tight">
      {tags.map((tag) => (
        <Link key={tag} to="/jobs" search={{ tag }} className="tag">
          {tag}
        </Link>
      ))}
    </span>
  );
}

function Progress({ progress }: { progress: Json }) {
  const report = (progress ?? {}) as { fraction?: number | null; note?: string | null };
  if (typeof report.fraction !== "number" && !report.note) return null;
  const fraction = Math.min(1, Math.max(0, report.fraction ?? 0));
  return (
    <Card title="Progress" aside={typeof report.fraction === "number" ? <strong className="num">{Math.round(fraction * 100)} %</strong> : undefined}>
      <div className="pad stack tight">
        {typeof report.fraction === "number" && <progress className="meter" value={fraction} max={1} aria-label="Progress" />}
        {report.note && <div className="wrap-any">{report.note}</div>}
      </div>
    </Card>
  );
}

function Steps({ steps }: { steps: readonly StepOut[] }) {
  return (
    <Card title="Steps">
      <ul className="lines">
        {steps.map((step) => (
          <li key={step.key} className="step">
            <span className={`dot ${step.state === "done" ? "live-on" : "stale"}`} />
            <span className="strong cut">{step.key}</span>
            <span className="grow">
              {step.transaction ? <span className="soft">transaction committed with the step</span> : step.state === "done" ? <JsonTree label={`Result of ${step.key}`} value={step.result as unknown as Json} /> : <span className="soft">started, not completed</span>}
            </span>
            <span className="soft small nowrap">
              <Time at={step.recorded_at} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Lists that are too large for one response, and the command that prints all of them. */
function Truncated({ job }: { job: JobDetail }) {
  if (!job.truncated.length) return null;
  const names = job.truncated.map((part) => (part.field === "steps" ? "steps" : "older attempts"));
  return (
    <div className="note calm" role="note">
      <div className="wrap-any">
        Some {names.join(" and ")} are not shown here because they are large. Show all with <code>holdfast jobs show {job.id}</code>.
      </div>
    </div>
  );
}

function Value({ title, value }: { title: string; value: Json }) {
  return (
    <Card title={title} aside={<CopyButton text={() => stringifyExact(value, 2)} label="Copy JSON" />}>
      <div className="pad">
        <JsonTree value={value} label={title} />
      </div>
    </Card>
  );
}
