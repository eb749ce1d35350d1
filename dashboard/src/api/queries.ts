/** Queries shared by the pages. The first part of a query key names the subject, so that the event stream can invalidate it. */
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { call, Problem } from "./client";
import { fetchAllPages, PAGE_SIZE, type PagedList } from "./pagination";
import type { Explanation, JobOut, Operations, TypeOut, WorkerOut } from "./types.gen";

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 1_000,
        gcTime: 120_000,
        networkMode: "always",
        retry: (failures, error) => failures < 2 && error instanceof Problem && error.isTransient,
        retryDelay: (failures) => 500 * 2 ** failures,
        refetchOnWindowFocus: true,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

/** Refetch interval for data that changes with time even if no event arrives. Nothing is refetched while the tab is hidden. */
const REFRESH_INTERVAL_MS = 15_000;
/** Refetch interval for statistics over a time window, which the event stream does not report. */
const STATS_INTERVAL_MS = 5_000;

/** Empty pages skipped before the user has to ask for more. */
const MAX_EMPTY_PAGES = 5;

export type JobQuery = Operations["list_jobs"]["query"];
export type Window = "15m" | "1h" | "6h" | "24h" | "7d";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => call<"get_me">("GET", "/v1/me", { signal }),
  staleTime: 60_000,
});

/** Number of queues or types that are shown; the server allows no more per page. */
const MAX_NAMES = 1_000;

export const statsQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["stats", tenant ?? null],
    queryFn: ({ signal }) => call<"get_stats">("GET", "/v1/stats", { query: { limit: MAX_NAMES, ...(tenant ? { tenant } : {}) }, signal }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

export const queuesQuery = (tenant?: string) =>
  queryOptions({
    queryKey: ["queues", tenant ?? null],
    queryFn: ({ signal }) => call<"list_queues">("GET", "/v1/queues", { query: { limit: MAX_NAMES, ...(tenant ? { tenant } : {}) }, signal }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }): Promise<PagedList<WorkerOut>> =>
    fetchAllPages((cursor) => call<"list_workers">("GET", "/v1/workers", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) }, signal })),
  refetchInterval: 5_000,
});

export const summaryQuery = (query: Operations["get_analytics"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "summary", query],
    queryFn: ({ signal }) => call<"get_analytics">("GET", "/v1/analytics", { query, signal }),
    refetchInterval: STATS_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

export const throughputQuery = (query: Operations["get_throughput"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "throughput", query],
    queryFn: ({ signal }) => call<"get_throughput">("GET", "/v1/analytics/throughput", { query, signal }),
    refetchInterval: STATS_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

export const typeStatsQuery = (query: Operations["get_type_analytics"]["query"]) =>
  queryOptions({
    queryKey: ["analytics", "types", query],
    queryFn: ({ signal }) => call<"get_type_analytics">("GET", "/v1/analytics/types", { query, signal }),
    refetchInterval: STATS_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

export const jobsQuery = (query: JobQuery) =>
  queryOptions({
    queryKey: ["jobs", query],
    queryFn: async ({ signal }) => {
      let page = await call<"list_jobs">("GET", "/v1/jobs", { query, signal });
      // A page may be empty although more jobs match: the server scans a bounded number of rows per page.
      for (let skipped = 0; skipped < MAX_EMPTY_PAGES && !page.items.length && page.next_cursor; skipped += 1) {
        page = await call<"list_jobs">("GET", "/v1/jobs", { query: { ...query, cursor: page.next_cursor }, signal });
      }
      return page;
    },
    refetchInterval: REFRESH_INTERVAL_MS,
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
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

let serverCanExplain = true;

/** Why a job is not running. Null if the server is older than this route. */
export const explainQuery = (id: string, enabled: boolean) =>
  queryOptions({
    queryKey: ["explain", id],
    enabled,
    queryFn: async ({ signal }): Promise<Explanation | null> => {
      if (!serverCanExplain) return null;
      try {
        return await call<"explain_job">("GET", "/v1/jobs/{id}/explain", { path: { id }, signal });
      } catch (error) {
        if (error instanceof Problem && error.code === "no_such_route") {
          serverCanExplain = false; // the server is older than this route
          return null;
        }
        throw error;
      }
    },
    refetchInterval: (query) => (query.state.data === null ? false : 5_000),
  });

/** Job types that workers have announced, with the schema of their payload. */
export const handlerTypesQuery = queryOptions({
  queryKey: ["types"],
  queryFn: ({ signal }): Promise<PagedList<TypeOut>> =>
    fetchAllPages((cursor) => call<"list_types">("GET", "/v1/types", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) }, signal })),
  staleTime: 30_000,
  retry: false,
});

/** Find a job type by name, preferring the tenant's own workers over workers that serve every tenant. */
export function findType(types: readonly TypeOut[], name: string, tenant: string): TypeOut | undefined {
  const matches = types.filter((type) => type.type === name);
  return matches.find((type) => type.tenant === tenant) ?? matches.find((type) => type.tenant === null) ?? matches[0];
}

/** Running jobs, for the workers page. */
export const runningQuery = queryOptions({
  queryKey: ["jobs", "running, by worker"],
  queryFn: async ({ signal }) => call<"list_jobs">("GET", "/v1/jobs", { query: { status: "running", limit: PAGE_SIZE }, signal }),
  refetchInterval: 5_000,
});

export function groupByWorker(jobs: readonly JobOut[]): Map<string, JobOut[]> {
  const groups = new Map<string, JobOut[]>();
  for (const job of jobs) {
    if (!job.worker) continue;
    const group = groups.get(job.worker);
    if (group) group.push(job);
    else groups.set(job.worker, [job]);
  }
  return groups;
}
