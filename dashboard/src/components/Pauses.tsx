/** Types and tenants that rest, and the end of it. */
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { pausesQuery } from "../api/operate";
import type { PauseOut } from "../api/types.gen";
import { Card, ErrorBox } from "./States";
import { Time } from "./Time";

const PauseForm = lazy(() => import("./QueueForms").then((module) => ({ default: module.PauseForm })));

/** Whoever may have something rest may end it. */
export function useResume() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (pause: Pick<PauseOut, "kind" | "name">) => call<"end_pause">("DELETE", "/v1/pauses", { query: { [pause.kind]: pause.name } }),
    onSuccess: () => void queries.invalidateQueries(),
  });
}

export function Pauses({ admin, types, tenants }: { admin: boolean; types?: boolean; tenants?: boolean }) {
  const pauses = useQuery({ ...pausesQuery, enabled: admin }).data?.items ?? [];
  const end = useResume();
  const [asking, setAsking] = useState(false);
  const shown = pauses.filter((pause) => (pause.kind === "type" ? types : tenants));
  if (!admin || (!shown.length && !types)) return null;
  return (
    <Card
      title={types ? "Paused types" : "Paused tenants"}
      aside={
        types && (
          <Button size="compact-sm" variant="default" onClick={() => setAsking(true)}>
            Pause a type …
          </Button>
        )
      }
    >
      {!shown.length && <p className="small soft foot">None. A type that is paused starts nowhere, whatever queue its jobs are in; the rest of the queue goes on.</p>}
      {end.error && <ErrorBox error={end.error} />}
      <ul className="lines pauses" hidden={!shown.length}>
        {shown.map((pause) => (
          <li key={pause.name}>
            <strong className="wrap-any">{pause.name}</strong>
            <span className="grow wrap-any warn">
              paused by {pause.by} <Time at={pause.since} />
              {pause.until && (
                <>
                  , until <Time at={pause.until} />
                </>
              )}
              {pause.reason && `: ${pause.reason}`}
            </span>
            <Button size="compact-xs" loading={end.isPending && end.variables.name === pause.name} onClick={() => end.mutate(pause)} aria-label={`Resume ${pause.name}`}>
              Resume
            </Button>
          </li>
        ))}
      </ul>
      <Suspense fallback={null}>{asking && <PauseForm subject={{ type: "" }} onClose={() => setAsking(false)} />}</Suspense>
    </Card>
  );
}
