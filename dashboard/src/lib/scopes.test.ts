import { expect, test } from "vitest";
import { isAdmin, isTenantAdmin } from "./scopes";

test.each([
  [undefined, false],
  [{ tenant: "default", scopes: ["admin"] }, true],
  [{ tenant: "default", scopes: ["read"] }, false],
  [{ tenant: "acme", scopes: ["admin"] }, false],
] as const)("only an admin of the default tenant administers the installation: %j", (me, admin) => {
  expect(isAdmin(me && { ...me, scopes: [...me.scopes] })).toBe(admin);
});

test.each([
  [undefined, false],
  [{ tenant: "default", scopes: ["admin"] }, true],
  [{ tenant: "acme", scopes: ["admin"] }, true],
  [{ tenant: "acme", scopes: ["read", "cancel"] }, false],
] as const)("an admin of any tenant administers that tenant: %j", (me, admin) => {
  expect(isTenantAdmin(me && { ...me, scopes: [...me.scopes] })).toBe(admin);
});
