/**
 * The routes. They live behind the `#` of the address: the server and its proxies need to know nothing of them, no
 * filter and no id ends in an access log, and the whole works below any path.
 */
import {
  createHashHistory,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  parseSearchWith,
  stringifySearchWith,
} from "@tanstack/react-router";
import { Shell } from "./components/Shell";
import { Empty, ErrorBox, Loading } from "./components/States";

const root = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <ErrorBox error={error} title="This page failed" retry={reset} />,
  notFoundComponent: () => (
    <Empty title="There is no such page">
      <Link to="/">Go to the overview</Link>
    </Empty>
  ),
});

/** What stands after the `?`: texts, as they are. A page reads its own fields and leaves the rest. */
export type Search = Record<string, string>;
const validateSearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]])));

const at = { getParentRoute: () => root, validateSearch } as const;

const routes = [
  createRoute({ ...at, path: "/", component: lazyRouteComponent(() => import("./pages/Overview"), "Overview") }),
  createRoute({ ...at, path: "/jobs", component: lazyRouteComponent(() => import("./pages/Jobs"), "Jobs") }),
  createRoute({ ...at, path: "/jobs/new", component: lazyRouteComponent(() => import("./pages/NewJob"), "NewJob") }),
  createRoute({ ...at, path: "/jobs/$id", component: lazyRouteComponent(() => import("./pages/Job"), "Job") }),
  createRoute({ ...at, path: "/queues", component: lazyRouteComponent(() => import("./pages/Queues"), "Queues") }),
  createRoute({ ...at, path: "/dead", component: lazyRouteComponent(() => import("./pages/Dead"), "Dead") }),
  createRoute({ ...at, path: "/workers", component: lazyRouteComponent(() => import("./pages/Workers"), "Workers") }),
  createRoute({ ...at, path: "/performance", component: lazyRouteComponent(() => import("./pages/Performance"), "Performance") }),
  createRoute({ ...at, path: "/tenants", component: lazyRouteComponent(() => import("./pages/Tenants"), "Tenants") }),
  createRoute({ ...at, path: "/keys", component: lazyRouteComponent(() => import("./pages/Keys"), "Keys") }),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  history: createHashHistory(),
  defaultPendingComponent: () => <Loading lines={6} />,
  defaultErrorComponent: ({ error, reset }) => <ErrorBox error={error} title="This page failed" retry={reset} />,
  defaultPreload: "intent",
  scrollRestoration: true,
  // Plain texts: an address that people can read and write.
  parseSearch: parseSearchWith((text) => text),
  stringifySearch: stringifySearchWith(String),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
