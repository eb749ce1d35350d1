import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { EventStream, HIDDEN_TIMEOUT_MS, SILENCE_TIMEOUT_MS } from "./eventStream";

interface Connection {
  headers: Record<string, string>;
  send: (text: string) => void;
  end: () => void;
  aborted: () => boolean;
}

let connections: Connection[];
let stream: EventStream;
let events: string[];
let gaps: number;
let unauthorized: number;
let visible: boolean;
let status: number;

beforeEach(() => {
  vi.useFakeTimers();
  [connections, events, gaps, unauthorized, visible, status] = [[], [], 0, 0, true, 200];
  stream = new EventStream({
    url: "http://holdfast.test/v1/events",
    apiKey: () => "hf_secret",
    onEvent: (event) => events.push(event.data),
    onGap: () => (gaps += 1),
    onUnauthorized: () => (unauthorized += 1),
    isVisible: () => visible,
    random: () => 1,
    fetch: (async (url: string, request: RequestInit) => {
      expect(url).not.toContain("secret");
      let push: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void (push = controller) });
      request.signal?.addEventListener("abort", () => {
        try {
          push.error(request.signal?.reason);
        } catch {
          // The stream has already ended.
        }
      });
      connections.push({
        headers: request.headers as Record<string, string>,
        send: (text) => push.enqueue(new TextEncoder().encode(text)),
        end: () => push.close(),
        aborted: () => request.signal?.aborted ?? false,
      });
      return new Response(status === 200 ? body : null, { status });
    }) as typeof fetch,
  });
});
afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(1);
const connection = (index: number) => connections[index] as Connection;

it("sends the API key in a header, and delivers events", async () => {
  stream.start();
  await settle();
  connection(0).send("retry: 2000\nid: 7\n\n");
  await settle();
  expect(connection(0).headers.authorization).toBe("Bearer hf_secret");
  expect([stream.snapshot().state, gaps]).toEqual(["live", 1]);
  connection(0).send("id: 8\nevent: job\ndata: one\n\n");
  await settle();
  expect(events).toEqual(["one"]);
});

it("resumes after the last event id, and is stale until then", async () => {
  stream.start();
  await settle();
  connection(0).send("id: 7\n\nid: 8\nevent: job\ndata: one\n\n");
  await settle();
  connection(0).end();
  await settle();
  expect(stream.snapshot().state).toBe("stale");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(connection(1).headers["last-event-id"]).toBe("8");
  connection(1).send("\n");
  await settle();
  expect([stream.snapshot().state, gaps]).toEqual(["live", 1]);
});

it("reports a gap after a reset event", async () => {
  stream.start();
  await settle();
  connection(0).send('id: 7\n\nevent: reset\ndata: {"reason":"slow"}\n\n');
  await settle();
  expect([gaps, events]).toEqual([2, []]);
});

it("aborts a connection that stays silent", async () => {
  stream.start();
  await settle();
  connection(0).send("id: 7\n\n");
  await settle();
  await vi.advanceTimersByTimeAsync(SILENCE_TIMEOUT_MS + 10);
  expect([stream.snapshot().state, connection(0).aborted()]).toEqual(["stale", true]);
});

it("backs off after each failure, and reconnects immediately on request", async () => {
  status = 503;
  stream.start();
  await vi.advanceTimersByTimeAsync(2_000 + 4_000 + 8_000 + 5);
  expect(connections.length).toBe(4);
  stream.reconnectNow();
  await settle();
  expect(connections.length).toBe(5);
});

it("disconnects while the tab is hidden, and resumes where it stopped", async () => {
  stream.start();
  await settle();
  connection(0).send("id: 7\n\n");
  await settle();
  visible = false;
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(HIDDEN_TIMEOUT_MS + 10);
  expect([stream.snapshot().state, connection(0).aborted(), connections.length]).toEqual(["paused", true, 1]);
  visible = true;
  document.dispatchEvent(new Event("visibilitychange"));
  await settle();
  expect([connections.length, connection(1).headers["last-event-id"]]).toEqual([2, "7"]);
});

it("ends the session when the API key is rejected, and does not reconnect", async () => {
  status = 401;
  stream.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([unauthorized, connections.length, stream.snapshot().state]).toEqual([1, 1, "off"]);
});
