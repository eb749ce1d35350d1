/** Why a job does not run: what the server explains, from the same rules by which it hands out jobs. */
import { useQuery } from "@tanstack/react-query";
import { explainQuery } from "../api/queries";
import type { JobDetail } from "../api/types.gen";
import { span } from "../lib/format";
import { Card, ErrorBox, Loading } from "./States";
import { Time } from "./Time";

const WAITS = new Set(["ready", "scheduled", "retrying", "blocked"]);

export function WhyNot({ job }: { job: JobDetail }) {
  const waits = WAITS.has(job.status);
  const explained = useQuery(explainQuery(job.id, waits));
  if (!waits) return null;
  const told = explained.data;
  const reasons = told?.reasons ?? [];
  return (
    <Card title="Why is it not running?">
      <div className="pad stack tight">
        {explained.isPending && <Loading lines={2} />}
        {explained.error && <ErrorBox error={explained.error} retry={() => void explained.refetch()} />}
        {told === null && <OwnWords job={job} />}
        {told && (
          <>
            {(told.summary ?? told.headline ?? told.verdict) && <p>{told.summary ?? told.headline ?? told.verdict}</p>}
            {reasons.length > 0 && (
              <ol className="reasons">
                {reasons.map((reason, index) => (
                  <li key={`${reason.code}-${index}`} className="wrap-any">
                    {reason.detail ?? reason.text ?? reason.message ?? reason.code}
                  </li>
                ))}
              </ol>
            )}
            {!reasons.length && <p>Nothing is in its way: it runs when a worker takes it.</p>}
            {typeof told.estimate === "number" && <p className="soft">It should start in about {span(told.estimate)}.</p>}
            {(typeof told.estimate === "string" || told.estimated_start) && (
              <p className="soft">
                It should start <Time at={typeof told.estimate === "string" ? told.estimate : told.estimated_start} />.
              </p>
            )}
          </>
        )}
      </div>
    </Card>
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
