/** What the caller's scopes allow. */
import type { Me } from "../api/types.gen";

const DEFAULT_TENANT = "default";

type Caller = Pick<Me, "tenant" | "scopes"> | undefined;

/** Tells whether the caller administers at least its own tenant: its API keys and jobs. */
export function isTenantAdmin(me: Caller): boolean {
  return Boolean(me?.scopes.includes("admin"));
}

/** Tells whether the caller administers the installation; `admin` of another tenant administers that tenant only. */
export function isAdmin(me: Caller): boolean {
  return me?.tenant === DEFAULT_TENANT && me.scopes.includes("admin");
}
