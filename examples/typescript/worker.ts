/**
 * A worker that sends welcome messages, and a command that submits them:
 *
 *     export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
 *     node dist/worker.js submit ada@example.org
 *     node dist/worker.js
 */
import { setTimeout as delay } from "node:timers/promises";

import { Client, type Job, PermanentError, Snooze, Worker } from "@holdfast/client";

/** Payload of a job. */
interface Welcome {
  address: string;
}

/** Its result. */
interface Sent {
  message_id: string;
}

class ServiceBusy extends Error {}

const { HOLDFAST_API_URL: url = "", HOLDFAST_API_KEY: key = "" } = process.env;
const client = new Client({ url, key });

/** Submit a job, wait for it and print its result. */
async function submit(address: string): Promise<void> {
  const job = await client.submit("welcome", { address } satisfies Welcome, {
    queue: "mail",
    timeout: "1m",
    max_attempts: 5,
    idempotencyKey: `welcome-${address}`, // submitting the same address again returns the same job
  });
  console.log("submitted", job.id);
  const sent = await client.wait<Sent>(job.id);
  console.log("sent", sent.message_id);
}

async function work(): Promise<void> {
  const worker = new Worker(client, { queues: ["mail"], slots: 4 });
  worker.handle("welcome", welcome, { parse: parseWelcome });
  // SIGTERM and Ctrl-C drain the worker; a second one ends it at once.
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
  await worker.run(stop.signal);
}

/** Check the payload; what this throws makes the job dead. */
function parseWelcome(payload: unknown): Welcome {
  if (typeof payload === "object" && payload !== null && "address" in payload && typeof payload.address === "string") {
    return { address: payload.address };
  }
  throw new TypeError("address: give a text");
}

async function welcome(job: Job<Welcome>): Promise<Sent> {
  const { address } = job.payload;
  if (!address.includes("@")) throw new PermanentError(`${address} is not an address`);
  // A later attempt gets the recorded text and does not render it again.
  const text = await job.step("render", () => `Welcome, ${address}`);
  job.progress(0.5, "rendered");
  try {
    // The mail service recognises the key of a repeated call.
    const id = await job.step("send", () => sendMail(address, text, job.idempotencyKey("send"), job.signal));
    job.log("welcome sent", { message_id: id });
    return { message_id: id };
  } catch (error) {
    if (error instanceof ServiceBusy) throw new Snooze(60);
    throw error;
  }
}

/** Stands for the call of a mail service. */
async function sendMail(address: string, text: string, key: string, signal: AbortSignal): Promise<string> {
  await delay(50, undefined, { signal });
  return `${key} to ${address}, ${text.length} characters`;
}

const [command, address] = process.argv.slice(2);
await (command === "submit" && address ? submit(address) : work());
