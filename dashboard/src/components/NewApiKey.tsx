/** Creates an API key and shows it once. */
import { Button, Checkbox, Modal, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, Problem } from "../api/client";
import { meQuery } from "../api/queries";
import type { NewKeyRequest } from "../api/types.gen";
import { isAdmin } from "../lib/scopes";
import { CopyButton } from "./CopyButton";
import { ErrorBox } from "./Feedback";

type Scope = NewKeyRequest["scopes"][number];
const SCOPES: Record<Scope, string> = {
  read: "view jobs, queues and statistics",
  submit: "submit jobs",
  cancel: "cancel, retry, replay and delete jobs",
  worker: "run jobs as a worker over HTTP",
  metrics: "read /metrics, which covers all tenants",
  admin: "everything in this tenant; for the tenant default, everything in the installation",
};
/** Scopes that an administrator of one tenant can grant. */
const TENANT_SCOPES: Partial<Record<Scope, string>> = { read: SCOPES.read, submit: SCOPES.submit, cancel: SCOPES.cancel, worker: SCOPES.worker, admin: "everything of this tenant, including its API keys" };
const EXPIRY_OPTIONS: Record<string, string | null> = { "never": null, "in a day": "1d", "in 30 days": "30d", "in 90 days": "90d", "in a year": "365d" };

export function NewApiKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const installation = isAdmin(useQuery(meQuery).data);
  const grantable = installation ? SCOPES : TENANT_SCOPES;
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [expiry, setExpiry] = useState("in 90 days");
  const create = useMutation({
    mutationFn: () =>
      call<"create_key">("POST", "/v1/keys", {
        body: { name: name.trim(), scopes: [...scopes], ...(tenant.trim() ? { tenant: tenant.trim() } : {}), ...(EXPIRY_OPTIONS[expiry] ? { expires_in: EXPIRY_OPTIONS[expiry] } : {}) },
      }),
    gcTime: 0,
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["keys"] }),
  });
  const created = create.data;
  const problem = create.error instanceof Problem ? create.error : null;
  const errorField = problem?.pointer?.split("/")[1];
  const errorOf = (field: string) => (errorField === field ? problem?.detail : undefined);
  if (created) {
    return (
      <Modal opened onClose={onClose} title={`API key ${created.name}`} closeOnClickOutside={false} closeOnEscape={false}>
        <div className="stack">
          <div className="note warn">This is the only time the key is shown. Copy it now.</div>
          <pre className="block" data-token>
            {created.token}
          </pre>
          <div className="row apart">
            <CopyButton text={created.token} label="Copy key" />
            <Button onClick={onClose}>Done</Button>
          </div>
        </div>
      </Modal>
    );
  }
  return (
    <Modal opened onClose={onClose} title="New API key">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <TextInput label="Name" description="What the key is used for. Shown with every change made with it." value={name} error={errorOf("name")} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        {installation && <TextInput label="Tenant" description="Tenant whose jobs the key can access. Leave empty for the default tenant." value={tenant} error={errorOf("tenant")} onChange={(event) => setTenant(event.currentTarget.value)} />}
        <fieldset className="scopes">
          <legend>Scopes</legend>
          {(Object.keys(grantable) as Scope[]).map((scope) => (
            <Checkbox
              key={scope}
              label={
                <>
                  <strong>{scope}</strong> <span className="soft">{grantable[scope]}</span>
                </>
              }
              checked={scopes.includes(scope)}
              onChange={(event) => setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((other) => other !== scope))}
            />
          ))}
        </fieldset>
        <Select label="Expires" data={Object.keys(EXPIRY_OPTIONS)} value={expiry} allowDeselect={false} onChange={(value) => value && setExpiry(value)} />
        {create.error && !["name", "tenant"].includes(errorField ?? "") && <ErrorBox error={create.error} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={!name.trim() || !scopes.length}>
            Create key
          </Button>
        </div>
      </form>
    </Modal>
  );
}
