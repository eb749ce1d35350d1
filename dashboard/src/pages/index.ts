/** Pages in navigation order. A new page needs an entry here and a route in `routes.tsx`. */
import type { IconName } from "../components/Icon";

export interface PageEntry {
  path: string;
  name: string;
  icon: IconName;
  /** Shortcut: `g` followed by this key. */
  key: string;
  /** Visible to administrators only, at least of their own tenant. */
  admin?: boolean;
}

export const PAGES: readonly PageEntry[] = [
  { path: "/", name: "Overview", icon: "overview", key: "o" },
  { path: "/jobs", name: "Jobs", icon: "jobs", key: "j" },
  { path: "/queues", name: "Queues", icon: "queues", key: "q" },
  { path: "/dead", name: "Dead letters", icon: "dead", key: "d" },
  { path: "/workers", name: "Workers", icon: "workers", key: "w" },
  { path: "/performance", name: "Performance", icon: "performance", key: "p" },
  { path: "/tenants", name: "Tenants", icon: "tenants", key: "t", admin: true },
  { path: "/keys", name: "API keys", icon: "keys", key: "k", admin: true },
];
