/** Why a job does not run: what the server explains, from the same rules by which it hands out jobs. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { explainQuery } from "../api/queries";
import type { JobDetail } from "../api/types.gen";
import { clock, exact } from "../lib/format";
import { shortId } from "../lib/ids";
import { Card, ErrorBox, Loading } from "./States";
import { Time } from "./Time";

const WAITS = new Set(["ready", "scheduled", "retrying", "blocked"]);

export function WhyNot({ job }: { job: JobDetail }) {
  const waits = WAITS.has(job.status);
  const explained = useQuery(explainQuery(job.id, waits));
  if (!waits) return null;
  const told = explained.data;
  return (
    <Card title={told?.runnable ? "It may run now" : "Why is it not running?"}>
      <div className="pad stack tight">
        {explained.isPending && <Loading lines={2} />}
        {explained.error && <ErrorBox error={explained.error} retry={() => void explained.refetch()} />}
        {told === null && <OwnWords job={job} />}
        {told && (
          <>
            <ol className="reasons">
              {told.reasons.map((reason) => (
                <li key={`${reason.code} ${reason.detail}`} className={`wrap-any ${reason.blocks ? "" : "soft"}`}>
                  <Told text={reason.detail} />
                  {reason.until && !INSTANT.test(reason.detail) && (
                    <>
                      {" "}
                      (<Time at={reason.until} />)
                    </>
                  )}
                  {reason.holders?.length ? <Holders ids={reason.holders} /> : null}
                </li>
              ))}
            </ol>
            {told.estimate && (
              <p className="soft small" title={told.estimate.basis}>
                {told.estimate.at ? (
                  <>
                    It may start <Time at={told.estimate.at} />: {told.estimate.basis}.
                  </>
                ) : (
                  <>No estimate: {told.estimate.basis}.</>
                )}
              </p>
            )}
          </>
        )}
      </div>
    </Card>
  );
}

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** What the server says, with the times in it as this place has them. */
function Told({ text }: { text: string }) {
  const [before, at, after] = text.split(INSTANT);
  if (!at) return <>{text}</>;
  return (
    <>
      {before}
      <time dateTime={at} title={exact(at)} className="nowrap num">
        {clock(at)}
      </time>
      {after}
    </>
  );
}

/** Jobs that hold what this one waits for. */
function Holders({ ids }: { ids: readonly string[] }) {
  return (
    <span className="small">
      {" "}
      held by{" "}
      {ids.slice(0, 5).map((id) => (
        <Link key={id} to="/jobs/$id" params={{ id }}>
          {shortId(id)}{" "}
        </Link>
      ))}
    </span>
  );
}

/** What the job itself tells, where the node cannot explain more. */
function OwnWords({ job }: { job: JobDetail }) {
  if (job.status === "blocked") return <p>It waits for other jobs of its workflow.</p>;
  if (job.status === "ready") return <p>It is due: it runs as soon as a worker with a free slot takes it. Look at its queue and at the workers.</p>;
  return (
    <p>
      It is due <Time at={job.scheduled_at} />
      {job.status === "retrying" ? ", after an attempt that failed." : "."}
    </p>
  );
}
