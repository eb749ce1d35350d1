import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { HIDDEN_FOR, Live, SILENCE } from "./live";

interface Line {
  headers: Record<string, string>;
  say: (text: string) => void;
  end: () => void;
  aborted: () => boolean;
}

let lines: Line[];
let live: Live;
let events: string[];
let gaps: number;
let refused: number;
let visible: boolean;
let status: number;

beforeEach(() => {
  vi.useFakeTimers();
  [lines, events, gaps, refused, visible, status] = [[], [], 0, 0, true, 200];
  live = new Live({
    url: "http://holdfast.test/v1/events",
    key: () => "hf_secret",
    onEvent: (event) => events.push(event.data),
    onGap: () => (gaps += 1),
    onRefused: () => (refused += 1),
    visible: () => visible,
    random: () => 1,
    fetch: (async (url: string, asked: RequestInit) => {
      expect(url).not.toContain("secret");
      let push: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void (push = controller) });
      asked.signal?.addEventListener("abort", () => {
        try {
          push.error(asked.signal?.reason);
        } catch {
          // It has ended already.
        }
      });
      lines.push({
        headers: asked.headers as Record<string, string>,
        say: (text) => push.enqueue(new TextEncoder().encode(text)),
        end: () => push.close(),
        aborted: () => asked.signal?.aborted ?? false,
      });
      return new Response(status === 200 ? body : null, { status });
    }) as typeof fetch,
  });
});
afterEach(() => {
  live.stop();
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(1);
const line = (index: number) => lines[index] as Line;

it("sends the key in a header, and hands on what comes", async () => {
  live.start();
  await settle();
  line(0).say("retry: 2000\nid: 7\n\n");
  await settle();
  expect(line(0).headers.authorization).toBe("Bearer hf_secret");
  expect([live.snapshot().state, gaps]).toEqual(["live", 1]);
  line(0).say("id: 8\nevent: job\ndata: one\n\n");
  await settle();
  expect(events).toEqual(["one"]);
});

it("resumes after the last id, and says meanwhile that it is stale", async () => {
  live.start();
  await settle();
  line(0).say("id: 7\n\nid: 8\nevent: job\ndata: one\n\n");
  await settle();
  line(0).end();
  await settle();
  expect(live.snapshot().state).toBe("stale");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(line(1).headers["last-event-id"]).toBe("8");
  line(1).say("\n");
  await settle();
  expect([live.snapshot().state, gaps]).toEqual(["live", 1]);
});

it("fetches anew after a reset", async () => {
  live.start();
  await settle();
  line(0).say('id: 7\n\nevent: reset\ndata: {"reason":"slow"}\n\n');
  await settle();
  expect([gaps, events]).toEqual([2, []]);
});

it("takes a line that says nothing for dead", async () => {
  live.start();
  await settle();
  line(0).say("id: 7\n\n");
  await settle();
  await vi.advanceTimersByTimeAsync(SILENCE + 10);
  expect([live.snapshot().state, line(0).aborted()]).toEqual(["stale", true]);
});

it("waits longer after each failure, and asks at once when told to hurry", async () => {
  status = 503;
  live.start();
  await vi.advanceTimersByTimeAsync(2_000 + 4_000 + 8_000 + 5);
  expect(lines.length).toBe(4);
  live.hurry();
  await settle();
  expect(lines.length).toBe(5);
});

it("rests while nobody looks, and goes on where it was", async () => {
  live.start();
  await settle();
  line(0).say("id: 7\n\n");
  await settle();
  visible = false;
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(HIDDEN_FOR + 10);
  expect([live.snapshot().state, line(0).aborted(), lines.length]).toEqual(["paused", true, 1]);
  visible = true;
  document.dispatchEvent(new Event("visibilitychange"));
  await settle();
  expect([lines.length, line(1).headers["last-event-id"]]).toEqual([2, "7"]);
});

it("ends the session when the key is good no more, and asks no further", async () => {
  status = 401;
  live.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([refused, lines.length, live.snapshot().state]).toEqual([1, 1, "off"]);
});
