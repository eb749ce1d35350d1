/** Asks before something is done to many, and says first to how many: the count comes from the server's own dry run. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { count, plural } from "../lib/format";
import { ErrorBox, Loading } from "./States";

/** One answer of an action in bulk, dry or not. */
export interface BulkAnswer {
  matched: number;
  changed: number;
  next_cursor: string | null;
}

export interface ConfirmProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What is done, as a verb: «Cancel». */
  verb: string;
  /** What it is done to: «job». */
  noun?: string;
  danger?: boolean;
  /** What else is worth knowing before one agrees. */
  children?: ReactNode;
  /** A key for the preview: another one asks anew. */
  previewKey: unknown;
  /** One request, dry or not, from this cursor on. */
  run: (options: { dryRun: boolean; cursor: string | undefined }) => Promise<BulkAnswer>;
  onDone?: (changed: number) => void;
}

/** A dry run counts this many pages at the most; what is beyond is «more than». */
const MOST_PAGES = 10;

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
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const answer = await run({ dryRun: true, cursor });
        matched += answer.matched;
        if (!answer.next_cursor) return { matched, more: false };
        cursor = answer.next_cursor;
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
        const answer = await run({ dryRun: false, cursor });
        changed += answer.changed;
        setDone(changed);
        cursor = answer.next_cursor ?? undefined;
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
  const found = preview.data;
  return (
    <Modal opened={opened} onClose={onClose} title={title}>
      <div className="stack">
        {preview.isPending && <Loading lines={2} label="Counting" />}
        {preview.error && <ErrorBox error={preview.error} retry={() => void preview.refetch()} />}
        {found && !action.isSuccess && (
          <p aria-live="polite">
            {found.matched === 0 ? (
              <>Nothing matches that could be changed now.</>
            ) : (
              <>
                This reaches <strong>{found.more ? `more than ${count(found.matched)} ${noun}s` : plural(found.matched, noun)}</strong>.
              </>
            )}
          </p>
        )}
        {children}
        {action.isPending && <p role="status">{count(done)} done so far …</p>}
        {action.isSuccess && (
          <p role="status">
            Done: <strong>{plural(action.data, noun)}</strong> changed.
          </p>
        )}
        {action.error && <ErrorBox error={action.error} title={done ? `Stopped after ${count(done)}` : "Not done"} />}
        <div className="row apart">
          <Button variant="default" onClick={onClose}>
            {action.isSuccess ? "Close" : action.isPending ? "Stop here" : "Leave it"}
          </Button>
          {!action.isSuccess && (
            <Button color={danger ? "red" : "tide"} disabled={!found || found.matched === 0} loading={action.isPending} onClick={() => action.mutate()} data-autofocus>
              {verb} {found && found.matched > 0 ? (found.more ? "them all" : count(found.matched)) : ""}
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}
