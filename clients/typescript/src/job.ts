import { codeOf, jobNotHeld, PermanentError, StepOutcomeUnknown, StopError } from "./errors.js";
import type { Session } from "./session.js";
import { sleep, withTimeout } from "./transport.js";
import type { LeasedJob, LogLineOut, LogsIn, StepList, StepRecord } from "./wire.gen.js";

const STEP_RETRY_S = 60;
const PROGRESS_INTERVAL_S = 1;
const PROGRESS_TIMEOUT_S = 5;
const MAX_STEP_BYTES = 1024 * 1024;
const MAX_LINES = 100;
const MAX_LINE_LENGTH = 2000;

export type LogLevel = "debug" | "info" | "warning" | "error";
export type LogFields = Record<string, string | number | boolean | null | undefined>;

/** A running job, as its handler sees it. */
export class Job<P = unknown> {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly tenant: string;
  /** Number of this attempt, starting at 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Number of releases and snoozes. */
  readonly releases: number;
  /** Rises with every claim, so that other systems can refuse an old attempt. */
  readonly fence: number;
  readonly tags: readonly string[];
  readonly payload: P;
  /** Aborted when the job is cancelled, times out or is taken away; the reason is a `StopError`. */
  readonly signal: AbortSignal;
  readonly #attempt: Attempt;

  constructor(attempt: Attempt, payload: P) {
    const { job } = attempt;
    this.#attempt = attempt;
    this.payload = payload;
    this.signal = attempt.signal;
    this.id = job.id;
    this.type = job.type;
    this.queue = job.queue;
    this.tenant = job.tenant;
    this.attempt = job.attempts;
    this.maxAttempts = job.max_attempts;
    this.releases = job.releases;
    this.fence = job.fence;
    this.tags = job.tags;
  }

  /** Return a key for another service that is the same in every attempt of the job. */
  idempotencyKey(name: string): string {
    return `${this.id}:${name}`;
  }

  /**
   * Call a function and record its result. A later attempt returns the record and does not call the function. If the
   * attempt ends between the call and its record, the next attempt calls the function again.
   *
   * @param options.once - Call it at most once, even if the worker dies during the call. If an earlier attempt started
   * it and recorded no result, `StepOutcomeUnknown` is thrown.
   */
  step<T>(key: string, call: () => Promise<T> | T, options: { once?: boolean } = {}): Promise<T> {
    return this.#attempt.step(key, call, options.once ?? false);
  }

  /** Show how far the job is, from 0 to 1. At most one value a second is sent, and always the last one. */
  progress(fraction: number, note = ""): void {
    this.#attempt.reportProgress(fraction, note);
  }

  /** Write a line to the worker's log and store it with the attempt, which keeps the newest 100 lines. */
  log(message: string, fields: LogFields = {}, level: LogLevel = "info"): void {
    this.#attempt.log(message, fields, level);
  }
}

/** One run of a job under one fence. */
export class Attempt {
  readonly job: LeasedJob;
  readonly session: Session;
  /** The service refused the first outcome. */
  refused = false;
  readonly #stop = new AbortController();
  readonly #lines: LogLineOut[] = [];
  readonly #usedKeys = new Set<string>();
  #dropped = 0;
  #recorded: Promise<Map<string, StepRecord>> | undefined;
  #progress: { fraction: number; note: string } | undefined;
  #progressRequest: Promise<void> = Promise.resolve();
  #sendingProgress = false;

  constructor(session: Session, job: LeasedJob) {
    this.session = session;
    this.job = job;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Reason for which the handler must stop, if any. */
  get stopReason(): StopError | undefined {
    return this.signal.aborted ? (this.signal.reason as StopError) : undefined;
  }

  stop(reason: StopError): void {
    this.#stop.abort(reason);
  }

  /** Return the id, the fence and the worker, which every call about this attempt carries. */
  get held(): { worker: string; id: string; fence: number } {
    return { worker: this.session.id, id: this.job.id, fence: this.job.fence };
  }

  async step<T>(key: string, call: () => Promise<T> | T, once: boolean): Promise<T> {
    this.signal.throwIfAborted();
    if (!key || key.length > 255) throw new PermanentError(`${JSON.stringify(key)} is not a step key: use 1 to 255 characters`);
    if (this.#usedKeys.has(key)) throw new PermanentError(`step ${JSON.stringify(key)} was already used: give each step its own key`);
    this.#usedKeys.add(key);
    this.#recorded ??= this.#readSteps();
    const record = (await this.#recorded).get(key);
    if (record?.transaction) throw new PermanentError(`an earlier attempt used ${JSON.stringify(key)} for a transaction: use another key`);
    if (record?.state === "done") return record.result as T;
    if (once) {
      if (record) throw new StepOutcomeUnknown(`an earlier attempt started step ${JSON.stringify(key)}, which may have taken effect`);
      await this.#send("/v1/leases/steps", { key, state: "started" }, STEP_RETRY_S);
    }
    const result = encode(`step ${JSON.stringify(key)} ran, but its result`, await call());
    if (Buffer.byteLength(result) > MAX_STEP_BYTES) {
      throw new PermanentError(`step ${JSON.stringify(key)} ran, but its result is larger than 1 MiB: store it elsewhere`);
    }
    // All attempts get the value as JSON represents it, the first one included.
    const value = JSON.parse(result) as T;
    await this.#send("/v1/leases/steps", { key, state: "done", result: value }, STEP_RETRY_S);
    return value;
  }

  async #readSteps(): Promise<Map<string, StepRecord>> {
    const request = { method: "GET", path: "/v1/leases/steps", query: this.held, repeat: true } as const;
    const list = await this.#checked<StepList>({ ...request, retryFor: STEP_RETRY_S });
    return new Map(list.steps.map((step) => [step.key, step]));
  }

  #send(path: string, body: object, retryFor: number): Promise<void> {
    return this.#checked({ method: "POST", path, body: { ...this.held, ...body }, repeat: true, retryFor });
  }

  /**
   * Send a request about this attempt, and stop the attempt if the worker does not hold the job. A dead worker is
   * noticed by the renewal that follows, so that an answer about one job never stops the others.
   */
  async #checked<T>(request: Parameters<Session["transport"]["send"]>[0]): Promise<T> {
    this.signal.throwIfAborted();
    try {
      return await this.session.transport.send<T>({ signal: this.signal, ...request });
    } catch (error) {
      const code = codeOf(error);
      if (code === "lease_lost") this.session.renewNow();
      if (code === "job_not_held" || code === "lease_lost") {
        this.session.drop(this);
        throw this.stopReason ?? jobNotHeld();
      }
      throw error;
    }
  }

  reportProgress(fraction: number, note: string): void {
    this.signal.throwIfAborted();
    if (!(fraction >= 0 && fraction <= 1)) throw new PermanentError(`the progress is ${fraction}: give a fraction from 0 to 1`);
    this.#progress = { fraction, note };
    if (!this.#sendingProgress) void this.#sendProgress();
  }

  async #sendProgress(): Promise<void> {
    this.#sendingProgress = true;
    do {
      await this.flushProgress();
    } while ((await sleep(PROGRESS_INTERVAL_S, this.signal)) && this.#progress);
    this.#sendingProgress = false;
  }

  /** Send the newest progress, after the one that is being sent. An unavailable service does not fail the job. */
  flushProgress(): Promise<void> {
    this.#progressRequest = this.#progressRequest.then(async () => {
      const progress = this.#progress;
      this.#progress = undefined;
      if (!progress) return;
      const body = { ...this.held, ...progress };
      const request = { method: "POST", path: "/v1/leases/progress", body } as const;
      await withTimeout(PROGRESS_TIMEOUT_S, this.signal, (signal) => this.#checked({ ...request, signal })).catch(() => undefined);
    });
    return this.#progressRequest;
  }

  log(message: string, fields: LogFields, level: LogLevel): void {
    const text = [message, ...Object.entries(fields).map(([name, value]) => `${name}=${value}`)].join(" ");
    if (this.#lines.length === MAX_LINES) {
      this.#lines.shift();
      this.#dropped++;
    }
    this.#lines.push({ at: new Date().toISOString(), level, message: text.slice(0, MAX_LINE_LENGTH) });
    this.workerLog(level, message, fields);
  }

  /** Write to the worker's log only. */
  workerLog(level: LogLevel, message: string, fields: LogFields): void {
    const { id, type, attempts } = this.job;
    this.session.log(level, message, { job_id: id, job_type: type, attempt: attempts, ...fields });
  }

  get logs(): LogsIn | null {
    return this.#lines.length ? { lines: this.#lines, dropped: this.#dropped } : null;
  }
}

/** Encode a value as JSON; `undefined` is null. */
export function encode(what: string, value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    throw new PermanentError(`${what} cannot be stored, because JSON cannot represent it: ${String(error)}`, { cause: error });
  }
}
