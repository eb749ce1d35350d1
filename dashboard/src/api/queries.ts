/** What the pages ask for. The first part of a key names the subject, so that the stream knows what a change concerns. */
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { call, Problem } from "./client";
import type { Operations } from "./types.gen";

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 1_000,
        gcTime: 120_000,
        networkMode: "always",
        retry: (failures, error) => failures < 2 && error instanceof Problem && error.passing,
        retryDelay: (failures) => 500 * 2 ** failures,
        refetchOnWindowFocus: true,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

/** Fetched again by itself this often, also without news: what only time changes. Not while the tab is hidden. */
const NOW_AND_THEN = 15_000;
/** Figures of a window move by themselves: the stream does not tell of them. */
const FIGURES = 5_000;

const MOST_HOPS = 5;

export type JobQuery = Operations["list_jobs"]["query"];
export type Window = "15m" | "1h" | "6h" | "24h" | "7d";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => call<"me">("GET", "/v1/me", { signal }),
  staleTime: 60_000,
});

export const statsQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["stats", tenant ?? null],
    queryFn: ({ signal }) => call<"stats">("GET", "/v1/stats", { query: { ...(tenant ? { tenant } : {}) }, signal }),
    refetchInterval: NOW_AND_THEN,
    placeholderData: keepPreviousData,
  });

export const queuesQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["queues", tenant ?? null],
    queryFn: ({ signal }) => call<"list_queues">("GET", "/v1/queues", { query: { ...(tenant ? { tenant } : {}) }, signal }),
    refetchInterval: NOW_AND_THEN,
    placeholderData: keepPreviousData,
  });

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }) => call<"workers">("GET", "/v1/workers", { signal }),
  refetchInterval: 5_000,
});

export const summaryQuery = (query: Operations["summary"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "summary", query],
    queryFn: ({ signal }) => call<"summary">("GET", "/v1/analytics", { query, signal }),
    refetchInterval: FIGURES,
    placeholderData: keepPreviousData,
  });

export const throughputQuery = (query: Operations["throughput"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "throughput", query],
    queryFn: ({ signal }) => call<"throughput">("GET", "/v1/analytics/throughput", { query, signal }),
    refetchInterval: FIGURES,
    placeholderData: keepPreviousData,
  });

export const typesQuery = (query: Operations["types"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "types", query],
    queryFn: ({ signal }) => call<"types">("GET", "/v1/analytics/types", { query, signal }),
    refetchInterval: FIGURES,
    placeholderData: keepPreviousData,
  });

export const jobsQuery = (query: JobQuery) =>
  queryOptions({
    queryKey: ["jobs", query],
    queryFn: async ({ signal }) => {
      let page = await call<"list_jobs">("GET", "/v1/jobs", { query, signal });
      // A page may hold none though there are more: the server looks at so many and no further.
      for (let hop = 0; hop < MOST_HOPS && !page.items.length && page.next_cursor; hop += 1) {
        page = await call<"list_jobs">("GET", "/v1/jobs", { query: { ...query, cursor: page.next_cursor }, signal });
      }
      return page;
    },
    refetchInterval: NOW_AND_THEN,
    placeholderData: keepPreviousData,
  });

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => call<"get_job">("GET", "/v1/jobs/{id}", { path: { id }, signal }),
    refetchInterval: (query) => (query.state.data?.status === "running" ? 5_000 : 30_000),
  });

export const deadGroupsQuery = (query: Operations["list_dead"]["query"] = {}) =>
  queryOptions({
    queryKey: ["dead", "groups", query],
    queryFn: ({ signal }) => call<"list_dead">("GET", "/v1/dead", { query: { ...query, group: "fingerprint" }, signal }),
    refetchInterval: NOW_AND_THEN,
    placeholderData: keepPreviousData,
  });

let canExplain = true;

/** Why a job is (not) running. A node that cannot tell answers 404, which is an answer: null. */
export const explainQuery = (id: string, enabled: boolean) =>
  queryOptions({
    queryKey: ["explain", id],
    enabled,
    queryFn: async ({ signal }): Promise<Explained | null> => {
      if (!canExplain) return null;
      try {
        return (await call("GET" as never, "/v1/jobs/{id}/explain" as never, { path: { id }, signal })) as unknown as Explained;
      } catch (error) {
        if (error instanceof Problem && error.code === "no_such_route") {
          canExplain = false; // an older node: it is not asked again
          return null;
        }
        throw error;
      }
    },
    refetchInterval: (query) => (query.state.data === null ? false : 5_000),
  });

/** As far as the page reads it. */
export interface Explained {
  runnable: boolean;
  reasons: { code: string; detail: string; blocks: boolean; until?: string | null; holders?: string[] }[];
  estimate?: { at: string | null; basis: string } | null;
}
