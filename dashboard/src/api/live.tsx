/** Ties the stream of changes to what the pages show. */
import { type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { Coalescer } from "../lib/coalesce";
import { Live, type LiveStatus } from "../lib/live";
import type { StreamEvent } from "../lib/sse";
import { address } from "./client";
import * as session from "./session";
import type { JobDetail, JobOut, JobPage } from "./types.gen";

/** One hand-over of changes to the page each second, however many there are. */
const INTERVAL = 1_000;

/** What the stream tells of one job. */
export interface JobChange {
  id: string;
  status: JobOut["status"] | "deleted";
  attempts: number;
  at: string;
}

const Stream = createContext<Live | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const live = useMemo(() => {
    const changes = new Coalescer<StreamEvent>((events, lost) => apply(queries, events, lost), INTERVAL);
    return new Live({
      url: address("v1/events"),
      key: session.key,
      onEvent: (event) => changes.add(event),
      onGap: () => refresh(queries),
      onRefused: session.refused,
    });
  }, [queries]);
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  return <Stream value={live}>{children}</Stream>;
}

const NONE: LiveStatus = { state: "off", since: 0 };

/** How far what is shown can be trusted. */
export function useLive(): LiveStatus & { hurry: () => void } {
  const live = useContext(Stream);
  const status = useSyncExternalStore(
    live?.subscribe ?? (() => () => undefined),
    live?.snapshot ?? (() => NONE),
  );
  return { ...status, hurry: live?.hurry ?? (() => undefined) };
}

/** Bring what is cached up to what the stream told, and have what it cannot tell fetched once. */
export function apply(queries: QueryClient, events: StreamEvent[], lost: boolean): void {
  const newest = new Map<string, JobChange>();
  let counted = lost;
  let workers = false;
  for (const { event, data } of events) {
    if (event === "job") {
      const change = JSON.parse(data) as JobChange;
      newest.set(change.id, change);
    } else if (event === "jobs") counted = true;
    else if (event === "worker") workers = true;
  }
  if (newest.size) {
    queries.setQueriesData<JobPage>({ queryKey: ["jobs"] }, (page) => page && patched(page, newest));
    // Only those that somebody has looked at: of hundreds that change in a second, that is one or two.
    for (const subject of ["job", "explain"]) {
      for (const { queryKey } of queries.getQueryCache().findAll({ queryKey: [subject] })) {
        const change = newest.get(String(queryKey[1]));
        if (!change) continue;
        if (subject === "job") queries.setQueryData<JobDetail>(queryKey, (job) => job && told(job, change));
        void again(queries, queryKey);
      }
    }
  }
  if (counted) void again(queries, ["job"]);
  if (newest.size || counted) {
    for (const subject of ["jobs", "stats", "queues", "dead"]) void again(queries, [subject]);
  }
  if (workers) void again(queries, ["workers"]);
}

/** A page of jobs with the states that the stream told, without deleted ones; the same object where nothing changed. */
export function patched(page: JobPage, newest: ReadonlyMap<string, JobChange>): JobPage {
  if (!page.items.some((job) => newest.has(job.id))) return page;
  return {
    ...page,
    items: page.items
      .filter((job) => newest.get(job.id)?.status !== "deleted")
      .map((job) => {
        const change = newest.get(job.id);
        return change ? told(job, change) : job;
      }),
  };
}

/** A job as the stream told of it; a deleted one as it was, until the service says that it is not there. */
function told<T extends JobOut>(job: T, change: JobChange): T {
  if (change.status === "deleted") return job;
  return { ...job, status: change.status, attempts: change.attempts, updated_at: change.at };
}

function refresh(queries: QueryClient): void {
  void queries.invalidateQueries({}, { cancelRefetch: false });
}

/** What is being fetched already is waited for, and asked for once more when it has come: it may be older than the news. */
async function again(queries: QueryClient, queryKey: QueryKey): Promise<void> {
  const busy = queries.isFetching({ queryKey }) > 0;
  await queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
  if (busy) await queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
}
