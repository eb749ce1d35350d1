import { CancelJob, isUnavailable, PermanentError, RetryIn, Snooze } from "./errors.js";
import { encode, type Attempt } from "./job.js";
import type { ErrorIn, Json, SettleRequest } from "./wire.gen.js";

const MAX_RESULT_BYTES = 256 * 1024;
const HEAD_LENGTH = 1000;

/** Outcome of an attempt, as a worker reports it. */
export type Outcome = SettleRequest["outcomes"][number];

/** Outcome of a handler that returned. A result above 256 KiB is cut. */
export function succeeded(attempt: Attempt, value: unknown): Outcome {
  const text = encode("the result", value);
  const bytes = Buffer.byteLength(text);
  const cut = { truncated: true, bytes, head: text.slice(0, HEAD_LENGTH) };
  const result = bytes > MAX_RESULT_BYTES ? cut : (JSON.parse(text) as Json);
  return { outcome: "succeeded", ...named(attempt), logs: attempt.logs, result };
}

export function timedOutAfter(attempt: Attempt): Outcome {
  return { outcome: "timed_out", ...named(attempt), logs: attempt.logs, after: attempt.job.timeout ?? 0 };
}

export function released(attempt: Attempt): Outcome {
  return { outcome: "released", ...named(attempt) };
}

/** Outcome of a handler that threw. */
export function failed(attempt: Attempt, error: unknown): Outcome {
  const common = { ...named(attempt), logs: attempt.logs };
  if (error instanceof Snooze) return { outcome: "snoozed", ...common, delay: error.seconds };
  if (error instanceof CancelJob) return { outcome: "cancelled", ...common, reason: error.message };
  attempt.workerLog("warning", "the attempt failed", { error: String(error) });
  if (isUnavailable(error)) return { outcome: "unavailable", ...common, error: describe(error) };
  return {
    outcome: "failed",
    ...common,
    error: describe(error),
    retryable: !(error instanceof PermanentError),
    ...(error instanceof RetryIn ? { retry_in: error.seconds } : {}),
  };
}

function named(attempt: Attempt): { id: string; fence: number } {
  return { id: attempt.job.id, fence: attempt.job.fence };
}

function describe(error: unknown): ErrorIn {
  if (!(error instanceof Error)) return { kind: typeof error, message: String(error) };
  const cause = error.cause instanceof Error && (error instanceof PermanentError || error instanceof RetryIn);
  return { kind: cause ? (error.cause as Error).name : error.name, message: error.message, traceback: error.stack ?? "" };
}
