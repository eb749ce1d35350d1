/** Timeline of a job, derived from its details. */
import type { AttemptOut, JobDetail } from "../api/types.gen";

export interface TimelineEntry {
  at: string;
  tone: "good" | "bad" | "warn" | "busy" | "later" | "rest";
  title: string;
  detail?: string;
  /** True if it lies in the future. */
  upcoming?: boolean;
}

const TONES: Record<string, TimelineEntry["tone"]> = { failed: "bad", crashed: "bad", timed_out: "bad", lost: "bad", succeeded: "good", cancelled: "rest", snoozed: "later", unavailable: "later" };

export function timeline(job: JobDetail, now: number): TimelineEntry[] {
  const entries: TimelineEntry[] = [{ at: job.created_at, tone: "rest", title: "Submitted", ...(job.idempotency_key ? { detail: `with the idempotency key ${job.idempotency_key}` } : {}) }];
  for (const attempt of job.attempt_log) entries.push(...attemptEntries(attempt));
  const last = job.attempt_log.at(-1);
  const isLogged = last !== undefined && job.started_at !== null && Date.parse(last.started_at) >= Date.parse(job.started_at);
  if (job.started_at && !isLogged) {
    entries.push({ at: job.started_at, tone: "busy", title: `Attempt ${job.attempts} started`, ...(job.worker ? { detail: `on ${job.worker}` } : {}) });
  }
  if (job.finished_at) {
    const endings = { succeeded: ["good", "Succeeded"], dead: ["bad", "Dead: out of attempts, or failed permanently"], cancelled: ["rest", "Cancelled"] } as const;
    const [tone, title] = endings[job.status as "dead"] ?? ["rest", "Finished"];
    entries.push({ at: job.finished_at, tone, title, ...(job.status === "cancelled" && job.reason ? { detail: job.reason } : {}) });
  } else if (job.scheduled_at && (job.status === "scheduled" || job.status === "retrying") && Date.parse(job.scheduled_at) > now) {
    entries.push({ at: job.scheduled_at, tone: "later", title: job.status === "retrying" ? `Attempt ${job.attempts + 1} is due` : "Due", upcoming: true });
  }
  if (job.deadline && !job.finished_at) entries.push({ at: job.deadline, tone: "warn", title: "Deadline", upcoming: Date.parse(job.deadline) > now });
  return entries.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

function attemptEntries(attempt: AttemptOut): TimelineEntry[] {
  const tone = TONES[attempt.outcome] ?? (attempt.error ? "bad" : "rest");
  return [
    { at: attempt.started_at, tone: "busy", title: `Attempt ${attempt.attempt}${attempt.generation ? ` of replay ${attempt.generation}` : ""} started`, detail: `on ${attempt.worker}` },
    { at: attempt.ended_at, tone, title: `Attempt ${attempt.attempt} ${attempt.outcome.replaceAll("_", " ")}`, ...(attempt.error ? { detail: `${attempt.error.kind}: ${attempt.error.message}` } : {}) },
  ];
}
