import { expect, it } from "vitest";
import type { JobDetail } from "../api/types.gen";
import { timeline } from "./timeline";

const AT = (second: number) => `2030-01-31T12:00:${String(second).padStart(2, "0")}Z`;
const NOW = Date.parse(AT(30));
const attempt = (number: number, from: number, to: number, outcome = "failed") => ({ attempt: number, generation: 0, worker: "w1", started_at: AT(from), ended_at: AT(to), outcome, error: outcome === "failed" ? { kind: "Oops", message: "no", fingerprint: "f" } : null, logs: null });
const job = (given: Partial<JobDetail>) => ({ created_at: AT(0), attempts: 0, attempt_log: [], started_at: null, finished_at: null, scheduled_at: null, deadline: null, worker: null, idempotency_key: null, reason: null, ...given }) as unknown as JobDetail;
const told = (given: Partial<JobDetail>) => timeline(job(given), NOW).map((moment) => moment.what);

it("tells of a job that succeeded at once", () => {
  expect(told({ status: "succeeded", attempts: 1, started_at: AT(1), finished_at: AT(2) })).toEqual(["Submitted", "Attempt 1 began", "Succeeded"]);
});
it("tells each failed attempt once, and the end", () => {
  const log = [attempt(1, 1, 2), attempt(2, 5, 6)] as JobDetail["attempt_log"];
  expect(told({ status: "dead", attempts: 2, attempt_log: log, started_at: AT(5), finished_at: AT(6) })).toEqual([
    "Submitted", "Attempt 1 began", "Attempt 1 failed", "Attempt 2 began", "Attempt 2 failed", "Dead: no attempt is left, or none is worth it",
  ]);
});
it("tells what is yet to come", () => {
  const moments = timeline(job({ status: "retrying", attempts: 1, attempt_log: [attempt(1, 1, 2)] as JobDetail["attempt_log"], started_at: AT(1), scheduled_at: AT(40), deadline: AT(50) }), NOW);
  expect(moments.filter((moment) => moment.ahead).map((moment) => moment.what)).toEqual(["Attempt 2 is due", "Deadline"]);
});
it("tells of the attempt that runs beside those that failed", () => {
  expect(told({ status: "running", attempts: 2, attempt_log: [attempt(1, 1, 2)] as JobDetail["attempt_log"], started_at: AT(8), worker: "w2" }).at(-1)).toBe("Attempt 2 began");
});
