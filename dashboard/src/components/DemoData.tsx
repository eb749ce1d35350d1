/** Buttons of demo mode: submit a mix of demo jobs, and delete all of them. */
import { Button } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { call } from "../api/client";
import { pluralize } from "../lib/format";
import { ErrorBox } from "./Feedback";

export function DemoData() {
  const queries = useQueryClient();
  const onSuccess = () => void queries.invalidateQueries();
  const seed = useMutation({ mutationFn: () => call<"seed_demo">("POST", "/v1/demo/seed", {}), onSuccess });
  const clear = useMutation({ mutationFn: () => call<"clear_demo">("POST", "/v1/demo/clear", {}), onSuccess });
  const error = seed.error ?? clear.error;
  const busy = seed.isPending || clear.isPending;
  const latest = (seed.submittedAt ?? 0) > (clear.submittedAt ?? 0) ? seed.data && `${pluralize(seed.data.jobs, "job")} submitted.` : clear.data && `${pluralize(clear.data.jobs, "job")} deleted.`;
  return (
    <div className="stack tight">
      <div className="row tight">
        <Button size="compact-sm" variant="default" loading={seed.isPending} disabled={busy} onClick={() => seed.mutate()}>
          Demo data
        </Button>
        <Button size="compact-sm" variant="subtle" color="gray" loading={clear.isPending} disabled={busy} onClick={() => clear.mutate()}>
          Clear demo data
        </Button>
        <span className="soft small" role="status">
          {latest}
        </span>
      </div>
      {error && <ErrorBox error={error} title="Failed" />}
    </div>
  );
}
