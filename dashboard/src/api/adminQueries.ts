/** Queries of the pages for administrators: tenants, API keys, fairness, pauses and limits. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call, Problem } from "./client";
import { fetchAllPages, PAGE_SIZE, type PagedList } from "./pagination";
import type { FairnessOut, KeyOut, TenantOut } from "./types.gen";

const REFRESH_INTERVAL_MS = 15_000;

export const tenantsQuery = queryOptions({
  queryKey: ["tenants"],
  queryFn: ({ signal }): Promise<PagedList<TenantOut>> =>
    fetchAllPages((cursor) => call<"list_tenants">("GET", "/v1/tenants", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) }, signal })),
  refetchInterval: REFRESH_INTERVAL_MS,
});

export const apiKeysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: ({ signal }): Promise<PagedList<KeyOut>> =>
    fetchAllPages((cursor) => call<"list_keys">("GET", "/v1/keys", { query: { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) }, signal })),
  refetchInterval: REFRESH_INTERVAL_MS,
});

/** Share of the service that each tenant received. Null if the server is older than this route. */
export const fairnessQuery = (window: string) =>
  queryOptions({
    queryKey: ["analytics", "fairness", window],
    queryFn: async ({ signal }): Promise<FairnessOut | null> => {
      try {
        return await call<"get_fairness">("GET", "/v1/analytics/fairness", { query: { window }, signal });
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });

/** Paused job types and tenants. Paused queues are part of the list of queues. */
export const pausesQuery = queryOptions({
  queryKey: ["pauses"],
  queryFn: ({ signal }) => call<"list_pauses">("GET", "/v1/pauses", { signal }),
  refetchInterval: REFRESH_INTERVAL_MS,
});

export const tenantLimitsQuery = queryOptions({
  queryKey: ["limits", "tenant"],
  queryFn: ({ signal }) => call<"list_limits">("GET", "/v1/limits", { query: { kind: "tenant" }, signal }),
  refetchInterval: REFRESH_INTERVAL_MS,
});
