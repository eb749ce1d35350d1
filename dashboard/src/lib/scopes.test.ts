import { expect, test } from "vitest";
import { isAdmin } from "./scopes";

test.each([
  [undefined, false],
  [{ tenant: "default", scopes: ["admin"] }, true],
  [{ tenant: "default", scopes: ["read"] }, false],
  [{ tenant: "acme", scopes: ["admin"] }, false],
] as const)("only an admin of the default tenant administers the installation: %j", (me, admin) => {
  expect(isAdmin(me && { ...me, scopes: [...me.scopes] })).toBe(admin);
});
