import { expect, it } from "vitest";
import type { JobOut } from "../api/types.gen";
import { asCurl, asPython, pythonLiteral, submission } from "./snippets";

const job = { type: "mail.send", queue: "mail", payload: { to: "o'hara", id: 9007199254740993n, deep: [null, true] }, priority: 0, tags: [], timeout: null, max_attempts: 5, cost: 1, concurrency_key: null } as unknown as JobOut;

it("omits fields that have their default value", () => {
  expect(Object.keys(submission(job))).toEqual(["type", "queue", "payload", "max_attempts"]);
  expect(Object.keys(submission({ ...job, priority: 5, tags: ["a"], timeout: 30, cost: 3, concurrency_key: "a" }))).toEqual(["type", "queue", "payload", "priority", "tags", "timeout", "cost", "concurrency_key", "max_attempts"]);
});

it("quotes for the shell, and reads the API key from a variable", () => {
  const text = asCurl(job, "http://127.0.0.1:8080/v1/jobs");
  expect(text).toContain(`"to":"o'\\''hara"`);
  expect(text).toContain("9007199254740993");
  expect(text).toContain("$HOLDFAST_API_KEY");
});

it("writes Python literals", () => {
  expect(pythonLiteral({ a: [null, true, false, 1.5, "x\n"], b: {} })).toBe('{"a": [None, True, False, 1.5, "x\\n"], "b": {}}');
  expect(asPython(job, "http://127.0.0.1:8080")).toContain('client.submit("mail.send", {"to": "o\'hara", "id": 9007199254740993, "deep": [None, True]}, queue="mail", max_attempts=5)');
});

it("names the tenant for administrators", () => {
  expect(asCurl(job, "http://127.0.0.1:8080/v1/jobs", "acme")).toContain("-H 'Holdfast-Tenant: acme'");
  expect(asPython(job, "http://127.0.0.1:8080", "acme")).toContain('max_attempts=5, tenant="acme")');
});
