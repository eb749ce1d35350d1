import type { JobOut } from "../api/types.gen";

export type Status = JobOut["status"];

/** In the order in which a job passes them. */
export const STATUSES: readonly Status[] = [
  "ready", "running", "scheduled", "retrying", "blocked", "succeeded", "dead", "cancelled",
];

/** What each state means, for whoever hovers. */
export const MEANINGS: Record<Status, string> = {
  blocked: "waits for other jobs of its workflow",
  scheduled: "due later",
  ready: "may be taken by any worker that knows its type",
  running: "held by a worker",
  retrying: "an attempt failed; due again after its backoff",
  succeeded: "done",
  dead: "all attempts spent, or not worth another",
  cancelled: "will not run",
};

export function StateBadge({ status }: { status: Status }) {
  return (
    <span className={`state ${status}`} title={MEANINGS[status]}>
      {status}
    </span>
  );
}
