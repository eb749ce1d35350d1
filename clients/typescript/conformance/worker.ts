/** Worker that `holdfast protocol check` tests: each job type does one thing that a worker must get right. */
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

import { Client, PermanentError, RetryIn, Snooze, Worker } from "../src/index.js";

const client = new Client({ url: text("HOLDFAST_API_URL"), key: text("HOLDFAST_API_KEY") });
const worker = new Worker(client, {
  queues: text("HOLDFAST_QUEUES").split(","),
  slots: Number(text("HOLDFAST_SLOTS")),
  leaseSeconds: Number(text("HOLDFAST_LEASE_SECONDS")),
  drainSeconds: Number(text("HOLDFAST_DRAIN_SECONDS")),
});

worker.handle<{ value: unknown }>("check.echo", (job) => job.payload.value);

worker.handle<{ times: number; message: string; retryable: boolean; retry_in: number | null }>("check.fail", (job) => {
  const { times, message, retryable, retry_in } = job.payload;
  if (job.attempt > times) return { attempts: job.attempt };
  if (!retryable) throw new PermanentError(message);
  throw retry_in === null ? new Error(message) : new RetryIn(retry_in, message);
});

worker.handle<{ path: string; delay: number }>("check.snooze", (job) => {
  if (existsSync(job.payload.path)) return { snoozed: true };
  appendFileSync(job.payload.path, "");
  throw new Snooze(job.payload.delay);
});

worker.handle<{ path: string; seconds: number; progress: boolean }>("check.tick", async (job) => {
  const { path, seconds, progress } = job.payload;
  for (const began = performance.now(); ; await delay(100, undefined, { signal: job.signal })) {
    job.signal.throwIfAborted();
    appendFileSync(path, `${job.id} ${job.fence}\n`);
    const passed = (performance.now() - began) / 1000;
    if (passed >= seconds) return { fence: job.fence };
    if (progress) job.progress(passed / seconds);
  }
});

worker.handle<{ path: string; stop: string }>("check.steps", async (job) => {
  const { path, stop } = job.payload;
  const stopAt = (name: string) => {
    if (stop === name && job.attempt === 1) throw new RetryIn(0, `stopped after ${name}`);
  };
  const first = await job.step("first", () => {
    appendFileSync(path, "first\n");
    return { fence: job.fence };
  });
  stopAt("first");
  const charge = await job.step(
    "charge",
    () => {
      appendFileSync(path, "charge\n");
      stopAt("charge");
      return "charged";
    },
    { once: true },
  );
  return { first, charge };
});

worker.handle<{ bytes: number }>("check.large", (job) => "x".repeat(job.payload.bytes));

function text(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set`);
  return value;
}

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
await worker.run(stop.signal);
