import { hostname } from "node:os";

import type { Client } from "./client.js";
import { isUnavailable, PermanentError } from "./errors.js";
import { type Attempt, Job, type LogFields, type LogLevel } from "./job.js";
import { Session, Slots, type WorkerParts } from "./session.js";
import { Backoff, sleep } from "./transport.js";
import type { LeaseOut } from "./wire.gen.js";

export interface WorkerOptions {
  /** Queues to claim from (["default"]). */
  queues?: readonly string[];
  /** Jobs to run at once (10). */
  slots?: number;
  /** Seconds without a renewal after which the jobs go to other workers (15). */
  leaseSeconds?: number;
  /** Seconds that running jobs have when the worker stops (30). */
  drainSeconds?: number;
  /** Name in the list of workers; by default the host name. */
  name?: string;
  /** Version of your program, for the list of workers. */
  version?: string;
  /** Receives the log; by default, lines go to standard error, without those of the level debug. */
  log?: (level: LogLevel, message: string, fields: LogFields) => void;
}

export type Handler<P, R> = (job: Job<P>) => Promise<R> | R;

/** Claims jobs, calls their handlers and reports the outcomes. */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #about: { name: string; host: string; pid: number; version: string; slots: number };
  readonly #handlers = new Map<string, (attempt: Attempt) => Promise<unknown>>();

  constructor(client: Client, options: WorkerOptions = {}) {
    const slots = options.slots ?? 10;
    if (!Number.isInteger(slots) || slots < 1) throw new TypeError(`slots: ${slots} is not a positive integer`);
    this.#about = {
      name: options.name ?? hostname(),
      host: hostname(),
      pid: process.pid,
      version: options.version ?? "",
      slots,
    };
    this.#parts = {
      transport: client.transport,
      queues: options.queues ?? ["default"],
      leaseSeconds: options.leaseSeconds ?? 15,
      drainSeconds: options.drainSeconds ?? 30,
      slots: new Slots(slots),
      types: () => [...this.#handlers.keys()].sort(),
      call: (attempt) => this.#call(attempt),
      log: options.log ?? writeLine,
    };
  }

  /**
   * Register the handler of a job type.
   *
   * @param options.parse - Checks and converts the payload. If it throws, the job is dead. Without it, the payload is
   * passed on as it is, and `P` is only your statement of what it contains.
   */
  handle<P = unknown, R = unknown>(
    type: string,
    handler: Handler<P, R>,
    options: { parse?: (payload: unknown) => P } = {},
  ): this {
    if (this.#handlers.has(type)) throw new TypeError(`the job type ${JSON.stringify(type)} already has a handler`);
    const parse = options.parse ?? ((payload: unknown) => payload as P);
    this.#handlers.set(type, async (attempt) => handler(new Job(attempt, parsed(parse, attempt.job.payload))));
    return this;
  }

  async #call(attempt: Attempt): Promise<unknown> {
    const handler = this.#handlers.get(attempt.job.type);
    if (!handler) throw new Error(`this worker has no handler for the type ${JSON.stringify(attempt.job.type)}`);
    return handler(attempt);
  }

  /**
   * Work until the signal is aborted or an administrator drains the worker, and then drain: claim nothing more, let
   * running jobs finish within the drain time, and release the others, which uses no attempt.
   *
   * While the service is unavailable, the worker keeps trying. After a lost lease it stops all jobs and registers again.
   * Throws if the service refuses the worker, for example because its key was revoked.
   */
  async run(signal: AbortSignal = new AbortController().signal): Promise<void> {
    if (!this.#handlers.size) throw new TypeError("the worker has no handlers: register one with handle() before run()");
    while (!signal.aborted) {
      const session = await this.#register(signal);
      if (!session || (await session.run(signal)) === "drained") return;
      this.#parts.log("warning", "the lease was lost: all jobs were stopped, the worker registers again", { worker: session.id });
    }
  }

  /** Get a new worker id; retries while the service is unavailable. */
  async #register(signal: AbortSignal): Promise<Session | undefined> {
    const { transport, queues, leaseSeconds, log, types } = this.#parts;
    const body = { register: this.#about, lease: leaseSeconds, queues, types: types(), limit: 0 };
    for (const backoff = new Backoff(); !signal.aborted; ) {
      const sent = performance.now();
      try {
        const { worker } = await transport.send<LeaseOut>({ method: "POST", path: "/v1/leases", body, signal });
        log("info", "the worker is registered", { worker, queues: queues.join(",") });
        return new Session(this.#parts, worker, sent);
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!isUnavailable(error)) throw error;
        log("warning", "the worker cannot register yet", { error: String(error) });
        await sleep(backoff.delay(error), signal);
      }
    }
    return undefined;
  }
}

class InvalidPayload extends PermanentError {
  override name = "InvalidPayload";
}

function parsed<P>(parse: (payload: unknown) => P, payload: unknown): P {
  try {
    return parse(payload);
  } catch (error) {
    throw new InvalidPayload(`the payload does not fit the handler: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function writeLine(level: LogLevel, message: string, fields: LogFields): void {
  if (level === "debug") return;
  const text = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
  process.stderr.write(`${new Date().toISOString()} ${level.toUpperCase()} ${message}${text.join("")}\n`);
}
