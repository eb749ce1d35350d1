/** Explanation why a job is not running, computed by the server. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { explainQuery } from "../api/queries";
import type { JobDetail } from "../api/types.gen";
import { formatClock, formatExactTime } from "../lib/format";
import { shortId } from "../lib/ids";
import { Card, ErrorBox, Loading } from "./Feedback";
import { Time } from "./Time";

const WAITING = new Set(["ready", "scheduled", "retrying", "blocked"]);

export function WhyNotRunning({ job }: { job: JobDetail }) {
  const isWaiting = WAITING.has(job.status);
  const query = useQuery(explainQuery(job.id, isWaiting));
  if (!isWaiting) return null;
  const explanation = query.data;
  return (
    <Card title={explanation?.runnable ? "Ready to run" : "Why is it not running?"}>
      <div className="pad stack tight">
        {query.isPending && <Loading lines={2} />}
        {query.error && <ErrorBox error={query.error} retry={() => void query.refetch()} />}
        {explanation === null && <BasicExplanation job={job} />}
        {explanation && (
          <>
            <ol className="reasons">
              {explanation.reasons.map((reason) => (
                <li key={`${reason.code} ${reason.detail}`} className={`wrap-any ${reason.blocks ? "" : "soft"}`}>
                  <ReasonText text={reason.detail} />
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
            {explanation.estimate && (
              <p className="soft small" title={explanation.estimate.basis}>
                {explanation.estimate.at ? (
                  <>
                    Estimated start: <Time at={explanation.estimate.at} /> ({explanation.estimate.basis}).
                  </>
                ) : (
                  <>No estimate: {explanation.estimate.basis}.</>
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

/** Reason with its times converted to the local time zone. */
function ReasonText({ text }: { text: string }) {
  const [before, at, after] = text.split(INSTANT);
  if (!at) return <>{text}</>;
  return (
    <>
      {before}
      <time dateTime={at} title={formatExactTime(at)} className="nowrap num">
        {formatClock(at)}
      </time>
      {after}
    </>
  );
}

/** Links to the jobs that block this one. */
function Holders({ ids }: { ids: readonly string[] }) {
  return (
    <span className="small">
      {" "}
      blocked by{" "}
      {ids.slice(0, 5).map((id) => (
        <Link key={id} to="/jobs/$id" params={{ id }}>
          {shortId(id)}{" "}
        </Link>
      ))}
    </span>
  );
}

/** Explanation from the status alone, for servers without the explain route. */
function BasicExplanation({ job }: { job: JobDetail }) {
  if (job.status === "blocked") return <p>Waiting for other jobs of its workflow.</p>;
  if (job.status === "ready") return <p>Due. It starts as soon as a worker with a free slot claims it. Check its queue and the workers.</p>;
  return (
    <p>
      Due <Time at={job.scheduled_at} />
      {job.status === "retrying" ? ", after a failed attempt." : "."}
    </p>
  );
}
