/** Confirmation of a bulk action. It first shows how many jobs are affected, counted by a dry run on the server. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { formatCount, pluralize } from "../lib/format";
import { ErrorBox, Loading } from "./Feedback";

/** Response of one page of a bulk action or of its dry run. */
export interface BulkResponse {
  matched: number;
  changed: number;
  next_cursor: string | null;
}

export interface ConfirmProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** Label of the action, such as "Cancel". */
  verb: string;
  /** Name of the affected things, such as "job". */
  noun?: string;
  danger?: boolean;
  /** Explanation shown before the confirmation. */
  children?: ReactNode;
  /** Identity of the preview: a new value counts again. */
  previewKey: unknown;
  /** Send one request, starting at the cursor. */
  run: (options: { dryRun: boolean; cursor: string | undefined }) => Promise<BulkResponse>;
  onDone?: (changed: number) => void;
}

/** Pages counted by the dry run. Beyond that, the count is shown as "more than". */
const MAX_PAGES = 10;

export function ConfirmWithPreview(props: ConfirmProps) {
  const { opened, onClose, title, verb, noun = "job", danger, children, previewKey, run, onDone } = props;
  const [done, setDone] = useState(0);
  const stopped = useRef(false);
  const preview = useQuery({
    queryKey: ["preview", title, previewKey],
    enabled: opened,
    gcTime: 0,
    staleTime: 0,
    refetchOnWindowFocus: false,
    queryFn: async () => {
      let matched = 0;
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const response = await run({ dryRun: true, cursor });
        matched += response.matched;
        if (!response.next_cursor) return { matched, more: false };
        cursor = response.next_cursor;
      }
      return { matched, more: true };
    },
  });
  const action = useMutation({
    mutationFn: async () => {
      stopped.current = false;
      let changed = 0;
      let cursor: string | undefined;
      do {
        const response = await run({ dryRun: false, cursor });
        changed += response.changed;
        setDone(changed);
        cursor = response.next_cursor ?? undefined;
      } while (cursor && !stopped.current);
      return changed;
    },
    onSuccess: (changed) => onDone?.(changed),
  });
  const { reset } = action;
  useEffect(() => {
    if (opened) {
      setDone(0);
      reset();
    } else stopped.current = true;
  }, [opened, reset]);
  const counted = preview.data;
  return (
    <Modal opened={opened} onClose={onClose} title={title}>
      <div className="stack">
        {preview.isPending && <Loading lines={2} label="Counting" />}
        {preview.error && <ErrorBox error={preview.error} retry={() => void preview.refetch()} />}
        {counted && !action.isSuccess && (
          <p aria-live="polite">
            {counted.matched === 0 ? (
              <>No matching job can be changed now.</>
            ) : (
              <>
                This affects <strong>{counted.more ? `more than ${formatCount(counted.matched)} ${noun}s` : pluralize(counted.matched, noun)}</strong>.
              </>
            )}
          </p>
        )}
        {children}
        {action.isPending && <p role="status">{formatCount(done)} done so far …</p>}
        {action.isSuccess && (
          <p role="status">
            Done: <strong>{pluralize(action.data, noun)}</strong> changed.
          </p>
        )}
        {action.error && <ErrorBox error={action.error} title={done ? `Stopped after ${formatCount(done)}` : "Failed"} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            {action.isPending ? "Stop" : "Close"}
          </Button>
          {!action.isSuccess && (
            <Button color={danger ? "red" : "tide"} disabled={!counted || counted.matched === 0} loading={action.isPending} onClick={() => action.mutate()} data-autofocus>
              {verb} {counted && counted.matched > 0 ? (counted.more ? "all" : formatCount(counted.matched)) : ""}
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}
