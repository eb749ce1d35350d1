/** Permissions of the caller. */
import type { Me } from "../api/types.gen";

const DEFAULT_TENANT = "default";

type Caller = Pick<Me, "tenant" | "scopes"> | undefined;

/** Whether the caller administers at least its own tenant: its API keys and jobs. */
export function isTenantAdmin(me: Caller): boolean {
  return Boolean(me?.scopes.includes("admin"));
}

/** Whether the caller administers the whole installation. An admin key of another tenant administers only that tenant. */
export function isAdmin(me: Caller): boolean {
  return me?.tenant === DEFAULT_TENANT && me.scopes.includes("admin");
}
