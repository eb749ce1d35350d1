import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { apiUrl, call, Problem } from "./client";
import * as session from "./session";

const fetchMock = vi.fn<typeof fetch>();
beforeAll(() => void vi.stubGlobal("fetch", fetchMock));
afterAll(() => void vi.unstubAllGlobals());
afterEach(() => fetchMock.mockReset());
const respond = (body: unknown, status = 200, headers: Record<string, string> = {}) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers });

it("builds API URLs relative to the page, below any path prefix", () => {
  window.history.replaceState(null, "", "/tools/holdfast/#/jobs?x=1");
  expect(apiUrl("/v1/jobs")).toBe(`${window.location.origin}/tools/holdfast/v1/jobs`);
  window.history.replaceState(null, "", "/");
});

it("sends the API key in a header, omits empty parameters, and escapes names", async () => {
  session.signIn("hf_1");
  fetchMock.mockResolvedValue(respond({}));
  await call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: "a/b ?" }, body: { paused: true } });
  const [url, request] = fetchMock.mock.calls[0] as [string, RequestInit];
  expect(new URL(url).pathname).toBe("/v1/queues/a%2Fb%20%3F");
  expect((request.headers as Record<string, string>).authorization).toBe("Bearer hf_1");
  expect([request.body, request.credentials]).toEqual(['{"paused":true}', "omit"]);
  fetchMock.mockResolvedValue(respond({ items: [] }));
  await call<"list_jobs">("GET", "/v1/jobs", { query: { queue: "mail", type: "" } });
  expect(new URL(fetchMock.mock.calls[1]?.[0] as string).search).toBe("?queue=mail");
});

it("keeps large integers exact in requests and responses", async () => {
  fetchMock.mockResolvedValue(respond('{"payload":{"id":9007199254740993}}'));
  const response = await call<"submit_job">("POST", "/v1/jobs", { body: { type: "x", payload: { id: 9007199254740993n } } });
  expect(fetchMock.mock.calls[0]?.[1]?.body).toBe('{"type":"x","payload":{"id":9007199254740993}}');
  expect(response).toEqual({ payload: { id: 9007199254740993n } });
});

it("turns error responses into problems", async () => {
  fetchMock.mockResolvedValue(respond({ code: "conflict", detail: "the job is running", pointer: "/id" }, 409, { "x-request-id": "r1" }));
  const error = await call<"get_me">("GET", "/v1/me").catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(Problem);
  expect(error).toMatchObject({ status: 409, code: "conflict", detail: "the job is running", pointer: "/id", requestId: "r1", isTransient: false });
  fetchMock.mockResolvedValue(respond("<html>Bad gateway</html>", 502));
  expect(await call<"get_me">("GET", "/v1/me").catch((problem: unknown) => problem)).toMatchObject({ status: 502, isTransient: true });
  fetchMock.mockRejectedValue(new TypeError("Failed to fetch"));
  expect(await call<"get_me">("GET", "/v1/me").catch((problem: unknown) => problem)).toMatchObject({ status: 0, isTransient: true });
});

it("ends the session when the API key is rejected", async () => {
  session.signIn("hf_old");
  fetchMock.mockResolvedValue(respond({ code: "unauthorized" }, 401));
  await call<"get_me">("GET", "/v1/me").catch(() => undefined);
  expect(session.apiKey()).toBeNull();
});
