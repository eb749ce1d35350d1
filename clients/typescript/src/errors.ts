import type { Fault, Problem } from "./wire.gen.js";

/** Problem that the service reported, as in RFC 9457. */
export class HoldfastError extends Error {
  override name = "HoldfastError";

  constructor(
    /** Status of the response. */
    readonly status: number,
    /** Stable name of the problem, such as "not_found". */
    readonly code: string,
    detail: string,
    /** Invalid field, as a JSON pointer into the request. */
    readonly pointer = "",
    /** Conflicting job. */
    readonly jobId = "",
    /** Invalid items of a batch. */
    readonly faults: readonly Fault[] = [],
    /** Seconds that the service asks clients to wait before they retry. */
    readonly retryAfter = 0,
  ) {
    super(detail);
  }

  /** Return the error of a response that is not a success. */
  static of(status: number, retryAfter: string | undefined, text: string): HoldfastError {
    const seconds = Number(retryAfter ?? 0);
    const after = Number.isFinite(seconds) ? seconds : 0;
    let problem: Partial<Problem> | null = null;
    try {
      problem = JSON.parse(text) as Problem;
    } catch {
      // not a problem of a holdfast service
    }
    if (typeof problem?.code !== "string") {
      const detail = "the response is not from a holdfast service: check the URL";
      return new HoldfastError(status, "foreign_response", detail, "", "", [], after);
    }
    const { code, detail, pointer, job_id, errors } = problem;
    return new HoldfastError(status, code, detail ?? "", pointer, job_id, errors, after);
  }
}

/** A request got no response. */
export class ConnectionError extends Error {
  override name = "ConnectionError";

  constructor(
    /** The request may have taken effect. */
    readonly sent: boolean,
    cause: unknown,
  ) {
    const what = sent ? "the service did not respond, and the request may have taken effect" : "the service cannot be reached";
    super(`${what}: ${cause instanceof Error ? cause.message || cause.name : String(cause)}`, { cause });
  }
}

/** Reason for which a handler must stop: the `reason` of its signal, also thrown by steps. */
export class StopError extends Error {
  override name = "StopError";

  constructor(
    readonly kind: "job_not_held" | "lease_lost" | "timed_out" | "draining",
    message: string,
  ) {
    super(message);
  }
}

export const jobNotHeld = () => new StopError("job_not_held", "the job was cancelled or belongs to another worker");
export const leaseLost = () => new StopError("lease_lost", "the worker lost its lease");
export const timedOut = () => new StopError("timed_out", "the attempt exceeded its timeout");
export const draining = () => new StopError("draining", "the worker is shutting down");

/** Throw it in a handler to run the job again later. It uses no attempt. */
export class Snooze extends Error {
  override name = "Snooze";

  constructor(readonly seconds: number) {
    super(`run again in ${seconds} s`);
  }
}

/** Throw it in a handler to cancel the job. */
export class CancelJob extends Error {
  override name = "CancelJob";
}

/** Throw it in a handler for an error that a retry cannot fix: the job is dead at once. */
export class PermanentError extends Error {
  override name = "PermanentError";
}

/** Throw it in a handler to choose when the next attempt starts, instead of the job's usual backoff. */
export class RetryIn extends Error {
  override name = "RetryIn";

  constructor(
    readonly seconds: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * An earlier attempt started a step with `once` and recorded no result. The step is not repeated. If a handler throws
 * this error, the job is dead; a handler that can find out whether the step took effect may continue instead.
 */
export class StepOutcomeUnknown extends PermanentError {
  override name = "StepOutcomeUnknown";
}

/** A job that did not succeed. */
export class JobFailed extends Error {
  override name = "JobFailed";

  constructor(
    readonly jobId: string,
    readonly status: "dead" | "cancelled",
    readonly kind: string,
    message: string,
  ) {
    super(`job ${jobId} is ${status}: ${kind}: ${message}`);
  }
}

/** Return whether a later try of the same request may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  return error instanceof HoldfastError && (error.status >= 500 || error.status === 429);
}

/** Return whether the request of a failed try may have taken effect. */
export function mayHaveHappened(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.sent;
  return error instanceof HoldfastError && error.status >= 500 && error.status !== 503;
}

export function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : "";
}
