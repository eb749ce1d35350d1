/** What happened to a job, in order, made of what the API tells of it. */
import type { AttemptOut, JobDetail } from "../api/types.gen";

export interface Moment {
  at: string;
  tone: "good" | "bad" | "warn" | "busy" | "later" | "rest";
  what: string;
  /** More words on it. */
  more?: string;
  /** It is yet to come. */
  ahead?: boolean;
}

const TONES: Record<string, Moment["tone"]> = { failed: "bad", crashed: "bad", timed_out: "bad", lost: "bad", succeeded: "good", cancelled: "rest", snoozed: "later" };

export function timeline(job: JobDetail, now: number): Moment[] {
  const found: Moment[] = [{ at: job.created_at, tone: "rest", what: "Submitted", ...(job.idempotency_key ? { more: `with the key ${job.idempotency_key}` } : {}) }];
  for (const attempt of job.attempt_log) found.push(...ofAttempt(attempt));
  const last = job.attempt_log.at(-1);
  const recorded = last !== undefined && job.started_at !== null && Date.parse(last.started_at) >= Date.parse(job.started_at);
  if (job.started_at && !recorded) {
    found.push({ at: job.started_at, tone: "busy", what: `Attempt ${job.attempts} began`, ...(job.worker ? { more: `on ${job.worker}` } : {}) });
  }
  if (job.finished_at) {
    const ends = { succeeded: ["good", "Succeeded"], dead: ["bad", "Dead: no attempt is left, or none is worth it"], cancelled: ["rest", "Cancelled"] } as const;
    const [tone, what] = ends[job.status as "dead"] ?? ["rest", "Ended"];
    found.push({ at: job.finished_at, tone, what, ...(job.status === "cancelled" && job.reason ? { more: job.reason } : {}) });
  } else if (job.scheduled_at && (job.status === "scheduled" || job.status === "retrying") && Date.parse(job.scheduled_at) > now) {
    found.push({ at: job.scheduled_at, tone: "later", what: job.status === "retrying" ? `Attempt ${job.attempts + 1} is due` : "Due", ahead: true });
  }
  if (job.deadline && !job.finished_at) found.push({ at: job.deadline, tone: "warn", what: "Deadline", ahead: Date.parse(job.deadline) > now });
  return found.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

function ofAttempt(attempt: AttemptOut): Moment[] {
  const tone = TONES[attempt.outcome] ?? (attempt.error ? "bad" : "rest");
  return [
    { at: attempt.started_at, tone: "busy", what: `Attempt ${attempt.attempt}${attempt.generation ? ` of replay ${attempt.generation}` : ""} began`, more: `on ${attempt.worker}` },
    { at: attempt.ended_at, tone, what: `Attempt ${attempt.attempt} ${attempt.outcome.replaceAll("_", " ")}`, ...(attempt.error ? { more: `${attempt.error.kind}: ${attempt.error.message}` } : {}) },
  ];
}
