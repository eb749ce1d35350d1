/** A tenant's weight and quotas. What is left empty is the installation's default. */
import { NumberInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../api/client";
import type { TenantChange, TenantOut } from "../api/types.gen";
import { FormModal } from "./FormModal";

type Field = "weight" | "rate" | "rate_window" | "backlog" | "queue_backlog";
const FIELDS: readonly { name: Field; label: string; description: string }[] = [
  { name: "weight", label: "Weight", description: "Its part of the slots against others that have jobs waiting." },
  { name: "rate", label: "Submits", description: "How many jobs it may submit in the window below." },
  { name: "rate_window", label: "Window, in seconds", description: "Of the number of submits." },
  { name: "backlog", label: "Backlog", description: "How many unfinished jobs it may have." },
  { name: "queue_backlog", label: "Backlog of a queue", description: "How many of them in any one queue." },
];

export function TenantForm({ tenant, name: given, onClose }: { tenant?: TenantOut; name?: string; onClose: () => void }) {
  const [name, setName] = useState(tenant?.name ?? given ?? "");
  const [values, setValues] = useState<Record<Field, string | number>>(() => Object.fromEntries(FIELDS.map((field) => [field.name, tenant?.[field.name] ?? ""])) as Record<Field, string | number>);
  const send = () => {
    const body: TenantChange = {};
    // Only what was changed: another may have set the rest meanwhile.
    for (const { name: field } of FIELDS) {
      if (values[field] !== (tenant?.[field] ?? "")) body[field] = values[field] === "" ? null : Number(values[field]);
    }
    return tenant ? call<"change_tenant">("PATCH", "/v1/tenants/{name}", { path: { name: tenant.name }, body }) : call<"create_tenant">("POST", "/v1/tenants", { body: { ...body, name: name.trim() } });
  };
  return (
    <FormModal title={tenant ? `Tenant ${tenant.name}` : "New tenant"} verb={tenant ? "Set" : "Enter"} disabled={!name.trim()} onClose={onClose} send={send} fields={["name", ...FIELDS.map((field) => field.name)]}>
      {(problemOf) => (
        <>
          {!tenant && <TextInput label="Name" value={name} error={problemOf("name")} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />}
          <div className="fields">
            {FIELDS.map((field) => (
              <NumberInput
                key={field.name}
                label={field.label}
                description={field.description}
                placeholder="default"
                value={values[field.name]}
                error={problemOf(field.name)}
                onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
              />
            ))}
          </div>
        </>
      )}
    </FormModal>
  );
}
