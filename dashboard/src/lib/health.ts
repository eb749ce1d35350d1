/** Health summary of the overview page: whether jobs are being processed and, if not, why. Pure function. */
import type { PauseOut, QueueOut, Stats, Summary, WorkerOut } from "../api/types.gen";
import { formatPercent, pluralize, formatRate, formatDuration } from "./format";

export type Level = "good" | "calm" | "warn" | "bad";

export interface HealthReason {
  level: Level;
  text: string;
  /** Page with details. */
  link?: { path: string; search?: Record<string, string> };
}

export interface Health {
  level: Level;
  headline: string;
  reasons: HealthReason[];
}

/** A due job that waits longer than this is reported. */
const LONG_WAIT_S = 30;
const WARN_FAILURE_RATIO = 0.2;
const BAD_FAILURE_RATIO = 0.5;
/** Fewer attempts than this say nothing about the failure ratio. */
const MIN_ATTEMPTS = 10;

export interface HealthInput {
  stats: Stats;
  queues: readonly QueueOut[];
  workers: readonly WorkerOut[];
  /** Summary of the last 5 minutes. */
  recent: Summary;
  /** Paused types and tenants, if the API key may list them. */
  pauses?: readonly PauseOut[];
}

export function assessHealth({ stats, queues, workers, recent, pauses = [] }: HealthInput): Health {
  const alive = workers.filter((worker) => worker.alive);
  const { ready, running } = stats.statuses;
  const reasons: HealthReason[] = [];
  if (!alive.length) {
    reasons.push({
      level: ready + running > 0 ? "bad" : "warn",
      text: workers.length ? `No worker is alive: ${pluralize(workers.length, "worker")} stopped sending heartbeats.` : "No worker is registered. Start one with: holdfast work.",
      link: { path: "/workers" },
    });
  }
  const slowQueues = queues.filter((queue) => hasLongWait(queue) && alive.some((worker) => serves(worker, queue.name)));
  for (const pause of pauses) reasons.push(pauseReason(pause, stats, slowQueues.length > 0));
  for (const queue of queues) reasons.push(...queueReasons(queue, alive));
  reasons.push(...waitReasons(slowQueues));
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = alive.reduce((sum, worker) => sum + worker.running, 0);
  if (alive.length && ready > 0 && slots > 0 && busy >= slots) {
    reasons.push({ level: "calm", text: `All ${pluralize(slots, "worker slot")} are busy: ready jobs wait for a free slot.`, link: { path: "/workers" } });
  }
  const ratio = recent.failure_ratio;
  if (ratio !== null && recent.totals.started >= MIN_ATTEMPTS && ratio > WARN_FAILURE_RATIO) {
    reasons.push({
      level: ratio > BAD_FAILURE_RATIO ? "bad" : "warn",
      text: `${formatPercent(ratio)} of attempts failed in the last 5 minutes.`,
      link: { path: "/dead" },
    });
  }
  const order: Level[] = ["bad", "warn", "calm", "good"];
  reasons.sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  const worst = reasons[0]?.level;
  const finished = recent.rates.finished;
  if (worst === "bad") return { level: "bad", headline: finished > 0 ? "Unhealthy: some jobs cannot run or keep failing" : "No jobs are being processed", reasons };
  if (worst === "warn") return { level: "warn", headline: finished > 0 ? "Processing jobs, with warnings" : "Needs attention", reasons };
  if (finished > 0 || running > 0) return { level: "good", headline: `Healthy: ${formatRate(finished)} jobs per second`, reasons };
  return { level: "calm", headline: ready > 0 ? "Jobs are waiting to start" : "Idle: no jobs to run", reasons };
}

/** Describe a paused type or tenant, and how many jobs it blocks if that is known. */
function pauseReason(pause: PauseOut, stats: Stats, someQueueIsSlow: boolean): HealthReason {
  const waiting = pause.kind === "type" ? (stats.types?.find((type) => type.name === pause.name)?.statuses.ready ?? 0) : 0;
  const reason = pause.reason ? `: ${pause.reason}` : "";
  const blocked = waiting ? ` ${pluralize(waiting, "job is", "jobs are")} waiting.` : "";
  // The statistics do not count waiting jobs per tenant, but a paused tenant may explain long waits.
  return { level: waiting || (pause.kind === "tenant" && someQueueIsSlow) ? "warn" : "calm", text: `The ${pause.kind} ${pause.name} is paused${reason}.${blocked}`, link: { path: pause.kind === "type" ? "/queues" : "/tenants" } };
}

function queueReasons(queue: QueueOut, alive: readonly WorkerOut[]): HealthReason[] {
  const link = { path: "/jobs", search: { queue: queue.name, status: "ready" } };
  if (queue.paused) {
    const reason = queue.reason ? `: ${queue.reason}` : "";
    const blocked = queue.statuses.ready ? ` ${pluralize(queue.statuses.ready, "job is", "jobs are")} waiting.` : "";
    return [{ level: queue.statuses.ready ? "warn" : "calm", text: `The queue ${queue.name} is paused${reason}.${blocked}`, link: { path: "/queues" } }];
  }
  if (!hasLongWait(queue) || !alive.length || alive.some((worker) => serves(worker, queue.name))) return [];
  return [{ level: "bad", text: `No worker serves the queue ${queue.name}: ${pluralize(queue.statuses.ready, "job is", "jobs are")} waiting, the oldest for ${formatDuration(queue.oldest_wait)}.`, link }];
}

function hasLongWait(queue: QueueOut): boolean {
  return !queue.paused && queue.statuses.ready > 0 && queue.oldest_wait !== null && queue.oldest_wait >= LONG_WAIT_S;
}

/** Report queues with long waits although workers serve them: one line each, or one line for many. */
function waitReasons(queues: readonly QueueOut[]): HealthReason[] {
  const longest = [...queues].sort((a, b) => (b.oldest_wait ?? 0) - (a.oldest_wait ?? 0));
  if (longest.length > 2) {
    const named = longest.slice(0, 4).map((queue) => `${queue.name} ${formatDuration(queue.oldest_wait)}`);
    const more = longest.length > named.length ? ` and ${longest.length - named.length} more` : "";
    return [{ level: "warn", text: `Long waits in ${longest.length} queues: ${named.join(", ")}${more}.`, link: { path: "/queues" } }];
  }
  return longest.map((queue) => ({
    level: "warn" as const,
    text: `The oldest job in the queue ${queue.name} has been waiting for ${formatDuration(queue.oldest_wait)}.`,
    link: { path: "/jobs", search: { queue: queue.name, status: "ready" } },
  }));
}

/** Whether a worker serves a queue. Its queues are `name` or `name:slots`; an empty list means all queues. */
export function serves(worker: Pick<WorkerOut, "queues">, queue: string): boolean {
  return !worker.queues.length || worker.queues.some((entry) => entry === "*" || entry.replace(/:\d+$/, "") === queue);
}
