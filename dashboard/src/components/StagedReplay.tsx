/** Replays a group of dead letters in stages: one, 5 %, the rest. Shows the outcome after each stage. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQueries, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { call } from "../api/client";
import { jobQuery } from "../api/queries";
import type { GroupOut } from "../api/types.gen";
import { formatCount, pluralize } from "../lib/format";
import { countOutcomes, nextStage, type Stage, sampleSize } from "../lib/replayStages";
import { ErrorBox } from "./Feedback";

/** Jobs of a stage whose outcome is tracked. */
const MAX_TRACKED = 20;
const PAGE_SIZE = 200;

interface StageResult {
  stage: Stage;
  changed: number;
  tracked: string[];
}

export function StagedReplay({ group, tenant, onClose }: { group: GroupOut; tenant: string | undefined; onClose: () => void }) {
  const queries = useQueryClient();
  const [done, setDone] = useState<StageResult[]>([]);
  const [progress, setProgress] = useState(0);
  const stopped = useRef(false);
  const filter = { error: group.fingerprint, ...(tenant === undefined ? {} : { tenant }) };
  const last = done.at(-1);
  const next = last ? nextStage(last.stage, group.count) : "one";
  const run = useMutation({
    mutationFn: async (stage: Stage): Promise<StageResult> => {
      stopped.current = false;
      setProgress(0);
      if (stage === "one") return { stage, ...(await replay([group.newest.id], tenant)) };
      if (stage === "sample") return { stage, ...(await replay(await findDeadIds(filter, sampleSize(group.count)), tenant)) };
      let changed = 0;
      let cursor: string | undefined;
      const tracked = await findDeadIds(filter, MAX_TRACKED);
      do {
        const response = await call<"replay_dead">("POST", "/v1/dead/replay", { body: { filter, ...(cursor ? { cursor } : {}) } });
        changed += response.changed;
        setProgress(changed);
        cursor = response.next_cursor ?? undefined;
      } while (cursor && !stopped.current);
      return { stage, changed, tracked };
    },
    onSuccess: (result) => {
      setDone((before) => [...before, result]);
      void queries.invalidateQueries();
    },
  });
  const close = () => {
    stopped.current = true;
    onClose();
  };
  return (
    <Modal opened onClose={close} title="Replay in stages">
      <div className="stack">
        <p className="wrap-any">
          {group.more ? "More than " : ""}
          <strong>{pluralize(group.count, "dead letter")}</strong> with <strong className="bad">{group.error?.kind}</strong>. Each job restarts with attempt 1; its earlier attempts are kept.
        </p>
        <ol className="stages">
          {done.map((result) => (
            <li key={result.stage}>
              <strong>{STAGE_NAMES[result.stage]}</strong>: {pluralize(result.changed, "job")} replayed. <ReplayOutcomes ids={result.tracked} changed={result.changed} />
            </li>
          ))}
        </ol>
        {run.isPending && (
          <p role="status">
            {run.variables === "rest" ? `${formatCount(progress)} replayed so far …` : "Replaying …"}
          </p>
        )}
        {run.error && <ErrorBox error={run.error} title="Failed" />}
        {!next && !run.isPending && <p role="status">All dead letters of this group were replayed.</p>}
        <div className="row apart">
          <Button variant="default" onClick={close}>
            {done.length && next ? "Stop here" : "Close"}
          </Button>
          {next && (
            <Button loading={run.isPending} onClick={() => run.mutate(next)} data-autofocus>
              {next === "one" ? "Replay one" : next === "sample" ? `Replay ${formatCount(sampleSize(group.count))} more (5 %)` : "Replay the rest"}
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}

const STAGE_NAMES: Record<Stage, string> = { one: "One", sample: "Sample", rest: "Rest" };

async function replay(ids: string[], tenant: string | undefined): Promise<{ changed: number; tracked: string[] }> {
  if (!ids.length) return { changed: 0, tracked: [] };
  const response = await call<"replay_dead">("POST", "/v1/dead/replay", { body: { ids, ...(tenant === undefined ? {} : { filter: { tenant } }) } });
  return { changed: response.changed, tracked: ids.slice(0, MAX_TRACKED) };
}

/** Return up to `limit` ids of jobs that are still dead, newest first. */
async function findDeadIds(filter: { error: string; tenant?: string }, limit: number): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await call<"list_dead">("GET", "/v1/dead", { query: { ...filter, limit: Math.min(PAGE_SIZE, limit - ids.length), ...(cursor ? { cursor } : {}) } });
    ids.push(...(page.items ?? []).map((job) => job.id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor && ids.length < limit);
  return ids;
}

/** Outcomes of the tracked jobs, updated by the event stream and by polling. */
function ReplayOutcomes({ ids, changed }: { ids: readonly string[]; changed: number }) {
  const jobs = useQueries({ queries: ids.map((id) => ({ ...jobQuery(id), refetchInterval: 5_000 })) });
  if (!ids.length) return null;
  const outcomes = countOutcomes(jobs.map((job) => job.data?.status ?? "ready"));
  return (
    <span role="status">
      {changed > ids.length && `Of ${ids.length} tracked jobs: `}
      <span className="good">{formatCount(outcomes.succeeded)} succeeded</span>, <span className={outcomes.dead ? "bad" : "soft"}>{formatCount(outcomes.dead)} dead again</span>, <span className="soft">{formatCount(outcomes.unfinished)} unfinished</span>.
    </span>
  );
}
