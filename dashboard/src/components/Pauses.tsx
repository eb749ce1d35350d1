/** Types and tenants that rest, and the end of it. Nothing is shown where none does. */
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "../api/client";
import { pausesQuery } from "../api/operate";
import type { PauseOut } from "../api/types.gen";
import { Card, ErrorBox } from "./States";
import { Time } from "./Time";

export function Pauses({ admin, types, tenants }: { admin: boolean; types?: boolean; tenants?: boolean }) {
  const queries = useQueryClient();
  const pauses = useQuery({ ...pausesQuery, enabled: admin }).data?.items ?? [];
  const end = useMutation({
    mutationFn: (pause: PauseOut) => call<"end_pause">("DELETE", "/v1/pauses", { query: { [pause.kind]: pause.name } }),
    onSuccess: () => void queries.invalidateQueries(),
  });
  const shown = pauses.filter((pause) => (pause.kind === "type" ? types : tenants));
  if (!shown.length) return null;
  return (
    <Card title={types ? "Types that rest" : "Tenants that rest"}>
      {end.error && <ErrorBox error={end.error} />}
      <ul className="lines">
        {shown.map((pause) => (
          <li key={pause.name}>
            <strong className="cut">{pause.name}</strong>
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
    </Card>
  );
}
