import { randomUUID } from "node:crypto";

import { JobFailed } from "./errors.js";
import { sleep, Transport } from "./transport.js";
import type { BatchOut, JobDetail, JobOut, JobPage, ReceiptOut, SubmitBatchJob, SubmitJob } from "./wire.gen.js";

const MAX_POLL_S = 0.5;

export interface ClientOptions {
  /** Address of the service, such as "https://jobs.example.org". */
  url: string;
  /** API key. */
  key: string;
  /** Tenant to act for; the key must belong to an administrator. */
  tenant?: string;
  /** Seconds for which a request that is safe to repeat is retried (10). */
  retrySeconds?: number;
}

/** Options of a submission: the fields of `POST /v1/jobs`. */
export type JobOptions = Omit<SubmitJob, "type" | "payload"> & {
  /** Makes repeated submissions return the first job; by default each submission has a new key. */
  idempotencyKey?: string;
  signal?: AbortSignal;
};

export interface JobFilter {
  status?: JobOut["status"];
  queue?: string;
  type?: string;
  tag?: string;
}

/** Client of a holdfast service. */
export class Client {
  /** For workers. */
  readonly transport: Transport;
  readonly #retryFor: number;

  constructor(options: ClientOptions) {
    this.transport = new Transport(options.url, options.key, options.tenant);
    this.#retryFor = options.retrySeconds ?? 10;
  }

  /** Submit a job, which is durable when the promise resolves. A retry of the client creates no second job. */
  submit(type: string, payload: unknown, options: JobOptions = {}): Promise<JobOut> {
    const { idempotencyKey = randomUUID(), signal, ...fields } = options;
    return this.transport.send({
      method: "POST",
      path: "/v1/jobs",
      body: { ...fields, type, payload },
      headers: { "idempotency-key": idempotencyKey },
      repeat: true,
      signal,
      retryFor: this.#retryFor,
    });
  }

  /** Submit up to 10,000 jobs, all or none. The receipts are in the order of the jobs. */
  async submitMany(jobs: readonly SubmitBatchJob[], signal?: AbortSignal): Promise<ReceiptOut[]> {
    const body = { jobs: jobs.map((job) => ({ idempotency_key: randomUUID(), ...job })) };
    const path = "/v1/jobs/batch";
    const retryFor = this.#retryFor;
    return (await this.transport.send<BatchOut>({ method: "POST", path, body, repeat: true, signal, retryFor })).items;
  }

  /** Return a job with its attempts and steps. */
  get(id: string, signal?: AbortSignal): Promise<JobDetail> {
    return this.transport.send({ method: "GET", path: jobPath(id), repeat: true, signal, retryFor: this.#retryFor });
  }

  /** Yield the jobs that match, newest first, page by page. */
  async *list(filter: JobFilter = {}, signal?: AbortSignal): AsyncGenerator<JobOut> {
    let cursor: string | undefined;
    do {
      const query = { ...filter, limit: 200, cursor };
      const request = { method: "GET", path: "/v1/jobs", query, repeat: true, signal, retryFor: this.#retryFor } as const;
      const page: JobPage = await this.transport.send<JobPage>(request);
      yield* page.items;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Cancel a job, even if it is running. */
  cancel(id: string, reason = "", signal?: AbortSignal): Promise<JobDetail> {
    const path = `${jobPath(id)}/cancel`;
    return this.transport.send({ method: "POST", path, body: { reason }, repeat: true, signal, retryFor: this.#retryFor });
  }

  /** Make a job that is dead, cancelled or waiting ready now. */
  retry(id: string, signal?: AbortSignal): Promise<JobDetail> {
    const path = `${jobPath(id)}/retry`;
    return this.transport.send({ method: "POST", path, body: {}, signal, retryFor: this.#retryFor });
  }

  /** Wait until a job has finished and return its result; throws `JobFailed` if it did not succeed. */
  async wait<R = unknown>(id: string, signal?: AbortSignal): Promise<R> {
    for (let interval = 0.02; ; interval = Math.min(1.5 * interval, MAX_POLL_S)) {
      const job = await this.get(id, signal);
      if (job.status === "succeeded") return job.result as R;
      if (job.status === "dead" || job.status === "cancelled") {
        throw new JobFailed(id, job.status, job.error?.kind ?? "Cancelled", job.error?.message ?? job.reason ?? "");
      }
      if (!(await sleep(interval, signal))) signal?.throwIfAborted();
    }
  }
}

function jobPath(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
