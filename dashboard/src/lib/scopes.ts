/** What the caller's scopes allow. */
import type { Me } from "../api/types.gen";

const DEFAULT_TENANT = "default";

/** Tells whether the caller administers the installation; `admin` of another tenant administers that tenant only. */
export function isAdmin(me: Pick<Me, "tenant" | "scopes"> | undefined): boolean {
  return me?.tenant === DEFAULT_TENANT && me.scopes.includes("admin");
}
