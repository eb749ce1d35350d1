/** Weight and quotas of a tenant. Empty fields use the defaults of the installation. */
import { NumberInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../api/client";
import type { TenantChange, TenantOut } from "../api/types.gen";
import { FormModal } from "./FormModal";

type Field = "weight" | "rate" | "rate_window" | "backlog" | "queue_backlog";
const FIELDS: readonly { name: Field; label: string; description: string }[] = [
  { name: "weight", label: "Weight", description: "Share of the slots, relative to other tenants with waiting jobs." },
  { name: "rate", label: "Submissions", description: "Max. jobs submitted per window." },
  { name: "rate_window", label: "Window (seconds)", description: "Window of the submission quota." },
  { name: "backlog", label: "Backlog", description: "Max. unfinished jobs." },
  { name: "queue_backlog", label: "Backlog per queue", description: "Max. unfinished jobs in one queue." },
];

export function TenantForm({ tenant, name: initialName, onClose }: { tenant?: TenantOut; name?: string; onClose: () => void }) {
  const [name, setName] = useState(tenant?.name ?? initialName ?? "");
  const [values, setValues] = useState<Record<Field, string | number>>(() => Object.fromEntries(FIELDS.map((field) => [field.name, tenant?.[field.name] ?? ""])) as Record<Field, string | number>);
  const send = () => {
    const body: TenantChange = {};
    // Send only what changed: someone else may have changed other fields in the meantime.
    for (const { name: field } of FIELDS) {
      if (values[field] !== (tenant?.[field] ?? "")) body[field] = values[field] === "" ? null : Number(values[field]);
    }
    return tenant ? call<"change_tenant">("PATCH", "/v1/tenants/{name}", { path: { name: tenant.name }, body }) : call<"create_tenant">("POST", "/v1/tenants", { body: { ...body, name: name.trim() } });
  };
  return (
    <FormModal title={tenant ? `Tenant ${tenant.name}` : "New tenant"} verb={tenant ? "Save" : "Create"} disabled={!name.trim()} onClose={onClose} send={send} fields={["name", ...FIELDS.map((field) => field.name)]}>
      {(errorOf) => (
        <>
          {!tenant && <TextInput label="Name" value={name} error={errorOf("name")} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />}
          <div className="fields">
            {FIELDS.map((field) => (
              <NumberInput
                key={field.name}
                label={field.label}
                description={field.description}
                placeholder="default"
                value={values[field.name]}
                error={errorOf(field.name)}
                onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
              />
            ))}
          </div>
        </>
      )}
    </FormModal>
  );
}
