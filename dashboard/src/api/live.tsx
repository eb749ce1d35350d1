/** Connects the event stream of the server to the query cache. */
import { type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { Coalescer } from "../lib/coalesce";
import { EventStream, type LiveStatus } from "../lib/eventStream";
import type { StreamEvent } from "../lib/sse";
import { apiUrl } from "./client";
import * as session from "./session";
import type { JobDetail, JobOut, JobPage } from "./types.gen";

/** Changes are applied to the cache at most once per interval. */
const APPLY_INTERVAL_MS = 1_000;

/** Change of one job, as the event stream reports it. */
export interface JobChange {
  id: string;
  status: JobOut["status"] | "deleted";
  attempts: number;
  at: string;
}

const StreamContext = createContext<EventStream | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const stream = useMemo(() => {
    const changes = new Coalescer<StreamEvent>((events, overflowed) => apply(queries, events, overflowed), APPLY_INTERVAL_MS);
    return new EventStream({
      url: apiUrl("v1/events"),
      apiKey: session.apiKey,
      onEvent: (event) => changes.add(event),
      onGap: () => refetchAll(queries),
      onUnauthorized: session.expire,
    });
  }, [queries]);
  useEffect(() => {
    stream.start();
    return () => stream.stop();
  }, [stream]);
  return <StreamContext value={stream}>{children}</StreamContext>;
}

const OFF: LiveStatus = { state: "off", since: 0 };

/** Connection state of the event stream, that is, how current the page is. */
export function useLive(): LiveStatus & { reconnectNow: () => void } {
  const stream = useContext(StreamContext);
  const status = useSyncExternalStore(
    stream?.subscribe ?? (() => () => undefined),
    stream?.snapshot ?? (() => OFF),
  );
  return { ...status, reconnectNow: stream?.reconnectNow ?? (() => undefined) };
}

/** Apply events to the query cache, and refetch once per subject whatever the events do not contain. */
export function apply(queries: QueryClient, events: StreamEvent[], overflowed: boolean): void {
  const newest = new Map<string, JobChange>();
  let countedOnly = overflowed;
  let workersChanged = false;
  for (const { event, data } of events) {
    if (event === "job") {
      const change = JSON.parse(data) as JobChange;
      newest.set(change.id, change);
    } else if (event === "jobs") countedOnly = true;
    else if (event === "worker") workersChanged = true;
  }
  if (newest.size) {
    queries.setQueriesData<JobPage>({ queryKey: ["jobs"] }, (page) => page && applyToPage(page, newest));
    // Only jobs in the cache matter: one or two of the hundreds that may change in a second.
    for (const subject of ["job", "explain"]) {
      for (const { queryKey } of queries.getQueryCache().findAll({ queryKey: [subject] })) {
        const change = newest.get(String(queryKey[1]));
        if (!change) continue;
        if (subject === "job") queries.setQueryData<JobDetail>(queryKey, (job) => job && applyChange(job, change));
        void refetch(queries, queryKey);
      }
    }
  }
  if (countedOnly) void refetch(queries, ["job"]);
  if (newest.size || countedOnly) {
    for (const subject of ["jobs", "stats", "queues", "dead"]) void refetch(queries, [subject]);
  }
  if (workersChanged) void refetch(queries, ["workers"]);
}

/** Return the page with the changed statuses and without deleted jobs, or the same object if nothing changed. */
export function applyToPage(page: JobPage, newest: ReadonlyMap<string, JobChange>): JobPage {
  if (!page.items.some((job) => newest.has(job.id))) return page;
  return {
    ...page,
    items: page.items
      .filter((job) => newest.get(job.id)?.status !== "deleted")
      .map((job) => {
        const change = newest.get(job.id);
        return change ? applyChange(job, change) : job;
      }),
  };
}

/** Return the job with the change applied. A deleted job stays as it was until the server responds with 404. */
function applyChange<T extends JobOut>(job: T, change: JobChange): T {
  if (change.status === "deleted") return job;
  return { ...job, status: change.status, attempts: change.attempts, updated_at: change.at };
}

function refetchAll(queries: QueryClient): void {
  void queries.invalidateQueries({}, { cancelRefetch: false });
}

/** Refetch a query. A fetch in flight may predate the event, so wait for it and then fetch once more. */
async function refetch(queries: QueryClient, queryKey: QueryKey): Promise<void> {
  const inFlight = queries.isFetching({ queryKey }) > 0;
  await queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
  if (inFlight) await queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
}
