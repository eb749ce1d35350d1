import { codeOf, draining, HoldfastError, isUnavailable, jobNotHeld, leaseLost, mayHaveHappened, PermanentError, type StopError, timedOut } from "./errors.js";
import { Attempt, type LogFields, type LogLevel } from "./job.js";
import { failed, type Outcome, released, succeeded, timedOutAfter } from "./outcomes.js";
import { Backoff, sleep, type Transport, withTimeout } from "./transport.js";
import type { DepartedOut, HeldPage, LeasedJob, LeaseOut, LostOut, SettledOut } from "./wire.gen.js";

const MAX_CLAIM = 500;
const POLL_S = 20;
const MIN_POLL_S = 0.5;
const GATHER_S = 0.02;
const STOP_GRACE_S = 5;
const CLEANUP_TIMEOUT_S = 5;
const DEPART_TRIES = 3;
const MAX_SETTLE_CHARS = 1024 * 1024;

/** Parts of a worker that outlive a session. */
export interface WorkerParts {
  transport: Transport;
  queues: readonly string[];
  leaseSeconds: number;
  drainSeconds: number;
  slots: Slots;
  types: () => string[];
  call: (attempt: Attempt) => Promise<unknown>;
  log: (level: LogLevel, message: string, fields: LogFields) => void;
}

/** Slots of a worker; each runs one job at a time. */
export class Slots {
  readonly #count: number;
  #free: number;
  #wake: () => void = () => undefined;

  constructor(count: number) {
    this.#count = count;
    this.#free = count;
  }

  /**
   * Wait for free slots and take them; 0 if the signal was aborted first. Short jobs end one by one, so a claim waits a
   * moment for a quarter of the slots, instead of asking for a single job each time.
   */
  async take(signal: AbortSignal): Promise<number> {
    await this.#waitFor(1, signal);
    await this.#waitFor(this.#count / 4, signal, GATHER_S);
    const taken = signal.aborted ? 0 : Math.min(this.#free, MAX_CLAIM);
    this.#free -= taken;
    return taken;
  }

  async #waitFor(count: number, signal: AbortSignal, seconds = Infinity): Promise<void> {
    if (this.#free >= count || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = Number.isFinite(seconds) ? setTimeout(() => end(), seconds * 1000) : undefined;
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#wake = () => undefined;
        resolve();
      };
      this.#wake = () => {
        if (this.#free >= count) end();
      };
      signal.addEventListener("abort", end);
    });
  }

  free(count: number): void {
    this.#free += count;
    this.#wake();
  }
}

/** Life of one worker id: from its registration until it departs or loses its lease. */
export class Session {
  readonly id: string;
  readonly transport: Transport;
  readonly log: WorkerParts["log"];
  readonly #parts: WorkerParts;
  readonly #lost = new AbortController();
  readonly #noClaims = new AbortController();
  readonly #ended = new AbortController();
  /** Attempts that run or are not settled yet, by job id. */
  readonly #held = new Map<string, Attempt>();
  readonly #running = new Set<Promise<void>>();
  readonly #queued: { attempt: Attempt; outcome: Outcome }[] = [];
  #settling: Promise<void> | undefined;
  #validUntil: number;
  #draining = false;
  #unsure = false;
  #wakeRenewal: (() => void) | undefined;

  constructor(parts: WorkerParts, id: string, sent: number) {
    this.#parts = parts;
    this.id = id;
    this.transport = parts.transport;
    this.log = parts.log;
    this.#validUntil = sent + this.#localLease();
  }

  /** Milliseconds that handlers may run after a renewal was sent: they stop before other workers get the jobs. */
  #localLease(): number {
    return (this.#parts.leaseSeconds * 1000 * 5) / 6;
  }

  /** Work until the signal is aborted, the service asks for a drain, or the lease is lost. */
  async run(stop: AbortSignal): Promise<"drained" | "lost"> {
    const stopClaims = () => this.#noClaims.abort();
    const signals = [stop, this.#lost.signal];
    for (const signal of signals) signal.addEventListener("abort", stopClaims);
    if (stop.aborted) stopClaims();
    const background = Promise.all([this.#renewLoop(), this.#expireLoop()]);
    const refusal = await this.#claimLoop().catch((error: unknown) => ({ error }));
    if (!this.#lost.signal.aborted) await this.#drain();
    await Promise.all(this.#running);
    await this.#settling;
    // No renewal may follow the departure: the service would answer that it does not know the worker.
    this.#ended.abort();
    this.#wakeRenewal?.();
    await background;
    for (const signal of signals) signal.removeEventListener("abort", stopClaims);
    if (this.#lost.signal.aborted) return "lost";
    await this.#depart();
    if (refusal) throw refusal.error;
    return "drained";
  }

  /** Stop all attempts without a report, because the service has given the jobs to others or will do so. */
  #lose(): void {
    if (this.#lost.signal.aborted) return;
    this.#lost.abort(leaseLost());
    this.#stopAll(leaseLost());
  }

  #stopAll(reason: StopError): void {
    for (const attempt of this.#held.values()) attempt.stop(reason);
  }

  /** Stop one attempt that the worker no longer holds; nothing of it is reported. */
  drop(attempt: Attempt): void {
    attempt.stop(jobNotHeld());
    this.#forget(attempt);
  }

  #forget(attempt: Attempt): void {
    if (this.#held.get(attempt.job.id) === attempt) this.#held.delete(attempt.job.id);
  }

  /** Send a request of this worker once. A lost lease ends the session. */
  async #call<T>(path: string, body: object, options: { signal?: AbortSignal; wait?: number } = {}): Promise<T> {
    try {
      const request = { method: "POST", path, body: { worker: this.id, ...body }, wait: options.wait ?? 0 } as const;
      return await this.transport.send<T>({ ...request, signal: options.signal ?? this.#lost.signal });
    } catch (error) {
      if (codeOf(error) === "lease_lost") this.#lose();
      throw error;
    }
  }

  async #claimLoop(): Promise<void> {
    const signal = this.#noClaims.signal;
    for (const backoff = new Backoff(); !signal.aborted; ) {
      await this.#releaseUnknown();
      const slots = await this.#parts.slots.take(signal);
      if (!slots) return;
      const began = performance.now();
      let jobs: LeasedJob[] = [];
      try {
        jobs = await this.#claim(slots, signal);
        backoff.reset();
      } catch (error) {
        if (signal.aborted) return;
        if (!isUnavailable(error)) throw error;
        this.log("warning", "the service is unavailable; running jobs go on", { error: String(error) });
        await sleep(backoff.delay(error), signal);
        continue;
      } finally {
        this.#parts.slots.free(slots - jobs.length);
      }
      for (const job of jobs) this.#start(job);
      // A service that shuts down responds at once: do not claim in a busy loop.
      if (!jobs.length) await sleep(MIN_POLL_S - (performance.now() - began) / 1000, signal);
    }
  }

  async #claim(limit: number, signal: AbortSignal): Promise<LeasedJob[]> {
    const body = { queues: this.#parts.queues, types: this.#parts.types(), limit, wait: POLL_S };
    try {
      const found = await this.#call<LeaseOut>("/v1/leases", body, { signal, wait: POLL_S });
      if (found.draining) this.#noClaims.abort();
      return found.jobs;
    } catch (error) {
      this.#unsure ||= signal.aborted || mayHaveHappened(error);
      throw error;
    }
  }

  #start(job: LeasedJob): void {
    const attempt = new Attempt(this, job);
    this.#held.get(job.id)?.stop(jobNotHeld());
    this.#held.set(job.id, attempt);
    const reported = this.#run(attempt).finally(() => this.#running.delete(reported));
    this.#running.add(reported);
  }

  /** Call the handler and report its outcome; the slot is free when the handler has returned. */
  async #run(attempt: Attempt): Promise<void> {
    const { timeout } = attempt.job;
    const timer = timeout === null ? undefined : setTimeout(() => attempt.stop(timedOut()), timeout * 1000);
    const handler = this.#parts.call(attempt).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const stopped = new Promise<undefined>((resolve) => {
      const late = () => void sleep(STOP_GRACE_S, this.#ended.signal).then(() => resolve(undefined));
      attempt.signal.addEventListener("abort", late, { once: true });
    });
    const result = await Promise.race([handler, stopped]);
    clearTimeout(timer);
    if (!result) attempt.workerLog("error", "the handler ignores its signal and keeps its slot until it ends", {});
    void handler.then(() => this.#parts.slots.free(1));
    await this.#finish(attempt, result);
  }

  async #finish(attempt: Attempt, result: { value: unknown } | { error: unknown } | undefined): Promise<void> {
    const reason = attempt.stopReason?.kind;
    if (reason === "job_not_held" || reason === "lease_lost") return this.#forget(attempt);
    if (!result || (reason === "draining" && "error" in result)) return this.#report(attempt, released(attempt));
    await attempt.flushProgress();
    let outcome: Outcome;
    try {
      if (reason === "timed_out") outcome = timedOutAfter(attempt);
      else outcome = "error" in result ? failed(attempt, result.error) : succeeded(attempt, result.value);
    } catch (error) {
      outcome = failed(attempt, error);
    }
    this.#report(attempt, outcome);
  }

  #report(attempt: Attempt, outcome: Outcome): void {
    this.#queued.push({ attempt, outcome });
    this.#settling ??= this.#settleLoop();
  }

  /** Report outcomes. Those that arrive during a report are sent together with the next. */
  async #settleLoop(): Promise<void> {
    await Promise.resolve();
    while (this.#queued.length && !this.#lost.signal.aborted) {
      let count = 0;
      for (let size = 0; count < Math.min(this.#queued.length, MAX_CLAIM); count++) {
        size += JSON.stringify(this.#queued[count]?.outcome).length;
        if (count && size > MAX_SETTLE_CHARS) break;
      }
      await this.#settle(this.#queued.splice(0, count));
    }
    this.#settling = undefined;
  }

  /** Report outcomes until the service has answered or the lease is lost. Reports are idempotent. */
  async #settle(batch: { attempt: Attempt; outcome: Outcome }[]): Promise<void> {
    const body = { outcomes: batch.map((each) => each.outcome) };
    for (const backoff = new Backoff(); !this.#lost.signal.aborted; ) {
      try {
        const found = await this.#call<SettledOut>("/v1/leases/settle", body);
        return await this.#settled(batch, found);
      } catch (error) {
        if (this.#lost.signal.aborted) return;
        if (isUnavailable(error)) {
          await sleep(backoff.delay(error), this.#lost.signal);
        } else if (batch.length > 1) {
          for (const each of batch) await this.#settle([each]);
          return;
        } else {
          for (const each of batch) await this.#refuse(each.attempt, error);
          return;
        }
      }
    }
  }

  async #settled(batch: { attempt: Attempt }[], found: SettledOut): Promise<void> {
    const applied = new Set(found.settled);
    const refused = new Map((found.refused ?? []).map((fault) => [fault.index, fault]));
    for (const [index, { attempt }] of batch.entries()) {
      const fault = refused.get(index);
      if (fault) {
        await this.#refuse(attempt, new HoldfastError(422, fault.code, fault.detail, fault.pointer));
        continue;
      }
      this.#forget(attempt);
      if (!applied.has(attempt.job.id)) {
        attempt.workerLog("warning", "the outcome was not applied: the worker no longer held the job", {});
      }
    }
  }

  /** Replace an outcome that the service does not accept by a failure, so that the job does not wait for the lease. */
  async #refuse(attempt: Attempt, error: unknown): Promise<void> {
    attempt.workerLog("error", "the service refused the outcome", { error: String(error) });
    if (attempt.refused) return this.#forget(attempt);
    attempt.refused = true;
    const outcome = failed(attempt, new PermanentError(`the service refused the outcome: ${String(error)}`));
    await this.#settle([{ attempt, outcome }]);
  }

  renewNow(): void {
    this.#wakeRenewal?.();
  }

  /** Renew the lease every third of it, and sooner after a failed try. */
  async #renewLoop(): Promise<void> {
    const third = this.#parts.leaseSeconds / 3;
    const backoff = new Backoff();
    for (let next = third; ; ) {
      await this.#untilRenewal(next);
      if (this.#lost.signal.aborted || this.#ended.signal.aborted) return;
      try {
        await this.#renew();
        backoff.reset();
        next = third;
      } catch (error) {
        const delay = backoff.delay(error);
        next = error instanceof HoldfastError && !isUnavailable(error) ? third : delay;
      }
    }
  }

  #untilRenewal(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#wakeRenewal = undefined;
        this.#lost.signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, seconds * 1000);
      this.#wakeRenewal = end;
      this.#lost.signal.addEventListener("abort", end);
      if (this.#lost.signal.aborted || this.#ended.signal.aborted) end();
    });
  }

  async #renew(): Promise<void> {
    const sent = performance.now();
    const named = new Map(this.#held);
    const held = [...named.values()].map(({ job }) => ({ id: job.id, fence: job.fence }));
    const body = { lease: this.#parts.leaseSeconds, draining: this.#draining, memory: process.memoryUsage.rss(), held };
    const timeout = Math.max(this.#parts.leaseSeconds / 3, 1);
    const call = (signal: AbortSignal) => this.#call<LostOut>("/v1/leases/renew", body, { signal });
    const found = await withTimeout(timeout, this.#lost.signal, call);
    this.#validUntil = Math.max(this.#validUntil, sent + this.#localLease());
    for (const id of found.lost) {
      const attempt = named.get(id);
      if (attempt) this.drop(attempt);
    }
    if (found.draining) this.#noClaims.abort();
  }

  /** End the session by the local clock, whether or not the service responds. */
  async #expireLoop(): Promise<void> {
    while (await sleep((this.#validUntil - performance.now()) / 1000, this.#ended.signal)) {
      if (this.#lost.signal.aborted) return;
      if (performance.now() >= this.#validUntil) {
        this.log("error", "no renewal succeeded in time: all jobs are stopped", { worker: this.id });
        return this.#lose();
      }
    }
  }

  /** Let running jobs finish until the timeout, then stop them. Stopped jobs are released. */
  async #drain(): Promise<void> {
    this.log("info", "the worker drains", { worker: this.id, timeout: this.#parts.drainSeconds });
    this.#draining = true;
    this.renewNow();
    await this.#releaseUnknown();
    const done = new AbortController();
    const end = () => done.abort();
    this.#lost.signal.addEventListener("abort", end);
    void Promise.all(this.#running).then(end);
    if (await sleep(this.#parts.drainSeconds, done.signal)) this.#stopAll(draining());
    this.#lost.signal.removeEventListener("abort", end);
  }

  /** Remove the worker, after it has released jobs that it did not know. */
  async #depart(): Promise<void> {
    for (let tries = 0; tries < DEPART_TRIES; tries++) {
      try {
        const call = (signal: AbortSignal) => this.#call<DepartedOut>("/v1/leases/depart", {}, { signal });
        if ((await withTimeout(CLEANUP_TIMEOUT_S, this.#lost.signal, call)).departed) return;
      } catch {
        return; // without a response, the worker's row expires with its lease
      }
      this.#unsure = true;
      await this.#releaseUnknown();
    }
  }

  /** Release jobs that the service gave to this worker in a response that was lost. */
  async #releaseUnknown(): Promise<void> {
    if (!this.#unsure || this.#lost.signal.aborted) return;
    try {
      await withTimeout(CLEANUP_TIMEOUT_S, this.#lost.signal, async (signal) => {
        const { jobs } = await this.#call<HeldPage>("/v1/leases/held", {}, { signal });
        const unknown = jobs.filter((job) => !this.#held.has(job.id));
        const outcomes = unknown.map(({ id, fence }) => ({ outcome: "released", id, fence, started: false }));
        if (outcomes.length) await this.#call("/v1/leases/settle", { outcomes }, { signal });
      });
      this.#unsure = false;
    } catch {
      // asked again before the next claim, and at the latest by the service, which compares what the renewals name
    }
  }
}
