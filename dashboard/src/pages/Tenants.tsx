/** Tenants with their fair share, backlog, quotas and limits. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useRef, useState } from "react";
import { fairnessQuery, pausesQuery, tenantLimitsQuery, tenantsQuery } from "../api/adminQueries";
import { meQuery, statsQuery } from "../api/queries";
import type { LimitOut, TenantOut, TenantShareOut } from "../api/types.gen";
import { ToggleGroup } from "../components/ToggleGroup";
import { type Column, DataTable } from "../components/DataTable";
import { Icon } from "../components/Icon";
import { PauseList, useResume } from "../components/PauseList";
import { useHasBeenVisible } from "../components/Sparkline";
import { QueryView, Card, Empty, ErrorBox, Loading } from "../components/Feedback";
import { formatCompact, formatCount, formatPercent, formatDuration } from "../lib/format";
import { formatRateLimit } from "../lib/rates";
import { isAdmin } from "../lib/scopes";
import { tenantRows, type TenantRow } from "../lib/tenantRows";

const PauseForm = lazy(() => import("../components/PauseAndLimitForms").then((module) => ({ default: module.PauseForm })));
const LimitForm = lazy(() => import("../components/PauseAndLimitForms").then((module) => ({ default: module.LimitForm })));
const TenantForm = lazy(() => import("../components/TenantForm").then((module) => ({ default: module.TenantForm })));

const WINDOWS = ["15m", "1h", "6h", "24h", "7d"] as const;

export function Tenants() {
  const me = useQuery(meQuery).data;
  if (!me) return <Loading lines={6} />;
  return isAdmin(me) ? <AllTenants /> : <OwnTenant name={me.tenant} />;
}

/** The tenant of an administrator of one tenant. Only administrators of the installation change quotas and limits. */
function OwnTenant({ name }: { name: string }) {
  const tenants = useQuery(tenantsQuery);
  return (
    <>
      <h1 className="hidden-text">Tenants</h1>
      <Card title={`Tenant ${name}`}>
        <QueryView query={tenants} lines={3}>
          {(list) => {
            const tenant = list.items.find((other) => other.name === name);
            return (
              <div className="pad stack">
                <dl className="facts">
                  <dt>Weight</dt>
                  <dd>{tenant?.weight ?? <Default />}</dd>
                  <dt>Quotas</dt>
                  <dd>
                    <Quota tenant={tenant} />
                  </dd>
                  <dt>Waiting · running</dt>
                  <dd>
                    <Backlog tenant={name} />
                  </dd>
                </dl>
                <p className="small soft">Administrators of the installation change the weight and the quotas. You manage the API keys of this tenant on the page API keys.</p>
              </div>
            );
          }}
        </QueryView>
      </Card>
    </>
  );
}

function AllTenants() {
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const window = WINDOWS.find((option) => option === search.window) ?? "15m";
  const tenants = useQuery(tenantsQuery);
  const fairness = useQuery(fairnessQuery(window));
  const pauses = useQuery(pausesQuery).data?.items.filter((pause) => pause.kind === "tenant") ?? [];
  const limits = useQuery(tenantLimitsQuery).data?.items ?? [];
  const limitOf = (name: string) => limits.find((limit) => limit.tenant === name);
  const isPaused = (name: string) => pauses.some((pause) => pause.name === name);
  const resume = useResume();
  const [editing, setEditing] = useState<{ tenant?: TenantOut; name?: string }>();
  const [dialog, setDialog] = useState<{ form: "pause" | "limit"; tenant: string }>();
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
          {isPaused(row.name) && <span className="warn small"> paused</span>}
        </>
      ),
    },
    { id: "weight", header: "Weight", value: (row) => row.share?.weight ?? row.tenant?.weight ?? null, descendingFirst: true, className: "right num", cell: (row) => row.tenant?.weight ?? row.share?.weight ?? <Default /> },
    ...(fairness.data
      ? ([
          { id: "share", header: "Fair share received", value: (row) => row.share?.ratio ?? null, className: "nowrap", cell: (row) => <Share share={row.share} /> },
        ] satisfies Column<TenantRow>[])
      : []),
    { id: "backlog", header: "Waiting · running", className: "right num nowrap", cell: (row) => <Backlog tenant={row.name} /> },
    { id: "quota", header: "Quotas", className: "small", cell: (row) => <Quota tenant={row.tenant} /> },
    {
      id: "limits",
      header: "Limits",
      className: "small nowrap",
      cell: (row) => (
        <button type="button" className="plain" title="Set limits" onClick={() => setDialog({ form: "limit", tenant: row.name })}>
          <span className="hidden-text">Limits of {row.name}: </span>
          <Limit limit={limitOf(row.name)} />
        </button>
      ),
    },
    {
      id: "actions",
      header: <span className="hidden-text">Actions</span>,
      className: "right nowrap",
      cell: (row) => (
        <>
          <Button size="compact-xs" variant="default" aria-label={`Edit ${row.name}`} onClick={() => setEditing(row.tenant ? { tenant: row.tenant } : { name: row.name })}>
            Edit …
          </Button>{" "}
          {isPaused(row.name) ? (
            <Button size="compact-xs" loading={resume.isPending && resume.variables.name === row.name} aria-label={`Resume tenant ${row.name}`} onClick={() => resume.mutate({ kind: "tenant", name: row.name })}>
              Resume
            </Button>
          ) : (
            <Button size="compact-xs" variant="default" aria-label={`Pause ${row.name}`} onClick={() => setDialog({ form: "pause", tenant: row.name })}>
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
      {fairness.error && !fairness.data ? <ErrorBox error={fairness.error} title="Fair shares are not available" retry={() => void fairness.refetch()} /> : null}
      {fairness.data === null && (
        <div className="note calm" role="status">
          This server does not report fair shares. Weights, quotas and backlogs are shown without them.
        </div>
      )}
      <Card
        title="Tenants"
        aside={
          <>
            {fairness.data && <FairnessIndex jain={fairness.data.jain} />}
            {fairness.data !== null && <ToggleGroup label="Window" value={window} options={WINDOWS} onChange={(value) => void navigate({ to: "/tenants", search: { window: value }, replace: true })} />}
            <Button size="compact-sm" leftSection={<Icon name="plus" size={14} />} onClick={() => setEditing({})}>
              New tenant
            </Button>
          </>
        }
      >
        <QueryView query={tenants} lines={6}>
          {(list) => {
            const rows = tenantRows(list.items, fairness.data?.items ?? []);
            return (
              <>
                {rows.length ? (
                  <DataTable label="Tenants" columns={columns} rows={rows} rowId={(row) => row.name} />
                ) : (
                  <Empty title="No tenants configured">A tenant uses the default weight and quotas until you add it here.</Empty>
                )}
                {list.more && <p className="small soft foot">Only the first {formatCount(list.items.length)} are shown.</p>}
              </>
            );
          }}
        </QueryView>
      </Card>
      <PauseList admin tenants />
      <Suspense fallback={null}>
        {editing && <TenantForm {...editing} onClose={() => setEditing(undefined)} />}
        {dialog?.form === "pause" && <PauseForm subject={{ tenant: dialog.tenant }} onClose={() => setDialog(undefined)} />}
        {dialog?.form === "limit" && <LimitForm subject={{ tenant: dialog.tenant }} current={limitOf(dialog.tenant) ?? { max_running: null, rate: null }} onClose={() => setDialog(undefined)} />}
      </Suspense>
    </>
  );
}

function Default() {
  return <span className="soft">default</span>;
}

function FairnessIndex({ jain }: { jain: number | null }) {
  if (jain === null) return <span className="small soft">no tenant had to wait</span>;
  return (
    <span className={`small ${jain < 0.9 ? "warn" : "soft"}`} title="Jain's fairness index: 1 means that all tenants with waiting jobs received their fair share">
      fairness index <strong className="num">{jain.toFixed(3)}</strong>
    </span>
  );
}

/** Service that a tenant received, relative to the share that its weight entitles it to. */
function Share({ share }: { share: TenantShareOut | undefined }) {
  if (!share || share.ratio === null) return <span className="soft">–</span>;
  const isShort = share.ratio < 0.9 && share.backlogged > 0;
  return (
    <>
      <meter className={`slots share ${isShort ? "short" : ""}`} min={0} max={2} value={Math.min(2, share.ratio)} aria-label={`${formatPercent(share.ratio)} of its fair share`} /> <span className={`num ${isShort ? "warn" : ""}`}>{formatPercent(share.ratio)}</span>{" "}
      <span className="num small soft" title="Share of the service received, and the share that its weight entitles it to">
        {formatPercent(share.received_share)} of {formatPercent(share.entitled_share)}
      </span>
    </>
  );
}

function Limit({ limit }: { limit: LimitOut | undefined }) {
  const text = limit && [limit.max_running === null ? "" : `${formatCount(limit.used)} of ${formatCount(limit.max_running)} running`, formatRateLimit(limit.rate)].filter(Boolean).join(", ");
  return text ? <span className={`num ${limit.room === 0 ? "warn" : ""}`}>{text}</span> : <>none</>;
}

function Quota({ tenant }: { tenant: TenantOut | undefined }) {
  const parts = [
    tenant?.rate == null ? "" : `${formatCount(tenant.rate)} per ${formatDuration(tenant.rate_window ?? 60)}`,
    tenant?.backlog == null ? "" : `${formatCount(tenant.backlog)} unfinished`,
    tenant?.queue_backlog == null ? "" : `${formatCount(tenant.queue_backlog)} per queue`,
  ].filter(Boolean);
  if (!parts.length) return <Default />;
  return (
    <span className="parts">
      {parts.map((part) => (
        <span key={part} className="nowrap">
          {part}
        </span>
      ))}
    </span>
  );
}

function Backlog({ tenant }: { tenant: string }) {
  const element = useRef<HTMLSpanElement>(null);
  const stats = useQuery({ ...statsQuery(tenant), enabled: useHasBeenVisible(element) }).data;
  return (
    <span ref={element}>{stats ? `${formatCompact(stats.statuses.ready + stats.statuses.retrying + stats.statuses.scheduled + stats.statuses.blocked)} · ${formatCompact(stats.statuses.running)}` : "…"}</span>
  );
}
