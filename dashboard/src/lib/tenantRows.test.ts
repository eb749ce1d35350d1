import { expect, it } from "vitest";
import type { TenantOut, TenantShareOut } from "../api/types.gen";
import { tenantRows } from "./tenantRows";

it("lists every tenant once, tenants with a share first and in the order of the server", () => {
  const tenant = (name: string) => ({ name }) as TenantOut;
  const share = (name: string) => ({ tenant: name }) as TenantShareOut;
  const rows = tenantRows([tenant("acme"), tenant("idle")], [share("short"), share("acme")]);
  expect(rows.map((row) => [row.name, row.tenant !== undefined, row.share !== undefined])).toEqual([
    ["short", false, true],
    ["acme", true, true],
    ["idle", true, false],
  ]);
});
