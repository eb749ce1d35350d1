import { describe, expect, it } from "vitest";
import type { PauseOut, QueueOut, Stats, StatusCounts, Summary, WorkerOut } from "../api/types.gen";
import { assessHealth, type HealthInput, serves } from "./health";

const counts = (overrides: Partial<StatusCounts> = {}) => ({ blocked: 0, scheduled: 0, ready: 0, running: 0, retrying: 0, succeeded: 0, dead: 0, cancelled: 0, ...overrides });
const queue = (overrides: Partial<Omit<QueueOut, "statuses">> & { statuses?: Partial<StatusCounts> } = {}) =>
  ({ name: "mail", paused: false, reason: "", until: null, oldest_wait: null, ...overrides, statuses: counts(overrides.statuses) }) as QueueOut;
const worker = (overrides: Partial<WorkerOut> = {}) => ({ id: "w", alive: true, queues: ["mail:5"], slots: 5, running: 1, ...overrides }) as WorkerOut;

const pause = (overrides: Partial<PauseOut>) => ({ kind: "type", name: "mail.send", reason: "", until: null, ...overrides }) as PauseOut;

function input(overrides: { statuses?: Partial<StatusCounts>; queues?: QueueOut[]; workers?: WorkerOut[]; finished?: number; failed?: number } = {}): HealthInput {
  return {
    stats: { statuses: counts(overrides.statuses) } as Stats,
    queues: overrides.queues ?? [],
    workers: overrides.workers ?? [worker()],
    recent: { rates: { finished: overrides.finished ?? 0 }, totals: { started: 100 }, failure_ratio: overrides.failed ?? 0 } as Summary,
  };
}

describe("the health summary", () => {
  it("is good when jobs finish", () => {
    expect(assessHealth(input({ finished: 12 }))).toEqual({ level: "good", headline: "Healthy: 12 jobs per second", reasons: [] });
  });
  it("is calm when there are no jobs", () => expect(assessHealth(input()).headline).toMatch(/^Idle/));
  it("is bad when jobs are waiting and no worker is alive", () => {
    const health = assessHealth(input({ statuses: { ready: 3 }, workers: [worker({ alive: false })] }));
    expect([health.level, health.headline, health.reasons[0]?.text]).toEqual(["bad", "No jobs are being processed", "No worker is alive: 1 worker stopped sending heartbeats."]);
  });
  it("reports paused types and tenants, and the jobs that wait for them", () => {
    const health = assessHealth({ ...input({ finished: 5 }), stats: { statuses: counts(), types: [{ name: "mail.send", statuses: counts({ ready: 2 }) }] } as unknown as Stats, pauses: [pause({ kind: "tenant", name: "acme" }), pause({ reason: "the relay is down" })] });
    expect([health.level, health.reasons.map((reason) => reason.text)]).toEqual(["warn", ["The type mail.send is paused: the relay is down. 2 jobs are waiting.", "The tenant acme is paused."]]);
  });
  it("reports many slow queues in one line", () => {
    const slow = ["a", "b", "c", "d", "e"].map((name, index) => queue({ name, oldest_wait: 40 + index, statuses: { ready: 1 } }));
    const health = assessHealth(input({ finished: 5, queues: slow, workers: [worker({ queues: [] })] }));
    expect(health.reasons.map((reason) => reason.text)).toEqual(["Long waits in 5 queues: e 44 s, d 43 s, c 42 s, b 41 s and 1 more."]);
  });
  it("only warns about missing workers while no jobs are waiting", () => expect(assessHealth(input({ workers: [] })).level).toBe("warn"));
  it("reports a queue that no worker serves", () => {
    const health = assessHealth(input({ finished: 5, queues: [queue({ name: "pdf", oldest_wait: 90, statuses: { ready: 2 } })] }));
    expect([health.level, health.reasons[0]?.text]).toEqual(["bad", "No worker serves the queue pdf: 2 jobs are waiting, the oldest for 1 min 30 s."]);
  });
  it("warns about a slow queue, but not about a short wait", () => {
    expect(assessHealth(input({ finished: 5, queues: [queue({ oldest_wait: 45, statuses: { ready: 2 } })] })).level).toBe("warn");
    expect(assessHealth(input({ finished: 5, queues: [queue({ oldest_wait: 5, statuses: { ready: 2 } })] })).level).toBe("good");
  });
  it("gives the reason why a queue is paused", () => {
    const health = assessHealth(input({ queues: [queue({ paused: true, reason: "moving", statuses: { ready: 1 } })] }));
    expect([health.level, health.reasons[0]?.text]).toEqual(["warn", "The queue mail is paused: moving. 1 job is waiting."]);
  });
  it.each([[0.1, "good"], [0.3, "warn"], [0.7, "bad"]])("rates a failure ratio of %d as %s", (failed, level) => {
    expect(assessHealth(input({ finished: 5, failed })).level).toBe(level);
  });
  it("mentions busy workers without a warning", () => {
    const health = assessHealth(input({ finished: 5, statuses: { ready: 9 }, workers: [worker({ running: 5 })] }));
    expect([health.level, health.reasons.length]).toEqual(["good", 1]);
  });
  it("lists the most severe reason first", () => {
    const health = assessHealth(input({ finished: 5, failed: 0.3, queues: [queue({ paused: true }), queue({ name: "pdf", oldest_wait: 90, statuses: { ready: 2 } })] }));
    expect(health.reasons.map((reason) => reason.level)).toEqual(["bad", "warn", "calm"]);
  });
});

it.each([[["mail:5"], true], [["mail"], true], [[], true], [["*"], true], [["mailing:5"], false], [["a:mail"], false]])("a worker with the queues %j serves mail: %s", (queues, expected) => {
  expect(serves({ queues }, "mail")).toBe(expected);
});
