/** API keys with their scopes and expiry. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { apiKeysQuery } from "../api/adminQueries";
import { meQuery } from "../api/queries";
import type { KeyOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { FormModal } from "../components/FormModal";
import { Icon } from "../components/Icon";
import { QueryView, Card, Empty } from "../components/Feedback";
import { Time, useNow } from "../components/Time";
import { formatCount } from "../lib/format";
import { type ApiKeyState, apiKeyState } from "../lib/apiKeyState";
import { isAdmin } from "../lib/scopes";

const NewApiKey = lazy(() => import("../components/NewApiKey").then((module) => ({ default: module.NewApiKey })));

const TONES: Record<ApiKeyState, string> = { active: "good", "expires soon": "warn", expired: "soft", revoked: "soft" };

export function ApiKeys() {
  const keys = useQuery(apiKeysQuery);
  const installation = isAdmin(useQuery(meQuery).data);
  const now = useNow();
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<KeyOut>();
  const columns: Column<KeyOut>[] = [
    {
      id: "name",
      header: "API key",
      value: (key) => key.name,
      className: "name-cell",
      cell: (key) => (
        <>
          <span className="cut strong" title={key.name}>{key.name || "–"}</span>
          <code className="cut small soft">{key.id}</code>
        </>
      ),
    },
    ...(installation ? [{ id: "tenant", header: "Tenant", value: (key) => key.tenant, cell: (key) => <span className="cut">{key.tenant}</span> } satisfies Column<KeyOut>] : []),
    {
      id: "scopes",
      header: "Scopes",
      cell: (key) => (
        <span className="tags">
          {key.scopes.map((scope) => (
            <span key={scope} className="tag">
              {scope}
            </span>
          ))}
        </span>
      ),
    },
    { id: "state", header: "State", value: (key) => apiKeyState(key, now), cell: (key) => <span className={`nowrap ${TONES[apiKeyState(key, now)]}`}>{apiKeyState(key, now)}</span> },
    { id: "expires", header: "Expires", value: (key) => key.expires_at, className: "right nowrap", cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : <span className="soft">never</span>) },
    { id: "used", header: "Last used", value: (key) => key.last_used_at, descendingFirst: true, className: "right nowrap", cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : <span className="soft">never</span>) },
    { id: "created", header: "Created", value: (key) => key.created_at, descendingFirst: true, className: "right nowrap", cell: (key) => <Time at={key.created_at} /> },
    {
      id: "actions",
      header: <span className="hidden-text">Actions</span>,
      className: "right",
      cell: (key) =>
        key.revoked_at ? null : (
          <Button size="compact-xs" variant="default" aria-label={`Revoke ${key.name}`} onClick={() => setRevoking(key)}>
            Revoke …
          </Button>
        ),
    },
  ];
  return (
    <>
      <h1 className="hidden-text">API keys</h1>
      <Card
        title="API keys"
        aside={
          <Button size="compact-sm" leftSection={<Icon name="plus" size={14} />} onClick={() => setCreating(true)}>
            New API key
          </Button>
        }
      >
        <QueryView query={keys} lines={6}>
          {(list) =>
            list.items.length ? (
              <>
                <DataTable label="API keys" columns={columns} rows={list.items} rowId={(key) => key.id} />
                {list.more && <p className="small soft foot">Only the newest {formatCount(list.items.length)} are shown.</p>}
              </>
            ) : (
              <Empty title="No API keys yet">Create one for each program, with only the scopes it needs.</Empty>
            )
          }
        </QueryView>
      </Card>
      <Suspense fallback={null}>{creating && <NewApiKey onClose={() => setCreating(false)} />}</Suspense>
      {revoking && (
        <FormModal title={`Revoke ${revoking.name}`} verb="Revoke key" danger onClose={() => setRevoking(undefined)} send={() => call<"revoke_key">("DELETE", "/v1/keys/{id}", { path: { id: revoking.id } })}>
          {() => <p>Clients that use this key are rejected within seconds, and so are tokens created with it. You cannot undo this.</p>}
        </FormModal>
      )}
    </>
  );
}
