/** Makes a key, and shows it: this once and never again. */
import { Button, Checkbox, Modal, Select, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, Problem } from "../api/client";
import type { NewKeyRequest } from "../api/types.gen";
import { CopyButton } from "./CopyButton";
import { ErrorBox } from "./States";

type Scope = NewKeyRequest["scopes"][number];
const SCOPES: Record<Scope, string> = {
  read: "look at jobs, queues and figures",
  submit: "submit jobs",
  cancel: "cancel, retry, replay and delete jobs",
  worker: "run jobs, as workers over HTTP do",
  admin: "everything, of all tenants",
};
const TERMS: Record<string, string | null> = { "never": null, "in a day": "1d", "in 30 days": "30d", "in 90 days": "90d", "in a year": "365d" };

export function NewKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [term, setTerm] = useState("in 90 days");
  const make = useMutation({
    mutationFn: () =>
      call<"create_key">("POST", "/v1/keys", {
        body: { name: name.trim(), scopes: [...scopes], ...(tenant.trim() ? { tenant: tenant.trim() } : {}), ...(TERMS[term] ? { expires_in: TERMS[term] } : {}) },
      }),
    gcTime: 0,
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["keys"] }),
  });
  const made = make.data;
  const problem = make.error instanceof Problem ? make.error : null;
  const at = problem?.pointer?.split("/")[1];
  const errorOf = (field: string) => (at === field ? problem?.detail : undefined);
  if (made) {
    return (
      <Modal opened onClose={onClose} title={`The key ${made.name}`} closeOnClickOutside={false} closeOnEscape={false}>
        <div className="stack">
          <div className="note warn">This is the only time that it is shown. Put it where it will be used now.</div>
          <pre className="block" data-token>
            {made.token}
          </pre>
          <div className="row apart">
            <CopyButton text={made.token} label="Copy the key" />
            <Button onClick={onClose}>I have it</Button>
          </div>
        </div>
      </Modal>
    );
  }
  return (
    <Modal opened onClose={onClose} title="New key">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <TextInput label="Name" description="What it is for; shown with whatever it changes." value={name} error={errorOf("name")} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        <TextInput label="Tenant" description="Whose jobs it sees; empty for the default tenant." value={tenant} error={errorOf("tenant")} onChange={(event) => setTenant(event.currentTarget.value)} />
        <fieldset className="scopes">
          <legend>It may</legend>
          {(Object.keys(SCOPES) as Scope[]).map((scope) => (
            <Checkbox
              key={scope}
              label={
                <>
                  <strong>{scope}</strong> <span className="soft">{SCOPES[scope]}</span>
                </>
              }
              checked={scopes.includes(scope)}
              onChange={(event) => setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))}
            />
          ))}
        </fieldset>
        <Select label="Expires" data={Object.keys(TERMS)} value={term} allowDeselect={false} onChange={(value) => value && setTerm(value)} />
        {make.error && !["name", "tenant"].includes(at ?? "") && <ErrorBox error={make.error} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            Leave it
          </Button>
          <Button type="submit" loading={make.isPending} disabled={!name.trim() || !scopes.length}>
            Make the key
          </Button>
        </div>
      </form>
    </Modal>
  );
}
