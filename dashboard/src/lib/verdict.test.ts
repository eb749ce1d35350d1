import { describe, expect, it } from "vitest";
import type { PauseOut, QueueOut, Stats, StatusCounts, Summary, WorkerOut } from "../api/types.gen";
import { type Seen, serves, verdict } from "./verdict";

const counts = (given: Partial<StatusCounts> = {}) => ({ blocked: 0, scheduled: 0, ready: 0, running: 0, retrying: 0, succeeded: 0, dead: 0, cancelled: 0, ...given });
const queue = (given: Partial<Omit<QueueOut, "statuses">> & { statuses?: Partial<StatusCounts> } = {}) =>
  ({ name: "mail", paused: false, reason: "", until: null, oldest_wait: null, ...given, statuses: counts(given.statuses) }) as QueueOut;
const worker = (given: Partial<WorkerOut> = {}) => ({ id: "w", alive: true, queues: ["mail:5"], slots: 5, running: 1, ...given }) as WorkerOut;

const pause = (given: Partial<PauseOut>) => ({ kind: "type", name: "mail.send", reason: "", until: null, ...given }) as PauseOut;

function seen(given: { statuses?: Partial<StatusCounts>; queues?: QueueOut[]; workers?: WorkerOut[]; finished?: number; failed?: number } = {}): Seen {
  return {
    stats: { statuses: counts(given.statuses) } as Stats,
    queues: given.queues ?? [],
    workers: given.workers ?? [worker()],
    recent: { rates: { finished: given.finished ?? 0 }, totals: { started: 100 }, failure_ratio: given.failed ?? 0 } as Summary,
  };
}

describe("the verdict", () => {
  it("is good when jobs finish", () => {
    expect(verdict(seen({ finished: 12 }))).toEqual({ level: "good", headline: "Work is flowing: 12 jobs a second", reasons: [] });
  });
  it("is calm when there is nothing to do", () => expect(verdict(seen()).headline).toMatch(/^Idle/));
  it("is bad when nobody works and work waits", () => {
    const found = verdict(seen({ statuses: { ready: 3 }, workers: [worker({ alive: false })] }));
    expect([found.level, found.headline, found.reasons[0]?.text]).toEqual(["bad", "Work is not flowing", "No worker is alive: 1 worker fell silent."]);
  });
  it("names types and tenants that rest, and what that holds up", () => {
    const found = verdict({ ...seen({ finished: 5 }), stats: { statuses: counts(), types: [{ name: "mail.send", statuses: counts({ ready: 2 }) }] } as unknown as Stats, pauses: [pause({ kind: "tenant", name: "acme" }), pause({ reason: "the relay is down" })] });
    expect([found.level, found.reasons.map((reason) => reason.text)]).toEqual(["warn", ["The type mail.send is paused: the relay is down, and 2 jobs wait for it.", "The tenant acme is paused."]]);
  });
  it("tells of many queues that wait in one line", () => {
    const slow = ["a", "b", "c", "d", "e"].map((name, index) => queue({ name, oldest_wait: 40 + index, statuses: { ready: 1 } }));
    const found = verdict(seen({ finished: 5, queues: slow, workers: [worker({ queues: [] })] }));
    expect(found.reasons.map((reason) => reason.text)).toEqual(["Jobs have waited long in 5 queues: e 44 s, d 43 s, c 42 s, b 41 s and 1 more."]);
  });
  it("only warns of missing workers while nothing waits", () => expect(verdict(seen({ workers: [] })).level).toBe("warn"));
  it("names a queue that nobody serves", () => {
    const found = verdict(seen({ finished: 5, queues: [queue({ name: "pdf", oldest_wait: 90, statuses: { ready: 2 } })] }));
    expect([found.level, found.reasons[0]?.text]).toEqual(["bad", "No worker takes from the queue pdf: 2 jobs wait, the oldest for 1 min 30 s."]);
  });
  it("names a queue that is slow, and leaves a short wait alone", () => {
    expect(verdict(seen({ finished: 5, queues: [queue({ oldest_wait: 45, statuses: { ready: 2 } })] })).level).toBe("warn");
    expect(verdict(seen({ finished: 5, queues: [queue({ oldest_wait: 5, statuses: { ready: 2 } })] })).level).toBe("good");
  });
  it("tells why a queue rests", () => {
    const found = verdict(seen({ queues: [queue({ paused: true, reason: "moving", statuses: { ready: 1 } })] }));
    expect([found.level, found.reasons[0]?.text]).toEqual(["warn", "The queue mail is paused: moving, and 1 job waits in it."]);
  });
  it.each([[0.1, "good"], [0.3, "warn"], [0.7, "bad"]])("takes a failure ratio of %d for %s", (failed, level) => {
    expect(verdict(seen({ finished: 5, failed })).level).toBe(level);
  });
  it("says that workers are full without alarm", () => {
    const found = verdict(seen({ finished: 5, statuses: { ready: 9 }, workers: [worker({ running: 5 })] }));
    expect([found.level, found.reasons.length]).toEqual(["good", 1]);
  });
  it("puts the worst first", () => {
    const found = verdict(seen({ finished: 5, failed: 0.3, queues: [queue({ paused: true }), queue({ name: "pdf", oldest_wait: 90, statuses: { ready: 2 } })] }));
    expect(found.reasons.map((reason) => reason.level)).toEqual(["bad", "warn", "calm"]);
  });
});

it.each([[["mail:5"], true], [["mail"], true], [[], true], [["*"], true], [["mailing:5"], false], [["a:mail"], false]])("a worker of %j serves mail: %s", (queues, does) => {
  expect(serves({ queues }, "mail")).toBe(does);
});
