/** Entry point: removes credentials from the address, signs in, and renders the pages. */
import "./styles/mantine.css";
import "./styles/theme.css";
import "./styles/app.css";

import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { lazy, StrictMode, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { call } from "./api/client";
import { LiveProvider } from "./api/live";
import { makeQueryClient } from "./api/queries";
import * as session from "./api/session";
import { Loading } from "./components/Feedback";
import { router } from "./routes";
import { theme } from "./theme";

// After an upgrade of the server, an open tab may request a chunk that no longer exists: reload the page.
window.addEventListener("vite:preloadError", (event) => {
  const last = Number(sessionStorage.getItem("holdfast.reloaded") ?? 0);
  if (Date.now() - last < 60_000) return; // reloading did not help: show the error
  sessionStorage.setItem("holdfast.reloaded", String(Date.now()));
  event.preventDefault();
  window.location.reload();
});

const credentials = session.takeCredentials(window.location, window.history);
if (credentials.key) session.signInByLink(credentials.key, (question) => window.confirm(question));
if (credentials.ticket) session.signOut();
const SignIn = lazy(() => import("./pages/SignIn").then((module) => ({ default: module.SignIn })));
const queries = makeQueryClient();
const schemes = localStorageColorSchemeManager({ key: "holdfast.scheme" });

function App() {
  const apiKey = useSyncExternalStore(session.subscribe, session.apiKey);
  const [ticket, setTicket] = useState(credentials.ticket);
  const [notice, setNotice] = useState<string>();
  const [previousKey, setPreviousKey] = useState(apiKey);
  if (previousKey !== apiKey) {
    // The next user must not see cached data of the previous one.
    queries.clear();
    setPreviousKey(apiKey);
    setNotice(session.endReason());
  }
  useEffect(() => {
    if (!ticket) return;
    let unmounted = false;
    call<"sign_in">("POST", "/v1/sign-in", { body: { ticket } })
      .then((response) => session.signIn(response.token))
      .catch((error: unknown) => !unmounted && setNotice(error instanceof Error ? error.message : String(error)))
      .finally(() => !unmounted && setTicket(undefined));
    return () => {
      unmounted = true;
    };
  }, [ticket]);
  if (ticket && !apiKey) return <Loading label="Signing in" />;
  if (!apiKey) {
    return (
      <Suspense fallback={<Loading />}>
        <SignIn notice={notice} />
      </Suspense>
    );
  }
  return (
    <LiveProvider key={apiKey}>
      <RouterProvider router={router} />
    </LiveProvider>
  );
}

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} colorSchemeManager={schemes} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
