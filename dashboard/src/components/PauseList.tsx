/** List of paused job types or tenants, with buttons to resume them. */
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { pausesQuery } from "../api/adminQueries";
import type { PauseOut } from "../api/types.gen";
import { Card, ErrorBox } from "./Feedback";
import { Time } from "./Time";

const PauseForm = lazy(() => import("./PauseAndLimitForms").then((module) => ({ default: module.PauseForm })));

export function useResume() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (pause: Pick<PauseOut, "kind" | "name">) => call<"end_pause">("DELETE", "/v1/pauses", { query: { [pause.kind]: pause.name } }),
    onSuccess: () => void queries.invalidateQueries(),
  });
}

export function PauseList({ admin, types, tenants }: { admin: boolean; types?: boolean; tenants?: boolean }) {
  const pauses = useQuery({ ...pausesQuery, enabled: admin }).data?.items ?? [];
  const resume = useResume();
  const [formOpen, setFormOpen] = useState(false);
  const shown = pauses.filter((pause) => (pause.kind === "type" ? types : tenants));
  if (!admin || (!shown.length && !types)) return null;
  return (
    <Card
      title={types ? "Paused types" : "Paused tenants"}
      aside={
        types && (
          <Button size="compact-sm" variant="default" onClick={() => setFormOpen(true)}>
            Pause a type …
          </Button>
        )
      }
    >
      {!shown.length && <p className="small soft foot">None. Jobs of a paused type do not start in any queue; other jobs in those queues still run.</p>}
      {resume.error && <ErrorBox error={resume.error} />}
      <ul className="lines pauses" hidden={!shown.length}>
        {shown.map((pause) => (
          <li key={pause.name}>
            <strong className="wrap-any">{pause.name}</strong>
            <span className="grow wrap-any warn">
              paused by {pause.by} <Time at={pause.since} />
              {pause.until && (
                <>
                  , resumes <Time at={pause.until} />
                </>
              )}
              {pause.reason && `: ${pause.reason}`}
            </span>
            <Button size="compact-xs" loading={resume.isPending && resume.variables.name === pause.name} onClick={() => resume.mutate(pause)} aria-label={`Resume ${pause.name}`}>
              Resume
            </Button>
          </li>
        ))}
      </ul>
      <Suspense fallback={null}>{formOpen && <PauseForm subject={{ type: "" }} onClose={() => setFormOpen(false)} />}</Suspense>
    </Card>
  );
}
