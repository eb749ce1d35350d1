import { expect, it } from "vitest";
import type { TenantOut, TenantShareOut } from "../api/types.gen";
import { rowsOf } from "./shares";

it("shows every tenant once, those that were served first and as the server sorts them", () => {
  const tenant = (name: string) => ({ name }) as TenantOut;
  const share = (name: string) => ({ tenant: name }) as TenantShareOut;
  const rows = rowsOf([tenant("acme"), tenant("idle")], [share("short"), share("acme")]);
  expect(rows.map((row) => [row.name, row.tenant !== undefined, row.share !== undefined])).toEqual([
    ["short", false, true],
    ["acme", true, true],
    ["idle", true, false],
  ]);
});
