/** Tenants as the page shows them: those that are entered, and those of whom something was served. */
import type { TenantOut, TenantShareOut } from "../api/types.gen";

export interface TenantRow {
  name: string;
  tenant: TenantOut | undefined;
  share: TenantShareOut | undefined;
}

/** Those furthest below what they were entitled to first, as the server sorts them; then the others by name. */
export function rowsOf(tenants: readonly TenantOut[], shares: readonly TenantShareOut[]): TenantRow[] {
  const entered = new Map(tenants.map((tenant) => [tenant.name, tenant]));
  const served = new Set(shares.map((share) => share.tenant));
  return [
    ...shares.map((share) => ({ name: share.tenant, tenant: entered.get(share.tenant), share })),
    ...tenants.filter((tenant) => !served.has(tenant.name)).map((tenant) => ({ name: tenant.name, tenant, share: undefined })),
  ];
}
