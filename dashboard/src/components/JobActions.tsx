/** What may be done with a job now: the server says what, in `actions`. */
import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../api/client";
import type { JobDetail } from "../api/types.gen";
import { ErrorBox } from "./States";

const RUN: Partial<Record<JobDetail["status"], string>> = { dead: "Replay", cancelled: "Run after all", scheduled: "Run now", retrying: "Retry now" };

export function JobActions({ job }: { job: JobDetail }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"cancel" | "delete">();
  const [reason, setReason] = useState("");
  const settled = (changed: JobDetail | null) => {
    if (changed) queries.setQueryData(["job", job.id], changed);
    setAsking(undefined);
    void queries.invalidateQueries();
  };
  const path = { id: job.id };
  const retry = useMutation({ mutationFn: () => call<"retry_job">("POST", "/v1/jobs/{id}/retry", { path }), onSuccess: settled });
  const cancel = useMutation({ mutationFn: () => call<"cancel_job">("POST", "/v1/jobs/{id}/cancel", { path, body: { reason } }), onSuccess: settled });
  const remove = useMutation({
    mutationFn: () => call<"delete_job">("DELETE", "/v1/jobs/{id}", { path }),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["job", job.id] });
      void navigate({ to: "/jobs" });
    },
  });
  const may = (action: JobDetail["actions"][number]) => job.actions.includes(action);
  return (
    <>
      {may("retry") && (
        <Button size="xs" loading={retry.isPending} onClick={() => retry.mutate()}>
          {RUN[job.status] ?? "Run now"}
        </Button>
      )}
      {may("cancel") && (
        <Button size="xs" variant="default" onClick={() => setAsking("cancel")}>
          Cancel …
        </Button>
      )}
      {may("delete") && (
        <Button size="xs" variant="default" onClick={() => setAsking("delete")}>
          Delete …
        </Button>
      )}
      {retry.error && <ErrorBox error={retry.error} />}
      <Modal opened={asking === "cancel"} onClose={() => setAsking(undefined)} title="Cancel this job">
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            cancel.mutate();
          }}
        >
          <p>{job.status === "running" ? "It runs: its handler is told to stop, and what it did so far stays done." : "It will not run."} It can be run again later.</p>
          <TextInput label="Reason" description="Shown with the job; may be left empty." value={reason} maxLength={500} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />
          {cancel.error && <ErrorBox error={cancel.error} />}
          <div className="row apart">
            <Button variant="default" onClick={() => setAsking(undefined)}>
              Leave it
            </Button>
            <Button type="submit" color="red" loading={cancel.isPending}>
              Cancel the job
            </Button>
          </div>
        </form>
      </Modal>
      <Modal opened={asking === "delete"} onClose={() => setAsking(undefined)} title="Delete this job">
        <div className="stack">
          <p>The job and all it recorded are gone for good. Its idempotency key stays taken for its term.</p>
          {remove.error && <ErrorBox error={remove.error} />}
          <div className="row apart">
            <Button variant="default" onClick={() => setAsking(undefined)} data-autofocus>
              Leave it
            </Button>
            <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
              Delete it
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
