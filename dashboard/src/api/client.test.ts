import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { address, call, Problem } from "./client";
import * as session from "./session";

const asked = vi.fn<typeof fetch>();
beforeAll(() => void vi.stubGlobal("fetch", asked));
afterAll(() => void vi.unstubAllGlobals());
afterEach(() => asked.mockReset());
const answer = (body: unknown, status = 200, headers: Record<string, string> = {}) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers });

it("asks beside the page, whatever path it is below", () => {
  window.history.replaceState(null, "", "/tools/holdfast/#/jobs?x=1");
  expect(address("/v1/jobs")).toBe(`${window.location.origin}/tools/holdfast/v1/jobs`);
  window.history.replaceState(null, "", "/");
});

it("sends the key in a header, leaves out what is not set, and escapes names", async () => {
  session.signIn("hf_1");
  asked.mockResolvedValue(answer({}));
  await call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: "a/b ?" }, body: { paused: true } });
  const [url, request] = asked.mock.calls[0] as [string, RequestInit];
  expect(new URL(url).pathname).toBe("/v1/queues/a%2Fb%20%3F");
  expect((request.headers as Record<string, string>).authorization).toBe("Bearer hf_1");
  expect([request.body, request.credentials]).toEqual(['{"paused":true}', "omit"]);
  asked.mockResolvedValue(answer({ items: [] }));
  await call<"list_jobs">("GET", "/v1/jobs", { query: { queue: "mail", type: "" } });
  expect(new URL(asked.mock.calls[1]?.[0] as string).search).toBe("?queue=mail");
});

it("keeps large numbers, both ways", async () => {
  asked.mockResolvedValue(answer('{"payload":{"id":9007199254740993}}'));
  const found = await call<"submit_job">("POST", "/v1/jobs", { body: { type: "x", payload: { id: 9007199254740993n } } });
  expect(asked.mock.calls[0]?.[1]?.body).toBe('{"type":"x","payload":{"id":9007199254740993}}');
  expect(found).toEqual({ payload: { id: 9007199254740993n } });
});

it("turns problems into errors that say what to do", async () => {
  asked.mockResolvedValue(answer({ code: "conflict", detail: "it runs", pointer: "/id" }, 409, { "x-request-id": "r1" }));
  const error = await call<"me">("GET", "/v1/me").catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(Problem);
  expect(error).toMatchObject({ status: 409, code: "conflict", detail: "it runs", pointer: "/id", requestId: "r1", passing: false });
  asked.mockResolvedValue(answer("<html>Bad gateway</html>", 502));
  expect(await call<"me">("GET", "/v1/me").catch((problem: unknown) => problem)).toMatchObject({ status: 502, passing: true });
  asked.mockRejectedValue(new TypeError("Failed to fetch"));
  expect(await call<"me">("GET", "/v1/me").catch((problem: unknown) => problem)).toMatchObject({ status: 0, passing: true });
});

it("ends the session with a key that is good no more", async () => {
  session.signIn("hf_old");
  asked.mockResolvedValue(answer({ code: "unauthorized" }, 401));
  await call<"me">("GET", "/v1/me").catch(() => undefined);
  expect(session.key()).toBeNull();
});
