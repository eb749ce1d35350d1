/**
 * Routes of the dashboard. They are in the fragment of the address, so that the server and proxies need no rules for
 * them, filters and ids do not end up in access logs, and the dashboard works below any path prefix.
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
import { Empty, ErrorBox, Loading } from "./components/Feedback";

const root = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <ErrorBox error={error} title="This page could not be shown" retry={reset} />,
  notFoundComponent: () => (
    <Empty title="Page not found">
      <Link to="/">Go to the overview</Link>
    </Empty>
  ),
});

/** Search parameters as plain strings. Each page reads the ones it knows. */
export type Search = Record<string, string>;
const validateSearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]])));

const base = { getParentRoute: () => root, validateSearch } as const;

const routes = [
  createRoute({ ...base, path: "/", component: lazyRouteComponent(() => import("./pages/Overview"), "Overview") }),
  createRoute({ ...base, path: "/jobs", component: lazyRouteComponent(() => import("./pages/Jobs"), "Jobs") }),
  createRoute({ ...base, path: "/jobs/new", component: lazyRouteComponent(() => import("./pages/NewJob"), "NewJob") }),
  createRoute({ ...base, path: "/jobs/$id", component: lazyRouteComponent(() => import("./pages/Job"), "Job") }),
  createRoute({ ...base, path: "/queues", component: lazyRouteComponent(() => import("./pages/Queues"), "Queues") }),
  createRoute({ ...base, path: "/dead", component: lazyRouteComponent(() => import("./pages/DeadLetters"), "DeadLetters") }),
  createRoute({ ...base, path: "/workers", component: lazyRouteComponent(() => import("./pages/Workers"), "Workers") }),
  createRoute({ ...base, path: "/performance", component: lazyRouteComponent(() => import("./pages/Performance"), "Performance") }),
  createRoute({ ...base, path: "/tenants", component: lazyRouteComponent(() => import("./pages/Tenants"), "Tenants") }),
  createRoute({ ...base, path: "/keys", component: lazyRouteComponent(() => import("./pages/ApiKeys"), "ApiKeys") }),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  history: createHashHistory(),
  defaultPendingComponent: () => <Loading lines={6} />,
  defaultErrorComponent: ({ error, reset }) => <ErrorBox error={error} title="This page could not be shown" retry={reset} />,
  defaultPreload: "intent",
  scrollRestoration: true,
  // Plain strings instead of JSON, so that people can read and write the address.
  parseSearch: parseSearchWith((text) => text),
  stringifySearch: stringifySearchWith(String),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
