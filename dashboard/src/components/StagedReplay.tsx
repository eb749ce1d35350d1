/** Runs dead letters again in stages: one, a twentieth, all that is left; and shows after each what became of them. */
import { Button, Modal } from "@mantine/core";
import { useMutation, useQueries, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { call } from "../api/client";
import { jobQuery } from "../api/queries";
import type { GroupOut } from "../api/types.gen";
import { count, plural } from "../lib/format";
import { fateOf, following, type Stage, someOf } from "../lib/stages";
import { ErrorBox } from "./States";

/** As many of a stage are followed one by one. */
const WATCHED = 20;
const PAGE = 200;

interface Done {
  stage: Stage;
  changed: number;
  watched: string[];
}

export function StagedReplay({ group, tenant, onClose }: { group: GroupOut; tenant: string | undefined; onClose: () => void }) {
  const queries = useQueryClient();
  const [done, setDone] = useState<Done[]>([]);
  const [progress, setProgress] = useState(0);
  const stopped = useRef(false);
  const which = { error: group.fingerprint, ...(tenant === undefined ? {} : { tenant }) };
  const last = done.at(-1);
  const next = last ? following(last.stage, group.count) : "one";
  const run = useMutation({
    mutationFn: async (stage: Stage): Promise<Done> => {
      stopped.current = false;
      setProgress(0);
      if (stage === "one") return { stage, ...(await replay([group.newest.id], tenant)) };
      if (stage === "some") return { stage, ...(await replay(await take(which, someOf(group.count)), tenant)) };
      let changed = 0;
      let cursor: string | undefined;
      const watched = await take(which, WATCHED);
      do {
        const answer = await call<"replay_dead">("POST", "/v1/dead/replay", { body: { filter: which, ...(cursor ? { cursor } : {}) } });
        changed += answer.changed;
        setProgress(changed);
        cursor = answer.next_cursor ?? undefined;
      } while (cursor && !stopped.current);
      return { stage, changed, watched };
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
          <strong>{plural(group.count, "dead letter")}</strong> with <strong className="bad">{group.error?.kind}</strong>. Each runs again from its first attempt; what it did before is kept with it.
        </p>
        <ol className="stages">
          {done.map((each) => (
            <li key={each.stage}>
              <strong>{NAMES[each.stage]}</strong>: {plural(each.changed, "job")} sent back. <Fates ids={each.watched} changed={each.changed} />
            </li>
          ))}
        </ol>
        {run.isPending && (
          <p role="status">
            {run.variables === "rest" ? `${count(progress)} sent back so far …` : "Sending back …"}
          </p>
        )}
        {run.error && <ErrorBox error={run.error} title="Not done" />}
        {!next && !run.isPending && <p role="status">All of them were sent back.</p>}
        <div className="row apart">
          <Button variant="default" onClick={close}>
            {done.length ? (next ? "Stop here" : "Close") : "Leave it"}
          </Button>
          {next && (
            <Button loading={run.isPending} onClick={() => run.mutate(next)} data-autofocus>
              {next === "one" ? "Replay one" : next === "some" ? `Replay ${count(someOf(group.count))} more (5 %)` : "Replay all that are left"}
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}

const NAMES: Record<Stage, string> = { one: "One", some: "Some", rest: "All that were left" };

async function replay(ids: string[], tenant: string | undefined): Promise<{ changed: number; watched: string[] }> {
  if (!ids.length) return { changed: 0, watched: [] };
  const answer = await call<"replay_dead">("POST", "/v1/dead/replay", { body: { ids, ...(tenant === undefined ? {} : { filter: { tenant } }) } });
  return { changed: answer.changed, watched: ids.slice(0, WATCHED) };
}

/** The ids of so many that are still dead, newest first. */
async function take(which: { error: string; tenant?: string }, most: number): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await call<"list_dead">("GET", "/v1/dead", { query: { ...which, limit: Math.min(PAGE, most - ids.length), ...(cursor ? { cursor } : {}) } });
    ids.push(...(page.items ?? []).map((job) => job.id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor && ids.length < most);
  return ids;
}

/** What became of those that are followed. The stream tells of each; now and then they are asked for. */
function Fates({ ids, changed }: { ids: readonly string[]; changed: number }) {
  const jobs = useQueries({ queries: ids.map((id) => ({ ...jobQuery(id), refetchInterval: 5_000 })) });
  if (!ids.length) return null;
  const fate = fateOf(jobs.map((job) => job.data?.status ?? "ready"));
  return (
    <span role="status">
      {changed > ids.length && `Of ${ids.length} that are followed: `}
      <span className="good">{count(fate.succeeded)} succeeded</span>, <span className={fate.dead ? "bad" : "soft"}>{count(fate.dead)} dead again</span>, <span className="soft">{count(fate.waiting)} not yet decided</span>.
    </span>
  );
}
