/** Jobs by status, narrowed by what stands in the address; and what may be done to all that match. */
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
import { Answered, Empty } from "../components/States";
import { MEANINGS, STATUSES, type Status } from "../components/StateBadge";
import { compact, count, plural } from "../lib/format";
import { FIELDS, type Filters, instant, parseSearch, writeSearch } from "../lib/search";

const ConfirmWithPreview = lazy(() => import("../components/ConfirmWithPreview").then((module) => ({ default: module.ConfirmWithPreview })));

const PAGE = 50;

export function Jobs() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const queries = useQueryClient();
  const filters = useMemo(() => Object.fromEntries(FIELDS.flatMap((field) => (search[field] ? [[field, search[field]]] : []))) as Filters, [search]);
  const [problem, setProblem] = useState<string>();
  const [bulk, setBulk] = useState<"cancel" | "retry">();
  const me = useQuery(meQuery).data;
  const admin = me?.scopes.includes("admin") ?? false;
  const mayAct = admin || (me?.scopes.includes("cancel") ?? false);
  const stats = useQuery(statsQuery(filters.tenant)).data;
  const asked = useMemo(() => exactly(filters), [filters]);
  const jobs = useQuery({ ...jobsQuery({ ...asked, limit: PAGE, ...(search.cursor ? { cursor: search.cursor } : {}) } as never), enabled: !("problem" in asked) });

  const go = (next: Filters & { cursor?: string }) => void navigate({ to: "/jobs", search: next as Record<string, string> });
  const onSearch = (text: string) => {
    const found = parseSearch(text, STATUSES);
    setProblem(found.problem);
    if (found.problem) return;
    if (found.id) void navigate({ to: "/jobs/$id", params: { id: found.id } });
    else go({ ...(filters.status && !found.filters.status ? { status: filters.status } : {}), ...found.filters });
  };
  const counts = stats && countsOf(stats, filters);
  const known = {
    status: STATUSES,
    queue: stats?.queues.map((each) => each.name) ?? [],
    type: stats?.types.map((each) => each.name) ?? [],
  };
  const columns: JobColumn[] = ["status", "job", ...(filters.queue ? [] : ["queue" as const]), ...(admin && !filters.tenant ? ["tenant" as const] : []), "attempts", "when", "took", "note"];
  const badTime = "problem" in asked ? asked.problem : undefined;

  return (
    <>
      <h1 className="hidden-text">Jobs</h1>
      <div className="row top fixed">
        <div className="grow">
          <SearchBox value={writeSearch(filters)} known={known} problem={problem ?? badTime} onSearch={onSearch} />
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
          <Answered query={jobs} lines={10}>
            {(page) =>
              page.items.length ? (
                <JobTable key={JSON.stringify([asked, search.cursor])} jobs={page.items} label="Jobs" columns={columns} />
              ) : page.next_cursor ? (
                <Empty title="None among those looked at so far">The filter is rare: go on to look at older jobs.</Empty>
              ) : (
                <Empty title={Object.keys(filters).length ? "No job matches" : "There are no jobs yet"}>
                  {Object.keys(filters).length ? (
                    <Link to="/jobs">Show all jobs</Link>
                  ) : (
                    <>
                      Submit one: <code>POST /v1/jobs</code>, from Python, or <Link to="/jobs/new">here</Link>.
                    </>
                  )}
                </Empty>
              )
            }
          </Answered>
        )}
        <footer className="row apart foot stays">
          <div className="row tight">
            {mayAct && (
              <>
                <Button size="compact-sm" variant="default" onClick={() => setBulk("cancel")} disabled={isFinished(filters.status)}>
                  Cancel all that match …
                </Button>
                <Button size="compact-sm" variant="default" onClick={() => setBulk("retry")} disabled={filters.status === "running" || filters.status === "ready" || filters.status === "succeeded"}>
                  {filters.status ? "Run all that match now …" : "Run all dead that match again …"}
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
      {bulk && !("problem" in asked) && (
        <Suspense fallback={null}>
          <ConfirmWithPreview
            opened
            onClose={() => setBulk(undefined)}
            title={bulk === "cancel" ? "Cancel all that match" : filters.status ? "Run all that match now" : "Run all dead jobs that match again"}
            verb={bulk === "cancel" ? "Cancel" : "Run"}
            danger={bulk === "cancel"}
            previewKey={asked}
            onDone={() => void queries.invalidateQueries()}
            run={async ({ dryRun, cursor }) => {
              const body = { filter: asked as FilterShape, all: Object.keys(asked).length === 0, dry_run: dryRun, ...(cursor ? { cursor } : {}) };
              return bulk === "cancel" ? call<"cancel_jobs">("POST", "/v1/jobs/cancel", { body }) : call<"retry_jobs">("POST", "/v1/jobs/retry", { body });
            }}
          >
            <p className="small soft">
              {Object.keys(filters).length ? (
                <>
                  Those with <code className="wrap-any">{Object.entries(filters).map(([name, value]) => `${name}:${value}`).join(" ")}</code>, on all pages.
                </>
              ) : (
                <>No filter is set: that is every job there is.</>
              )}{" "}
              {bulk === "cancel" ? "What runs is told to stop; what is finished stays as it is." : "Attempts of dead jobs are counted anew; their errors are kept."}
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

/** The filters as the API wants them, or what is wrong with them. */
function exactly(filters: Filters): Filters | { problem: string } {
  const exact = { ...filters };
  for (const field of ["created_after", "created_before"] as const) {
    const given = filters[field];
    if (!given) continue;
    // To the minute, so that an address that says «2h» is not another question each second.
    const at = instant(given, Math.floor(Date.now() / 60_000) * 60_000);
    if (!at) return { problem: `“${given}” is no time: write 2h, 3d or 2030-01-31.` };
    exact[field] = at;
  }
  return exact;
}

/** Counts for the tabs, where the server keeps them: of all, of one queue, or of one type. */
function countsOf(stats: Stats, filters: Filters): StatusCounts | undefined {
  const set = FIELDS.filter((field) => filters[field] && field !== "status" && field !== "tenant");
  if (!set.length) return stats.statuses;
  if (set.length > 1) return undefined;
  const named = set[0] === "queue" ? stats.queues : set[0] === "type" ? stats.types : undefined;
  return named?.find((each) => each.name === filters[set[0] as "queue"])?.statuses;
}

function Tab({ filters, status, name, counts }: { filters: Filters; status?: Status; name: string; counts?: StatusCounts | undefined }) {
  const { status: current, ...rest } = filters;
  const number = status && counts?.[status];
  const day = status === "succeeded" || status === "cancelled";
  return (
    <Link
      to="/jobs"
      search={(status ? { ...rest, status } : rest) as Record<string, string>}
      aria-current={current === status ? "page" : undefined}
      title={status && `${MEANINGS[status]}${number === undefined ? "" : `: ${plural(number, "job")}${day ? " in the last 24 hours" : ""}`}`}
    >
      {name}
      {number !== undefined && (
        <span className={`num ${status === "dead" && number > 0 ? "bad" : "soft"}`} aria-label={count(number)}>
          {number > 99_999 ? "99.9K+" : compact(number)}
        </span>
      )}
    </Link>
  );
}
