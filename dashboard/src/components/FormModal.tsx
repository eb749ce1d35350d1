/** Modal form. It shows an error from the server next to the field that caused it. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Problem } from "../api/client";
import { ErrorBox } from "./Feedback";

export interface FormModalProps {
  title: string;
  verb: string;
  danger?: boolean;
  disabled?: boolean;
  onClose: () => void;
  /** Submit the form. The modal closes on success. */
  send: () => Promise<unknown>;
  /** Render the fields. `errorOf` returns the error of the field with this name. */
  children: (errorOf: (field: string) => string | undefined) => ReactNode;
  /** Names of the fields that show their own error. */
  fields?: readonly string[];
}

export function FormModal({ title, verb, danger, disabled, onClose, send, children, fields = [] }: FormModalProps) {
  const queries = useQueryClient();
  const action = useMutation({
    mutationFn: send,
    onSuccess: () => {
      void queries.invalidateQueries();
      onClose();
    },
  });
  const problem = action.error instanceof Problem ? action.error : null;
  const field = problem?.pointer?.split("/")[1];
  const shownInField = field !== undefined && fields.includes(field);
  return (
    <Modal opened onClose={onClose} title={title}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          action.mutate();
        }}
      >
        {children((name) => (name === field ? problem?.detail : undefined))}
        {action.error && !shownInField && <ErrorBox error={action.error} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={danger ? "red" : "tide"} loading={action.isPending} disabled={disabled ?? false}>
            {verb}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
