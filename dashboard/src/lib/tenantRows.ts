/** Rows of the tenants page: configured tenants and tenants that received service. */
import type { TenantOut, TenantShareOut } from "../api/types.gen";

export interface TenantRow {
  name: string;
  tenant: TenantOut | undefined;
  share: TenantShareOut | undefined;
}

/** Merge both lists: tenants with a share in the order of the server (lowest ratio first), then the rest by name. */
export function tenantRows(tenants: readonly TenantOut[], shares: readonly TenantShareOut[]): TenantRow[] {
  const configured = new Map(tenants.map((tenant) => [tenant.name, tenant]));
  const served = new Set(shares.map((share) => share.tenant));
  return [
    ...shares.map((share) => ({ name: share.tenant, tenant: configured.get(share.tenant), share })),
    ...tenants.filter((tenant) => !served.has(tenant.name)).map((tenant) => ({ name: tenant.name, tenant, share: undefined })),
  ];
}
