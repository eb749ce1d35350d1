// Real calls through openapi-typescript and openapi-fetch; tools/openapi.py runs it.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";


function check(condition: boolean, what: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(what));
}

const baseUrl = process.env["HOLDFAST_API_URL"] ?? "";
const headers = { Authorization: `Bearer ${process.env["HOLDFAST_API_KEY"]}` };
const client = createClient<paths>({ baseUrl, headers });

const { data: job } = await client.POST("/v1/jobs", { body: { type: "mail.send", payload: { to: "ada" }, delay: "1h" } });
check(job?.status === "scheduled", job);

const { data: batch } = await client.POST("/v1/jobs/batch", {
  body: { jobs: Array.from({ length: 5 }, () => ({ type: "mail.send", delay: 60 })) },
});
check(batch?.items.length === 5, batch);

const found = new Set<string>();
let cursor: string | null | undefined;
do {
  const query = { type: "mail.send", limit: 2, ...(cursor ? { cursor } : {}) };
  const { data: page } = await client.GET("/v1/jobs", { params: { query } });
  check(page !== undefined, "no page");
  page.items.forEach((each) => found.add(each.id));
  cursor = page.next_cursor;
} while (cursor);
check(found.size === 6, [...found]);

const path = { id: job.id };
const { data: cancelled } = await client.POST("/v1/jobs/{id}/cancel", { params: { path }, body: { reason: "not needed" } });
check(cancelled?.status === "cancelled" && cancelled.reason === "not needed", cancelled);

const { error } = await client.GET("/v1/jobs/{id}", { params: { path: { id: "01981a52-7c3e-7000-8000-000000000000" } } });
check(error?.code === "not_found" && error.status === 404, error);

const watched = batch.items[0]?.id ?? "";
const { data: stream } = await client.GET("/v1/events", { params: { query: { job: watched } }, parseAs: "stream" });
check(stream !== null && stream !== undefined, "no stream");
await client.POST("/v1/jobs/{id}/cancel", { params: { path: { id: watched } } });
const reader = (stream as ReadableStream<Uint8Array>).getReader();
const decoder = new TextDecoder();
let text = "";
while (!text.includes('"status":"cancelled"')) {
  const { value, done } = await reader.read();
  check(!done, "the stream ended");
  text += decoder.decode(value, { stream: true });
}
const line = text.split("\n").find((each) => each.includes('"status":"cancelled"')) ?? "";
const event = JSON.parse(line.slice("data:".length)) as components["schemas"]["JobEvent"];
check(event.id === watched && event.status === "cancelled", event);
await reader.cancel();
console.log("submit, batch, list, cancel, 404 and events: ok");
