/** Keys: who may come in, as what, and until when. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { keysQuery } from "../api/operate";
import type { KeyOut } from "../api/types.gen";
import { type Column, DataTable } from "../components/DataTable";
import { FormModal } from "../components/FormModal";
import { Icon } from "../components/Icon";
import { Answered, Card, Empty } from "../components/States";
import { Time, useNow } from "../components/Time";
import { count } from "../lib/format";
import { type KeyState, keyState } from "../lib/expiry";

const NewKey = lazy(() => import("../components/NewKey").then((module) => ({ default: module.NewKey })));

const TONES: Record<KeyState, string> = { good: "good", "ends soon": "warn", expired: "soft", revoked: "soft" };

export function Keys() {
  const keys = useQuery(keysQuery);
  const now = useNow();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<KeyOut>();
  const columns: Column<KeyOut>[] = [
    {
      id: "name",
      header: "Key",
      value: (key) => key.name,
      className: "name-cell",
      cell: (key) => (
        <>
          <span className="cut strong">{key.name || "–"}</span>
          <code className="cut small soft">{key.id}</code>
        </>
      ),
    },
    { id: "tenant", header: "Tenant", value: (key) => key.tenant, cell: (key) => <span className="cut">{key.tenant}</span> },
    {
      id: "scopes",
      header: "May",
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
    { id: "state", header: "State", value: (key) => keyState(key, now), cell: (key) => <span className={`nowrap ${TONES[keyState(key, now)]}`}>{keyState(key, now)}</span> },
    { id: "expires", header: "Expires", value: (key) => key.expires_at, className: "right nowrap", cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : <span className="soft">never</span>) },
    { id: "used", header: "Last used", value: (key) => key.last_used_at, highFirst: true, className: "right nowrap", cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : <span className="soft">never</span>) },
    { id: "made", header: "Made", value: (key) => key.created_at, highFirst: true, className: "right nowrap", cell: (key) => <Time at={key.created_at} /> },
    {
      id: "act",
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
      <h1 className="hidden-text">Keys</h1>
      <Card
        title="Keys"
        aside={
          <Button size="compact-sm" leftSection={<Icon name="plus" size={14} />} onClick={() => setMaking(true)}>
            New key
          </Button>
        }
      >
        <Answered query={keys} lines={6}>
          {(list) =>
            list.items.length ? (
              <>
                <DataTable label="Keys" columns={columns} rows={list.items} rowId={(key) => key.id} />
                {list.more && <p className="small soft foot">Only the newest {count(list.items.length)} are shown.</p>}
              </>
            ) : (
              <Empty title="No keys yet">Make one for each program that submits or looks, with no more than it needs.</Empty>
            )
          }
        </Answered>
      </Card>
      <Suspense fallback={null}>{making && <NewKey onClose={() => setMaking(false)} />}</Suspense>
      {revoking && (
        <FormModal title={`Revoke ${revoking.name}`} verb="Revoke it" danger onClose={() => setRevoking(undefined)} send={() => call<"revoke_key">("DELETE", "/v1/keys/{id}", { path: { id: revoking.id } })}>
          {() => <p>Whoever uses it is refused within seconds, and so are the tokens that were made with it. This cannot be taken back.</p>}
        </FormModal>
      )}
    </>
  );
}
