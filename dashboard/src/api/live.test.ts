import { QueryClient } from "@tanstack/react-query";
import { expect, it, vi } from "vitest";
import { apply, applyToPage } from "./live";
import type { JobPage } from "./types.gen";

const page = { items: [{ id: "a", status: "ready", attempts: 0 }, { id: "b", status: "ready", attempts: 0 }], next_cursor: null } as unknown as JobPage;
const event = (id: string, status: string, attempts = 1) => ({ event: "job", data: JSON.stringify({ id, status, attempts, at: "2030-01-31T12:00:00Z" }) });

it("updates the status of jobs in cached lists, and leaves other lists unchanged", () => {
  const queries = new QueryClient();
  const other = { items: [], next_cursor: null } as JobPage;
  queries.setQueryData(["jobs", 1], page);
  queries.setQueryData(["jobs", 2], other);
  apply(queries, [event("a", "running"), event("a", "succeeded"), event("x", "dead")], false);
  expect(queries.getQueryData<JobPage>(["jobs", 1])?.items.map((job) => [job.id, job.status])).toEqual([["a", "succeeded"], ["b", "ready"]]);
  expect(queries.getQueryData(["jobs", 2])).toBe(other);
});

it("removes deleted jobs from cached lists", () => {
  const queries = new QueryClient();
  queries.setQueryData(["jobs", 1], page);
  queries.setQueryData(["job", "a"], page.items[0]);
  apply(queries, [event("a", "deleted")], false);
  expect(queries.getQueryData<JobPage>(["jobs", 1])?.items.map((job) => job.id)).toEqual(["b"]);
  expect(queries.getQueryData(["job", "a"])).toBe(page.items[0]);
});

it("refetches each subject once, regardless of the number of changes", () => {
  const queries = new QueryClient();
  queries.setQueryData(["job", "a"], page.items[0]);
  queries.setQueryData(["explain", "a"], null);
  const invalidate = vi.spyOn(queries, "invalidateQueries");
  apply(queries, Array.from({ length: 500 }, (_, index) => event(index % 2 ? "a" : `not cached ${index}`, "running")), false);
  expect(invalidate.mock.calls.map(([filter]) => filter?.queryKey?.[0])).toEqual(["job", "explain", "jobs", "stats", "queues", "dead"]);
});

it("refetches every cached job after a counts-only event, and the workers after a worker event", () => {
  const queries = new QueryClient();
  const invalidate = vi.spyOn(queries, "invalidateQueries");
  apply(queries, [{ event: "jobs", data: "{}" }, { event: "worker", data: "{}" }], false);
  expect(invalidate.mock.calls.map(([filter]) => filter?.queryKey?.[0])).toEqual(["job", "jobs", "stats", "queues", "dead", "workers"]);
});

it("returns the same page if nothing changed", () => expect(applyToPage(page, new Map())).toBe(page));
