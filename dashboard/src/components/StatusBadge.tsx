import type { JobOut } from "../api/types.gen";

export type Status = JobOut["status"];

/** Job statuses in display order. */
export const STATUSES: readonly Status[] = [
  "ready", "running", "scheduled", "retrying", "blocked", "succeeded", "dead", "cancelled",
];

/** Tooltips of the statuses. */
export const STATUS_DESCRIPTIONS: Record<Status, string> = {
  blocked: "waiting for other jobs of its workflow",
  scheduled: "due later",
  ready: "waiting for a worker",
  running: "claimed by a worker",
  retrying: "waiting for the next attempt after a failure",
  succeeded: "finished successfully",
  dead: "out of attempts, or failed permanently",
  cancelled: "cancelled, will not run",
};

export function StatusBadge({ status }: { status: Status }) {
  return (
    <span className={`state ${status}`} title={STATUS_DESCRIPTIONS[status]}>
      {status}
    </span>
  );
}
