/** Starts the dashboard: takes what came in the address out of it, signs in, shows the pages. */
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
import { Loading } from "./components/States";
import { router } from "./routes";
import { theme } from "./theme";

// A tab that was open while the nodes were upgraded asks for a part that is there no more: begin anew with the new page.
window.addEventListener("vite:preloadError", (event) => {
  const last = Number(sessionStorage.getItem("holdfast.reloaded") ?? 0);
  if (Date.now() - last < 60_000) return; // it did not help: the page says what is wrong
  sessionStorage.setItem("holdfast.reloaded", String(Date.now()));
  event.preventDefault();
  window.location.reload();
});

const came = session.takeFromAddress(window.location, window.history);
if (came.key) session.signIn(came.key);
if (came.ticket) session.signOut();
const SignIn = lazy(() => import("./pages/SignIn").then((module) => ({ default: module.SignIn })));
const queries = makeQueryClient();
const schemes = localStorageColorSchemeManager({ key: "holdfast.scheme" });

function App() {
  const key = useSyncExternalStore(session.onSession, session.key);
  const [ticket, setTicket] = useState(came.ticket);
  const [notice, setNotice] = useState<string>();
  const [was, setWas] = useState(key);
  if (was !== key) {
    // Whoever comes next sees nothing of what the one before has seen.
    queries.clear();
    setWas(key);
    setNotice(session.whyEnded());
  }
  useEffect(() => {
    if (!ticket) return;
    let gone = false;
    call<"sign_in">("POST", "/v1/sign-in", { body: { ticket } })
      .then((made) => session.signIn(made.token))
      .catch((error: unknown) => !gone && setNotice(error instanceof Error ? error.message : String(error)))
      .finally(() => !gone && setTicket(undefined));
    return () => {
      gone = true;
    };
  }, [ticket]);
  if (ticket && !key) return <Loading label="Signing in" />;
  if (!key) {
    return (
      <Suspense fallback={<Loading />}>
        <SignIn notice={notice} />
      </Suspense>
    );
  }
  return (
    <LiveProvider key={key}>
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
