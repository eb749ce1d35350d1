/** TypeScript worker of bench/languages.py: jobs that do nothing, and jobs with one effect each. */
import { Client, Worker } from "../src/index.js";

const { HOLDFAST_API_URL: url = "", HOLDFAST_API_KEY: key = "" } = process.env;
const client = new Client({ url, key });
const worker = new Worker(client, { queues: ["bench"], slots: 50, leaseSeconds: 10, log: () => undefined });

worker.handle("bench.noop", () => null);

worker.handle("bench.effect", (job) =>
  job.step("effect", async () => {
    const options = { queue: "effects", idempotencyKey: job.idempotencyKey("effect"), signal: job.signal };
    return (await client.submit("bench.row", null, options)).id;
  }),
);

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
await worker.run(stop.signal);
