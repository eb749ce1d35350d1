/** Tenants: what each received against what it was entitled to, what it may use, and what it has waiting. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useRef, useState } from "react";
import { fairnessQuery, pausesQuery, tenantLimitsQuery, tenantsQuery } from "../api/operate";
import { statsQuery } from "../api/queries";
import type { LimitOut, TenantOut, TenantShareOut } from "../api/types.gen";
import { Choice } from "../components/Choice";
import { type Column, DataTable } from "../components/DataTable";
import { Icon } from "../components/Icon";
import { Pauses, useResume } from "../components/Pauses";
import { useSeen } from "../components/Sparkline";
import { Answered, Card, Empty, ErrorBox } from "../components/States";
import { compact, count, percent, span } from "../lib/format";
import { writeRate } from "../lib/rates";
import { rowsOf, type TenantRow } from "../lib/shares";

const PauseForm = lazy(() => import("../components/QueueForms").then((module) => ({ default: module.PauseForm })));
const LimitForm = lazy(() => import("../components/QueueForms").then((module) => ({ default: module.LimitForm })));
const TenantForm = lazy(() => import("../components/TenantForm").then((module) => ({ default: module.TenantForm })));

const WINDOWS = ["15m", "1h", "6h", "24h", "7d"] as const;

export function Tenants() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((each) => each === search.window) ?? "15m";
  const tenants = useQuery(tenantsQuery);
  const fairness = useQuery(fairnessQuery(window));
  const pauses = useQuery(pausesQuery).data?.items.filter((pause) => pause.kind === "tenant") ?? [];
  const limits = useQuery(tenantLimitsQuery).data?.items ?? [];
  const limitOf = (name: string) => limits.find((limit) => limit.tenant === name);
  const rests = (name: string) => pauses.some((pause) => pause.name === name);
  const resume = useResume();
  const [asking, setAsking] = useState<{ tenant?: TenantOut; name?: string }>();
  const [setting, setSetting] = useState<{ what: "pause" | "limit"; tenant: string }>();
  const columns: Column<TenantRow>[] = [
    {
      id: "name",
      header: "Tenant",
      value: (row) => row.name,
      className: "name-cell",
      cell: (row) => (
        <>
          <Link to="/jobs" search={{ tenant: row.name }} className="cut strong" title={row.name}>
            {row.name}
          </Link>
          {rests(row.name) && <span className="warn small"> paused</span>}
        </>
      ),
    },
    { id: "weight", header: "Weight", value: (row) => row.share?.weight ?? row.tenant?.weight ?? null, highFirst: true, className: "right num", cell: (row) => row.tenant?.weight ?? row.share?.weight ?? <Default /> },
    ...(fairness.data
      ? ([
          { id: "share", header: "Received of entitled", value: (row) => row.share?.ratio ?? null, className: "nowrap", cell: (row) => <Share share={row.share} /> },
        ] satisfies Column<TenantRow>[])
      : []),
    { id: "backlog", header: "Waits · runs", className: "right num nowrap", cell: (row) => <Backlog tenant={row.name} /> },
    { id: "quota", header: "Quotas", className: "small", cell: (row) => <Quota tenant={row.tenant} /> },
    {
      id: "limits",
      header: "Runs at most",
      className: "small nowrap",
      cell: (row) => (
        <button type="button" className="plain" title="Set its limits" onClick={() => setSetting({ what: "limit", tenant: row.name })}>
          <span className="hidden-text">Limits of {row.name}: </span>
          <Limited limit={limitOf(row.name)} />
        </button>
      ),
    },
    {
      id: "act",
      header: <span className="hidden-text">Actions</span>,
      className: "right nowrap",
      cell: (row) => (
        <>
          <Button size="compact-xs" variant="default" aria-label={`Edit ${row.name}`} onClick={() => setAsking(row.tenant ? { tenant: row.tenant } : { name: row.name })}>
            Edit …
          </Button>{" "}
          {rests(row.name) ? (
            <Button size="compact-xs" loading={resume.isPending && resume.variables.name === row.name} aria-label={`Resume the tenant ${row.name}`} onClick={() => resume.mutate({ kind: "tenant", name: row.name })}>
              Resume
            </Button>
          ) : (
            <Button size="compact-xs" variant="default" aria-label={`Pause ${row.name}`} onClick={() => setSetting({ what: "pause", tenant: row.name })}>
              Pause …
            </Button>
          )}
        </>
      ),
    },
  ];
  return (
    <>
      <h1 className="hidden-text">Tenants</h1>
      {resume.error && <ErrorBox error={resume.error} />}
      {fairness.error && !fairness.data ? <ErrorBox error={fairness.error} title="Shares are not known" retry={() => void fairness.refetch()} /> : null}
      {fairness.data === null && (
        <div className="note calm" role="status">
          This server does not tell what tenants received: weights, quotas and backlogs are shown without.
        </div>
      )}
      <Card
        title="Tenants"
        aside={
          <>
            {fairness.data && <Jain jain={fairness.data.jain} />}
            {fairness.data !== null && <Choice label="Window" value={window} options={WINDOWS} onChange={(value) => void navigate({ to: "/tenants", search: { window: value }, replace: true })} />}
            <Button size="compact-sm" leftSection={<Icon name="plus" size={14} />} onClick={() => setAsking({})}>
              New tenant
            </Button>
          </>
        }
      >
        <Answered query={tenants} lines={6}>
          {(list) => {
            const rows = rowsOf(list.items, fairness.data?.items ?? []);
            return (
              <>
                {rows.length ? (
                  <DataTable label="Tenants" columns={columns} rows={rows} rowId={(row) => row.name} />
                ) : (
                  <Empty title="No tenant is entered">Each is as the installation's default until it is entered here with a weight or a quota of its own.</Empty>
                )}
                {list.more && <p className="small soft foot">Only the first {count(list.items.length)} are shown.</p>}
              </>
            );
          }}
        </Answered>
      </Card>
      <Pauses admin tenants />
      <Suspense fallback={null}>
        {asking && <TenantForm {...asking} onClose={() => setAsking(undefined)} />}
        {setting?.what === "pause" && <PauseForm subject={{ tenant: setting.tenant }} onClose={() => setSetting(undefined)} />}
        {setting?.what === "limit" && <LimitForm subject={{ tenant: setting.tenant }} now={limitOf(setting.tenant) ?? { max_running: null, rate: null }} onClose={() => setSetting(undefined)} />}
      </Suspense>
    </>
  );
}

function Default() {
  return <span className="soft">default</span>;
}

function Jain({ jain }: { jain: number | null }) {
  if (jain === null) return <span className="small soft">nobody had to wait</span>;
  return (
    <span className={`small ${jain < 0.9 ? "warn" : "soft"}`} title="Jain's index: 1 if all who had jobs waiting were treated alike">
      fairness <strong className="num">{jain.toFixed(3)}</strong>
    </span>
  );
}

/** A bar up to what was received, with a mark where it would be all that the tenant was entitled to. */
function Share({ share }: { share: TenantShareOut | undefined }) {
  if (!share || share.ratio === null) return <span className="soft">–</span>;
  const short = share.ratio < 0.9 && share.backlogged > 0;
  return (
    <>
      <meter className={`slots share ${short ? "short" : ""}`} min={0} max={2} value={Math.min(2, share.ratio)} aria-label={`${percent(share.ratio)} of what it was entitled to`} /> <span className={`num ${short ? "warn" : ""}`}>{percent(share.ratio)}</span>{" "}
      <span className="num small soft" title="Its part of all that was received, of the part that its weight entitles it to">
        {percent(share.received_share)} of {percent(share.entitled_share)}
      </span>
    </>
  );
}

function Limited({ limit }: { limit: LimitOut | undefined }) {
  const said = limit && [limit.max_running === null ? "" : `${count(limit.used)} of ${count(limit.max_running)}`, writeRate(limit.rate)].filter(Boolean).join(", ");
  return said ? <span className={`num ${limit.room === 0 ? "warn" : ""}`}>{said}</span> : <>any number</>;
}

function Quota({ tenant }: { tenant: TenantOut | undefined }) {
  const said = [
    tenant?.rate == null ? "" : `${count(tenant.rate)} in ${span(tenant.rate_window ?? 60)}`,
    tenant?.backlog == null ? "" : `${count(tenant.backlog)} unfinished`,
    tenant?.queue_backlog == null ? "" : `${count(tenant.queue_backlog)} in a queue`,
  ].filter(Boolean);
  if (!said.length) return <Default />;
  return (
    <span className="parts">
      {said.map((part) => (
        <span key={part} className="nowrap">
          {part}
        </span>
      ))}
    </span>
  );
}

function Backlog({ tenant }: { tenant: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const stats = useQuery({ ...statsQuery(tenant), enabled: useSeen(place) }).data;
  return (
    <span ref={place}>{stats ? `${compact(stats.statuses.ready + stats.statuses.retrying + stats.statuses.scheduled + stats.statuses.blocked)} · ${compact(stats.statuses.running)}` : "…"}</span>
  );
}
