/** A short form in front of the page: it is sent once, and says next to the field what is wrong with it. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Problem } from "../api/client";
import { ErrorBox } from "./States";

export interface FormModalProps {
  title: string;
  verb: string;
  danger?: boolean;
  disabled?: boolean;
  onClose: () => void;
  /** Does it; the form closes when it is done. */
  send: () => Promise<unknown>;
  /** The fields, given what the server said about the one with this name. */
  children: (problemOf: (field: string) => string | undefined) => ReactNode;
  /** Names of the fields that show their own problem. */
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
  const at = problem?.pointer?.split("/")[1];
  const shown = at !== undefined && fields.includes(at);
  return (
    <Modal opened onClose={onClose} title={title}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          action.mutate();
        }}
      >
        {children((field) => (field === at ? problem?.detail : undefined))}
        {action.error && !shown && <ErrorBox error={action.error} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            Leave it
          </Button>
          <Button type="submit" color={danger ? "red" : "tide"} loading={action.isPending} disabled={disabled ?? false}>
            {verb}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
