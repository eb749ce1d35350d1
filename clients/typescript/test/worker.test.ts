import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, test } from "node:test";

import { CancelJob, Client, HoldfastError, JobFailed, PermanentError, RetryIn, Snooze, StepOutcomeUnknown, StopError, Worker, type WorkerOptions } from "../src/index.js";

type Body = Record<string, any>;
type Answer = [status: number, body: unknown] | "hang up";

/** Service with one queue of jobs, whose answers a test can replace. */
class FakeNode {
  readonly calls: { path: string; method: string; headers: IncomingMessage["headers"]; body: Body }[] = [];
  readonly answers = new Map<string, Answer[]>();
  readonly jobs: Body[] = [];
  registrations = 0;
  renewal: Answer = [200, { lost: [], paused: [], draining: false }];
  steps: Body[] = [];
  #server: Server;
  #waiting: (() => void)[] = [];

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Wait until a condition holds; it is checked after every call of the service. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  notify(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const path = new URL(request.url ?? "", "http://x").pathname;
    const body: Body = text ? JSON.parse(text) : {};
    const claims = path === "/v1/leases" && "worker" in body;
    if (!claims) this.calls.push({ path, method: request.method ?? "", headers: request.headers, body });
    this.notify();
    if (claims) {
      let open = true;
      response.on("close", () => ((open = false), this.notify()));
      await this.until(() => this.jobs.length > 0 || !open);
      if (!open) return;
    }
    const answer = this.answers.get(path)?.shift() ?? this.#answer(path, body, request.method ?? "");
    if (answer === "hang up") return void request.socket.destroy();
    response.writeHead(answer[0], { "content-type": "application/json" });
    response.end(answer[1] === undefined ? "" : JSON.stringify(answer[1]));
  }

  #answer(path: string, body: Body, method: string): Answer {
    switch (path) {
      case "/v1/leases":
        if (!("worker" in body)) return [200, { worker: `w-${++this.registrations}`, jobs: [], draining: false }];
        return [200, { worker: body.worker, jobs: this.jobs.splice(0, body.limit), draining: false }];
      case "/v1/leases/renew":
        return this.renewal;
      case "/v1/leases/settle":
        return [200, { settled: body.outcomes.map((each: Body) => each.id), refused: [] }];
      case "/v1/leases/held":
        return [200, { jobs: [] }];
      case "/v1/leases/depart":
        return [200, { departed: true }];
      case "/v1/leases/steps":
        return method === "GET" ? [200, { steps: this.steps }] : [204, undefined];
      default:
        return [204, undefined];
    }
  }

  add(id: string, type: string, payload: unknown = null, more: Body = {}): void {
    const counts = { fence: 7, attempts: 2, max_attempts: 3, releases: 0, timeout: null, tags: [] };
    this.jobs.push({ id, type, payload, queue: "default", tenant: "default", ...counts, ...more });
    this.notify();
  }

  /** Wait for the next outcome. */
  async outcome(): Promise<Body> {
    const settle = () => this.calls.findIndex((call) => call.path === "/v1/leases/settle");
    await this.until(() => settle() >= 0);
    const [call] = this.calls.splice(settle(), 1);
    assert.equal(call?.body.outcomes.length, 1);
    return call?.body.outcomes[0];
  }
}

const problem = (status: number, code: string): Answer => [status, { title: "", status, code, detail: "told by the test" }];

let node: FakeNode;
let client: Client;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  node = new FakeNode();
  client = new Client({ url: await node.start(), key: "key" });
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
  running = undefined;
  node.close();
});

function worker(options: WorkerOptions = {}): Worker {
  return new Worker(client, { drainSeconds: 0, log: () => undefined, ...options });
}

/** Register a handler that waits for its signal; returns what it has seen. */
function blocking(to: Worker): { started: string[]; ended: [string, string][] } {
  const seen = { started: [] as string[], ended: [] as [string, string][] };
  to.handle("block", async (job) => {
    seen.started.push(job.id);
    node.notify();
    await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
    seen.ended.push([job.id, (job.signal.reason as StopError).kind]);
    node.notify();
    throw job.signal.reason;
  });
  return seen;
}

test("a submission is retried with the same idempotency key", async () => {
  node.answers.set("/v1/jobs", [problem(503, "unavailable"), "hang up", [201, { id: "j" }]]);
  assert.equal((await client.submit("mail", { n: 1 }, { delay: "5m" })).id, "j");
  assert.equal(node.calls.length, 3);
  assert.equal(new Set(node.calls.map((call) => call.headers["idempotency-key"])).size, 1);
  assert.deepEqual(node.calls[0]?.body, { type: "mail", payload: { n: 1 }, delay: "5m" });
});

test("a problem is thrown with its code and not retried", async () => {
  node.answers.set("/v1/jobs", [[422, { title: "", status: 422, code: "invalid", detail: "no", pointer: "/queue" }]]);
  await assert.rejects(client.submit("mail", null), (error: unknown) => {
    assert(error instanceof HoldfastError);
    assert.deepEqual([error.code, error.status, error.pointer], ["invalid", 422, "/queue"]);
    return true;
  });
  assert.equal(node.calls.length, 1);
});

test("a request that may have taken effect is not repeated", async () => {
  node.answers.set("/v1/jobs/j/retry", ["hang up"]);
  await assert.rejects(client.retry("j"), { name: "ConnectionError", sent: true });
});

test("list follows the cursors, and wait returns the result or why there is none", async () => {
  node.answers.set("/v1/jobs", [[200, { items: [{ id: "a" }], next_cursor: "c" }], [200, { items: [{ id: "b" }], next_cursor: null }]]);
  const ids = [];
  for await (const job of client.list({ status: "dead" })) ids.push(job.id);
  assert.deepEqual(ids, ["a", "b"]);
  node.answers.set("/v1/jobs/j", [[200, { status: "running" }], [200, { status: "succeeded", result: 3 }], [200, { status: "dead", error: { kind: "Boom", message: "why" } }]]);
  assert.equal(await client.wait<number>("j"), 3);
  await assert.rejects(client.wait("j"), JobFailed);
});

test("handlers decide the outcome", async () => {
  const made = worker({ slots: 1 });
  made.handle<{ do?: string }>("act", (job) => {
    switch (job.payload.do) {
      case "fail": throw new RangeError("why");
      case "never": throw new PermanentError("never");
      case "later": throw new RetryIn(90, "later");
      case "snooze": throw new Snooze(60);
      case "cancel": throw new CancelJob("pointless");
      case "large": return "x".repeat(300 * 1024);
      case "bigint": return 1n;
    }
    job.log("seen", { attempt: job.attempt }, "warning");
    return { key: job.idempotencyKey("a") };
  }, { parse: (payload) => (payload === 3 ? (() => { throw new TypeError("not 3"); })() : (payload as { do?: string })) });
  running = made.run(stop.signal);
  const run = async (payload: unknown) => (node.add("j", "act", payload), node.outcome());
  const done = await run({});
  assert.deepEqual([done.outcome, done.result, done.fence], ["succeeded", { key: "j:a" }, 7]);
  assert.equal(done.logs.lines[0].message, "seen attempt=2");
  assert.deepEqual((await run({ do: "fail" })).error.kind, "RangeError");
  assert.equal((await run({ do: "never" })).retryable, false);
  assert.equal((await run({ do: "later" })).retry_in, 90);
  assert.equal((await run({ do: "snooze" })).delay, 60);
  assert.equal((await run({ do: "cancel" })).reason, "pointless");
  assert.equal((await run({ do: "large" })).result.bytes, 300 * 1024 + 2);
  assert.equal((await run({ do: "bigint" })).retryable, false);
  const invalid = await run(3);
  assert.deepEqual([invalid.error.kind, invalid.retryable], ["InvalidPayload", false]);
});

test("a lost job is stopped alone and not reported", async () => {
  const made = worker({ leaseSeconds: 0.6 });
  const seen = blocking(made);
  made.handle("quick", () => null);
  running = made.run(stop.signal);
  node.add("lost", "block");
  node.add("kept", "block");
  await node.until(() => seen.started.length === 2);
  node.renewal = [200, { lost: ["lost"], paused: [], draining: false }];
  await node.until(() => seen.ended.length === 1);
  assert.deepEqual(seen.ended, [["lost", "job_not_held"]]);
  node.add("next", "quick");
  assert.equal((await node.outcome()).id, "next");
  assert.equal(node.registrations, 1);
});

test("job_not_held from a step stops only this job", async () => {
  const made = worker();
  const seen = blocking(made);
  let thrown: unknown;
  made.handle("step", (job) => job.step("a", () => 1).catch((error: unknown) => ((thrown = error), node.notify())));
  running = made.run(stop.signal);
  node.add("kept", "block");
  await node.until(() => seen.started.length === 1);
  node.answers.set("/v1/leases/steps", [problem(409, "job_not_held")]);
  node.add("cancelled", "step");
  await node.until(() => thrown !== undefined);
  assert(thrown instanceof StopError && thrown.kind === "job_not_held");
  assert.deepEqual([seen.ended.length, node.registrations], [0, 1]);
});

test("a lost lease stops all jobs, and the worker registers again", async () => {
  const made = worker({ leaseSeconds: 0.6 });
  const seen = blocking(made);
  running = made.run(stop.signal);
  node.add("a", "block");
  await node.until(() => seen.started.length === 1);
  node.answers.set("/v1/leases/renew", [problem(409, "lease_lost")]);
  await node.until(() => node.registrations === 2);
  assert.deepEqual(seen.ended, [["a", "lease_lost"]]);
  assert(!node.calls.some((call) => call.path === "/v1/leases/settle"));
});

test("the worker enforces the timeout", async () => {
  const made = worker();
  blocking(made);
  running = made.run(stop.signal);
  node.add("a", "block", null, { timeout: 0.05 });
  const found = await node.outcome();
  assert.deepEqual([found.outcome, found.after], ["timed_out", 0.05]);
});

test("a drain lets jobs finish, releases the others and departs", async () => {
  const made = worker({ drainSeconds: 0.2 });
  const seen = blocking(made);
  made.handle("finish", (job) => new Promise<void>((resolve) => {
    seen.started.push(job.id);
    node.notify();
    stop.signal.addEventListener("abort", () => resolve());
  }));
  running = made.run(stop.signal);
  node.add("long", "block");
  node.add("short", "finish");
  await node.until(() => seen.started.length === 2);
  stop.abort();
  const [short, long] = [await node.outcome(), await node.outcome()];
  assert.deepEqual([short.id, short.outcome], ["short", "succeeded"]);
  assert.deepEqual([long.id, long.outcome], ["long", "released"]);
  await running;
  assert.equal(node.calls.at(-1)?.path, "/v1/leases/depart");
});

test("outcomes are sent again until the service answers, and a refused one as a failure", async () => {
  const made = worker();
  made.handle("quick", () => "done");
  running = made.run(stop.signal);
  const fault = { index: 0, code: "invalid", detail: "too deep", pointer: "/outcomes/0/result" };
  node.answers.set("/v1/leases/settle", [problem(503, "unavailable"), "hang up", [200, { settled: [], refused: [fault] }]]);
  node.add("a", "quick");
  for (let tries = 0; tries < 3; tries++) assert.equal((await node.outcome()).result, "done");
  const found = await node.outcome();
  assert.deepEqual([found.outcome, found.retryable], ["failed", false]);
});

test("recorded steps are reused, and the last progress is sent before the outcome", async () => {
  node.steps = [{ key: "a", state: "done", result: 41, transaction: false }, { key: "b", state: "started", result: null, transaction: false }];
  const made = worker();
  made.handle("steps", async (job) => {
    const sum = (await job.step("a", () => 0)) + (await job.step("c", () => 1));
    await assert.rejects(job.step("b", () => 0, { once: true }), StepOutcomeUnknown);
    await assert.rejects(job.step("c", () => 0), PermanentError);
    for (const fraction of [0.1, 0.2, 0.9]) job.progress(fraction);
    return sum;
  });
  running = made.run(stop.signal);
  node.add("a", "steps");
  assert.equal((await node.outcome()).result, 42);
  const recorded = node.calls.filter((call) => call.path === "/v1/leases/steps" && call.method === "POST");
  assert.deepEqual(recorded.map((call) => [call.body.key, call.body.state, call.body.result]), [["c", "done", 1]]);
  assert.equal(node.calls.filter((call) => call.path === "/v1/leases/progress").at(-1)?.body.fraction, 0.9);
});

test("a worker that the service refuses throws", async () => {
  await assert.rejects(worker().run(), /no handlers/);
  node.answers.set("/v1/leases", [problem(403, "forbidden")]);
  await assert.rejects(worker().handle("x", () => null).run(), { code: "forbidden" });
});
