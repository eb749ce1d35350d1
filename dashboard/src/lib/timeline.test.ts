import { expect, it } from "vitest";
import type { JobDetail } from "../api/types.gen";
import { timeline } from "./timeline";

const AT = (second: number) => `2030-01-31T12:00:${String(second).padStart(2, "0")}Z`;
const NOW = Date.parse(AT(30));
const attempt = (number: number, from: number, to: number, outcome = "failed") => ({ attempt: number, generation: 0, worker: "w1", started_at: AT(from), ended_at: AT(to), outcome, error: outcome === "failed" ? { kind: "Oops", message: "no", fingerprint: "f" } : null, logs: null });
const job = (overrides: Partial<JobDetail>) => ({ created_at: AT(0), attempts: 0, attempt_log: [], started_at: null, finished_at: null, scheduled_at: null, deadline: null, worker: null, idempotency_key: null, reason: null, ...overrides }) as unknown as JobDetail;
const titles = (overrides: Partial<JobDetail>) => timeline(job(overrides), NOW).map((entry) => entry.title);

it("shows a job that succeeded at the first attempt", () => {
  expect(titles({ status: "succeeded", attempts: 1, started_at: AT(1), finished_at: AT(2) })).toEqual(["Submitted", "Attempt 1 started", "Succeeded"]);
});
it("shows each failed attempt once, and the end", () => {
  const log = [attempt(1, 1, 2), attempt(2, 5, 6)] as JobDetail["attempt_log"];
  expect(titles({ status: "dead", attempts: 2, attempt_log: log, started_at: AT(5), finished_at: AT(6) })).toEqual([
    "Submitted", "Attempt 1 started", "Attempt 1 failed", "Attempt 2 started", "Attempt 2 failed", "Dead: out of attempts, or failed permanently",
  ]);
});
it("shows the next attempt and the deadline as upcoming", () => {
  const entries = timeline(job({ status: "retrying", attempts: 1, attempt_log: [attempt(1, 1, 2)] as JobDetail["attempt_log"], started_at: AT(1), scheduled_at: AT(40), deadline: AT(50) }), NOW);
  expect(entries.filter((entry) => entry.upcoming).map((entry) => entry.title)).toEqual(["Attempt 2 is due", "Deadline"]);
});
it("shows the running attempt after the failed ones", () => {
  expect(titles({ status: "running", attempts: 2, attempt_log: [attempt(1, 1, 2)] as JobDetail["attempt_log"], started_at: AT(8), worker: "w2" }).at(-1)).toBe("Attempt 2 started");
});
