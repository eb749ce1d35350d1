/** Buttons for the actions that the server lists in the `actions` of the job. */
import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../api/client";
import type { JobDetail } from "../api/types.gen";
import { ErrorBox } from "./Feedback";

const RETRY_LABELS: Partial<Record<JobDetail["status"], string>> = { dead: "Replay", cancelled: "Retry", scheduled: "Run now", retrying: "Retry now" };

export function JobActions({ job }: { job: JobDetail }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [confirming, setConfirming] = useState<"cancel" | "delete">();
  const [reason, setReason] = useState("");
  const onChanged = (changed: JobDetail | null) => {
    if (changed) queries.setQueryData(["job", job.id], changed);
    setConfirming(undefined);
    void queries.invalidateQueries();
  };
  const path = { id: job.id };
  const retry = useMutation({ mutationFn: () => call<"retry_job">("POST", "/v1/jobs/{id}/retry", { path }), onSuccess: onChanged });
  const cancel = useMutation({ mutationFn: () => call<"cancel_job">("POST", "/v1/jobs/{id}/cancel", { path, body: { reason } }), onSuccess: onChanged });
  const remove = useMutation({
    mutationFn: () => call<"delete_job">("DELETE", "/v1/jobs/{id}", { path }),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["job", job.id] });
      void navigate({ to: "/jobs" });
    },
  });
  const isAllowed = (action: JobDetail["actions"][number]) => job.actions.includes(action);
  return (
    <>
      {isAllowed("retry") && (
        <Button size="xs" loading={retry.isPending} onClick={() => retry.mutate()}>
          {RETRY_LABELS[job.status] ?? "Run now"}
        </Button>
      )}
      {isAllowed("cancel") && (
        <Button size="xs" variant="default" onClick={() => setConfirming("cancel")}>
          Cancel …
        </Button>
      )}
      {isAllowed("delete") && (
        <Button size="xs" variant="default" onClick={() => setConfirming("delete")}>
          Delete …
        </Button>
      )}
      {retry.error && <ErrorBox error={retry.error} />}
      <Modal opened={confirming === "cancel"} onClose={() => setConfirming(undefined)} title="Cancel this job">
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            cancel.mutate();
          }}
        >
          <p>{job.status === "running" ? "The job is running: its handler is asked to stop, and changes it already made are kept." : "The job will not run."} You can retry it later.</p>
          <TextInput label="Reason" description="Optional. Shown with the job." value={reason} maxLength={500} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />
          {cancel.error && <ErrorBox error={cancel.error} />}
          <div className="row apart">
            <Button variant="default" onClick={() => setConfirming(undefined)}>
              Keep job
            </Button>
            <Button type="submit" color="red" loading={cancel.isPending}>
              Cancel job
            </Button>
          </div>
        </form>
      </Modal>
      <Modal opened={confirming === "delete"} onClose={() => setConfirming(undefined)} title="Delete this job">
        <div className="stack">
          <p>The job and everything recorded about it will be deleted permanently. Its idempotency key stays reserved until it expires.</p>
          {remove.error && <ErrorBox error={remove.error} />}
          <div className="row apart">
            <Button variant="default" onClick={() => setConfirming(undefined)} data-autofocus>
              Keep job
            </Button>
            <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
              Delete job
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
