/** What the pages for operators ask for: tenants, keys, fairness, percentiles step by step. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call, Problem } from "./client";
import type { FairnessOut, JobOut, KeyOut, TenantOut, TypeOut } from "./types.gen";

const NOW_AND_THEN = 15_000;
/** Pages of 200 that are fetched of a list that is shown whole. */
const MOST_PAGES = 5;
const PAGE = 200;

interface Paged<T> {
  items: T[];
  next_cursor: string | null;
}

/** A list as far as it is shown, and whether there is more. */
export interface Listed<T> {
  items: T[];
  more: boolean;
}

/** All of a list, page by page, as far as anybody would read. */
export async function listed<T>(page: (cursor: string | undefined) => Promise<Paged<T>>): Promise<Listed<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let number = 0; number < MOST_PAGES; number += 1) {
    const found = await page(cursor);
    items.push(...found.items);
    if (!found.next_cursor) return { items, more: false };
    cursor = found.next_cursor;
  }
  return { items, more: true };
}

export const tenantsQuery = queryOptions({
  queryKey: ["tenants"],
  queryFn: ({ signal }): Promise<Listed<TenantOut>> =>
    listed((cursor) => call<"list_tenants">("GET", "/v1/tenants", { query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, signal })),
  refetchInterval: NOW_AND_THEN,
});

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: ({ signal }): Promise<Listed<KeyOut>> =>
    listed((cursor) => call<"list_keys">("GET", "/v1/keys", { query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, signal })),
  refetchInterval: NOW_AND_THEN,
});

/** Who received what. A node that is older than this page cannot tell: null, which is an answer. */
export const fairnessQuery = (window: string) =>
  queryOptions({
    queryKey: ["analytics", "fairness", window],
    queryFn: async ({ signal }): Promise<FairnessOut | null> => {
      try {
        return await call<"fairness">("GET", "/v1/analytics/fairness", { query: { window }, signal });
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: NOW_AND_THEN,
    placeholderData: keepPreviousData,
  });

/** The types that workers handle, with what their payload is. A node that is older than this page knows none. */
export const jobTypesQuery = queryOptions({
  queryKey: ["types"],
  queryFn: ({ signal }): Promise<Listed<TypeOut>> =>
    listed((cursor) => call<"list_types">("GET", "/v1/types", { query: { limit: PAGE, ...(cursor ? { cursor } : {}) }, signal })),
  staleTime: 30_000,
  retry: false,
});

/** What is told of a type: by the tenant's own workers, or else by those of everybody. */
export function typeOf(types: readonly TypeOut[], name: string, tenant: string): TypeOut | undefined {
  const found = types.filter((each) => each.type === name);
  return found.find((each) => each.tenant === tenant) ?? found.find((each) => each.tenant === null) ?? found[0];
}

/** What runs now, by the worker that runs it. */
export const runningQuery = queryOptions({
  queryKey: ["jobs", "running, by worker"],
  queryFn: async ({ signal }) => call<"list_jobs">("GET", "/v1/jobs", { query: { status: "running", limit: PAGE }, signal }),
  refetchInterval: 5_000,
});

export function byWorker(jobs: readonly JobOut[]): Map<string, JobOut[]> {
  const found = new Map<string, JobOut[]>();
  for (const job of jobs) {
    if (!job.worker) continue;
    const held = found.get(job.worker);
    if (held) held.push(job);
    else found.set(job.worker, [job]);
  }
  return found;
}

/** What rests besides queues. A node that is older than this page knows none. */
export const pausesQuery = queryOptions({
  queryKey: ["pauses"],
  queryFn: ({ signal }) => call<"list_pauses">("GET", "/v1/pauses", { signal }),
  refetchInterval: NOW_AND_THEN,
});

export const tenantLimitsQuery = queryOptions({
  queryKey: ["limits", "tenant"],
  queryFn: ({ signal }) => call<"list_limits">("GET", "/v1/limits", { query: { kind: "tenant" }, signal }),
  refetchInterval: NOW_AND_THEN,
});
