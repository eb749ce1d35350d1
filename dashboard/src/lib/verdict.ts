/** Is work flowing, and if not, why: one verdict from what the API tells. Pure, so that it can be tried by table. */
import type { PauseOut, QueueOut, Stats, Summary, WorkerOut } from "../api/types.gen";
import { percent, plural, rate, span } from "./format";

export type Level = "good" | "calm" | "warn" | "bad";

export interface Reason {
  level: Level;
  text: string;
  /** Where to look. */
  to?: { path: string; search?: Record<string, string> };
}

export interface Verdict {
  level: Level;
  headline: string;
  reasons: Reason[];
}

/** A job that is due for this long while nothing is in its way is worth a word. */
export const LONG_WAIT = 30;
const FAILS_MUCH = 0.2;
const FAILS_MOSTLY = 0.5;
const FEW = 10;

export interface Seen {
  stats: Stats;
  queues: readonly QueueOut[];
  workers: readonly WorkerOut[];
  /** Of the last minutes. */
  recent: Summary;
  /** Types and tenants that rest, where the key may see them. */
  pauses?: readonly PauseOut[];
}

export function verdict({ stats, queues, workers, recent, pauses = [] }: Seen): Verdict {
  const alive = workers.filter((worker) => worker.alive);
  const { ready, running } = stats.statuses;
  const reasons: Reason[] = [];
  if (!alive.length) {
    reasons.push({
      level: ready + running > 0 ? "bad" : "warn",
      text: workers.length ? `No worker is alive: ${plural(workers.length, "worker")} fell silent.` : "No worker is registered: start one with holdfast work.",
      to: { path: "/workers" },
    });
  }
  const slow = queues.filter((queue) => waitsLong(queue) && alive.some((worker) => serves(worker, queue.name)));
  for (const pause of pauses) reasons.push(ofPause(pause, stats, slow.length > 0));
  for (const queue of queues) reasons.push(...ofQueue(queue, alive));
  reasons.push(...ofWaits(slow));
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const held = alive.reduce((sum, worker) => sum + worker.running, 0);
  if (alive.length && ready > 0 && slots > 0 && held >= slots) {
    reasons.push({ level: "calm", text: `All ${plural(slots, "slot")} of the workers are taken: what is ready waits its turn.`, to: { path: "/workers" } });
  }
  const ratio = recent.failure_ratio;
  if (ratio !== null && recent.totals.started >= FEW && ratio > FAILS_MUCH) {
    reasons.push({
      level: ratio > FAILS_MOSTLY ? "bad" : "warn",
      text: `${percent(ratio)} of the attempts of the last minutes failed.`,
      to: { path: "/dead" },
    });
  }
  const order: Level[] = ["bad", "warn", "calm", "good"];
  reasons.sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  const worst = reasons[0]?.level;
  const finished = recent.rates.finished;
  if (worst === "bad") return { level: "bad", headline: finished > 0 ? "Work is in trouble" : "Work is not flowing", reasons };
  if (worst === "warn") return { level: "warn", headline: finished > 0 ? "Work is flowing, with a catch" : "Something needs a look", reasons };
  if (finished > 0 || running > 0) return { level: "good", headline: `Work is flowing: ${rate(finished)} jobs a second`, reasons };
  return { level: "calm", headline: ready > 0 ? "Work is about to start" : "Idle: there is nothing to do", reasons };
}

/** What rests, and how many jobs that holds up, where it is counted. */
function ofPause(pause: PauseOut, stats: Stats, slow: boolean): Reason {
  const held = pause.kind === "type" ? (stats.types?.find((each) => each.name === pause.name)?.statuses.ready ?? 0) : 0;
  const why = pause.reason ? `: ${pause.reason}` : "";
  const waits = held ? `, and ${plural(held, "job waits", "jobs wait")} for it` : "";
  // How many jobs of a tenant wait is not among the figures; where some wait long, this may be why.
  return { level: held || (pause.kind === "tenant" && slow) ? "warn" : "calm", text: `The ${pause.kind} ${pause.name} is paused${why}${waits}.`, to: { path: pause.kind === "type" ? "/queues" : "/tenants" } };
}

function ofQueue(queue: QueueOut, alive: readonly WorkerOut[]): Reason[] {
  const to = { path: "/jobs", search: { queue: queue.name, status: "ready" } };
  if (queue.paused) {
    const why = queue.reason ? `: ${queue.reason}` : "";
    const waits = queue.statuses.ready ? `, and ${plural(queue.statuses.ready, "job waits", "jobs wait")} in it` : "";
    return [{ level: queue.statuses.ready ? "warn" : "calm", text: `The queue ${queue.name} is paused${why}${waits}.`, to: { path: "/queues" } }];
  }
  if (!waitsLong(queue) || !alive.length || alive.some((worker) => serves(worker, queue.name))) return [];
  return [{ level: "bad", text: `No worker takes from the queue ${queue.name}: ${plural(queue.statuses.ready, "job waits", "jobs wait")}, the oldest for ${span(queue.oldest_wait)}.`, to }];
}

function waitsLong(queue: QueueOut): boolean {
  return !queue.paused && queue.statuses.ready > 0 && queue.oldest_wait !== null && queue.oldest_wait >= LONG_WAIT;
}

/** Queues that are served and yet keep jobs waiting: one line each, or one for all if there are many. */
function ofWaits(queues: readonly QueueOut[]): Reason[] {
  const longest = [...queues].sort((a, b) => (b.oldest_wait ?? 0) - (a.oldest_wait ?? 0));
  if (longest.length > 2) {
    const named = longest.slice(0, 4).map((queue) => `${queue.name} ${span(queue.oldest_wait)}`);
    const more = longest.length > named.length ? ` and ${longest.length - named.length} more` : "";
    return [{ level: "warn", text: `Jobs have waited long in ${longest.length} queues: ${named.join(", ")}${more}.`, to: { path: "/queues" } }];
  }
  return longest.map((queue) => ({
    level: "warn" as const,
    text: `In the queue ${queue.name} the oldest job has waited for ${span(queue.oldest_wait)}.`,
    to: { path: "/jobs", search: { queue: queue.name, status: "ready" } },
  }));
}

/** Whether a worker takes from a queue: its queues are `name` or `name:slots`; none named is all. */
export function serves(worker: Pick<WorkerOut, "queues">, queue: string): boolean {
  return !worker.queues.length || worker.queues.some((each) => each === "*" || each.replace(/:\d+$/, "") === queue);
}
