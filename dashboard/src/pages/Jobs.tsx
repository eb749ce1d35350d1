/** Job list with search, status tabs and bulk actions. The filters are in the address. */
import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { call } from "../api/client";
import { jobsQuery, meQuery, statsQuery } from "../api/queries";
import type { FilterShape, Stats, StatusCounts } from "../api/types.gen";
import { Icon } from "../components/Icon";
import { type JobColumn, JobTable } from "../components/JobTable";
import { SearchBox } from "../components/SearchBox";
import { QueryView, Empty } from "../components/Feedback";
import { STATUS_DESCRIPTIONS, STATUSES, type Status } from "../components/StatusBadge";
import { formatCompact, formatCount, pluralize } from "../lib/format";
import { isAdmin } from "../lib/scopes";
import { FIELDS, type Filters, parseTime, parseSearch, formatSearch } from "../lib/search";

const ConfirmWithPreview = lazy(() => import("../components/ConfirmWithPreview").then((module) => ({ default: module.ConfirmWithPreview })));

const PAGE_SIZE = 50;

export function Jobs() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const queries = useQueryClient();
  const filters = useMemo(() => Object.fromEntries(FIELDS.flatMap((field) => (search[field] ? [[field, search[field]]] : []))) as Filters, [search]);
  const [problem, setProblem] = useState<string>();
  const [bulk, setBulk] = useState<"cancel" | "retry">();
  const me = useQuery(meQuery).data;
  const admin = isAdmin(me);
  const canAct = admin || (me?.scopes.includes("cancel") ?? false);
  const stats = useQuery(statsQuery(filters.tenant)).data;
  const apiFilters = useMemo(() => toApiFilters(filters), [filters]);
  const jobs = useQuery({ ...jobsQuery({ ...apiFilters, limit: PAGE_SIZE, ...(search.cursor ? { cursor: search.cursor } : {}) } as never), enabled: !("problem" in apiFilters) });

  const go = (next: Filters & { cursor?: string }) => void navigate({ to: "/jobs", search: next as Record<string, string> });
  const onSearch = (text: string) => {
    const parsed = parseSearch(text, STATUSES);
    setProblem(parsed.problem);
    if (parsed.problem) return;
    if (parsed.id) void navigate({ to: "/jobs/$id", params: { id: parsed.id } });
    else go({ ...(filters.status && !parsed.filters.status ? { status: filters.status } : {}), ...parsed.filters });
  };
  const counts = stats && countsOf(stats, filters);
  const knownValues = {
    status: STATUSES,
    queue: stats?.queues.map((entry) => entry.name) ?? [],
    type: stats?.types.map((entry) => entry.name) ?? [],
  };
  const columns: JobColumn[] = ["status", "job", ...(filters.queue ? [] : ["queue" as const]), ...(admin && !filters.tenant ? ["tenant" as const] : []), "attempts", "when", "took", "note"];
  // Without a status, the server retries dead jobs only.
  const replays = !filters.status || filters.status === "dead";
  const badTime = "problem" in apiFilters ? apiFilters.problem : undefined;

  return (
    <>
      <h1 className="hidden-text">Jobs</h1>
      <div className="row top fixed">
        <div className="grow">
          <SearchBox value={formatSearch(filters)} knownValues={knownValues} problem={problem ?? badTime} onSearch={onSearch} />
        </div>
        {(admin || me?.scopes.includes("submit")) && (
          <Button component={Link} to="/jobs/new" leftSection={<Icon name="plus" size={14} />}>
            New job
          </Button>
        )}
      </div>
      <section className="card">
        <nav className="tabs" aria-label="Status">
          <Tab filters={filters} name="all" />
          {STATUSES.map((status) => (
            <Tab key={status} filters={filters} status={status} name={status} counts={counts} />
          ))}
        </nav>
        {!badTime && (
          <QueryView query={jobs} lines={10}>
            {(page) =>
              page.items.length ? (
                <JobTable key={JSON.stringify([apiFilters, search.cursor])} jobs={page.items} label="Jobs" columns={columns} />
              ) : page.next_cursor ? (
                <Empty title="No matches so far">Few jobs match this filter. Press Older to search further back.</Empty>
              ) : (
                <Empty title={Object.keys(filters).length ? "No matching jobs" : "No jobs yet"}>
                  {Object.keys(filters).length ? (
                    <Link to="/jobs">Show all jobs</Link>
                  ) : (
                    <>
                      Submit one with <code>POST /v1/jobs</code>, from Python, or <Link to="/jobs/new">with the form</Link>.
                    </>
                  )}
                </Empty>
              )
            }
          </QueryView>
        )}
        <footer className="row apart foot sticky">
          <div className="row tight">
            {canAct && (
              <>
                <Button size="compact-sm" variant="default" onClick={() => setBulk("cancel")} disabled={isFinished(filters.status)}>
                  Cancel all matching …
                </Button>
                <Button size="compact-sm" variant="default" onClick={() => setBulk("retry")} disabled={filters.status === "running" || filters.status === "ready" || filters.status === "succeeded"}>
                  {replays ? "Replay matching dead letters …" : "Retry all matching …"}
                </Button>
              </>
            )}
          </div>
          <div className="row tight">
            <Button size="compact-sm" variant="default" disabled={!search.cursor} onClick={() => go(filters)}>
              Newest
            </Button>
            <Button size="compact-sm" variant="default" disabled={!jobs.data?.next_cursor} onClick={() => jobs.data?.next_cursor && go({ ...filters, cursor: jobs.data.next_cursor })}>
              Older
            </Button>
          </div>
        </footer>
      </section>
      {bulk && !("problem" in apiFilters) && (
        <Suspense fallback={null}>
          <ConfirmWithPreview
            opened
            onClose={() => setBulk(undefined)}
            title={bulk === "cancel" ? "Cancel all matching jobs" : replays ? "Replay matching dead letters" : "Retry all matching jobs"}
            verb={bulk === "cancel" ? "Cancel" : replays ? "Replay" : "Retry"}
            danger={bulk === "cancel"}
            previewKey={apiFilters}
            onDone={() => void queries.invalidateQueries()}
            run={async ({ dryRun, cursor }) => {
              const body = { filter: apiFilters as FilterShape, all: Object.keys(apiFilters).length === 0, dry_run: dryRun, ...(cursor ? { cursor } : {}) };
              return bulk === "cancel" ? call<"cancel_jobs">("POST", "/v1/jobs/cancel", { body }) : call<"retry_jobs">("POST", "/v1/jobs/retry", { body });
            }}
          >
            <p className="small soft">
              {Object.keys(filters).length ? (
                <>
                  Jobs with <code className="wrap-any">{Object.entries(filters).map(([name, value]) => `${name}:${value}`).join(" ")}</code>, on all pages.
                </>
              ) : (
                <>No filter is set: this applies to all jobs.</>
              )}{" "}
              {bulk === "cancel" ? "Running jobs are asked to stop; finished jobs do not change." : "Dead jobs restart with attempt 1; their errors are kept."}
            </p>
          </ConfirmWithPreview>
        </Suspense>
      )}
    </>
  );
}

function isFinished(status: string | undefined): boolean {
  return status === "succeeded" || status === "dead" || status === "cancelled";
}

/** Convert the filters to API parameters, or return what is wrong with them. */
function toApiFilters(filters: Filters): Filters | { problem: string } {
  const exact = { ...filters };
  for (const field of ["created_after", "created_before"] as const) {
    const text = filters[field];
    if (!text) continue;
    // Rounded to the minute, so that "2h" does not produce a new query every second.
    const at = parseTime(text, Math.floor(Date.now() / 60_000) * 60_000);
    if (!at) return { problem: `“${text}” is not a time: use 2h, 3d or 2030-01-31.` };
    exact[field] = at;
  }
  return exact;
}

/** Counts for the tabs. The server has them for all jobs, one queue or one type. */
function countsOf(stats: Stats, filters: Filters): StatusCounts | undefined {
  const active = FIELDS.filter((field) => filters[field] && field !== "status" && field !== "tenant");
  if (!active.length) return stats.statuses;
  if (active.length > 1) return undefined;
  const named = active[0] === "queue" ? stats.queues : active[0] === "type" ? stats.types : undefined;
  return named?.find((entry) => entry.name === filters[active[0] as "queue"])?.statuses;
}

function Tab({ filters, status, name, counts }: { filters: Filters; status?: Status; name: string; counts?: StatusCounts | undefined }) {
  const { status: current, ...rest } = filters;
  const number = status && counts?.[status];
  const lastDayOnly = status === "succeeded" || status === "cancelled";
  return (
    <Link
      to="/jobs"
      search={(status ? { ...rest, status } : rest) as Record<string, string>}
      aria-current={current === status ? "page" : undefined}
      title={status && `${STATUS_DESCRIPTIONS[status]}${number === undefined ? "" : `: ${pluralize(number, "job")}${lastDayOnly ? " in the last 24 hours" : ""}`}`}
    >
      {name}
      {number !== undefined && (
        <span className={`num ${status === "dead" && number > 0 ? "bad" : "soft"}`} aria-label={formatCount(number)}>
          {number > 99_999 ? "99.9K+" : formatCompact(number)}
        </span>
      )}
    </Link>
  );
}
