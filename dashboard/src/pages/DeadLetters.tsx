/** Dead letters grouped by error, with staged replay and deletion. */
import { Button } from "@mantine/core";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { meQuery } from "../api/queries";
import type { GroupOut } from "../api/types.gen";
import { QueryView, Card, Empty } from "../components/Feedback";
import { Time } from "../components/Time";
import { formatCompact, formatCount } from "../lib/format";
import { isAdmin } from "../lib/scopes";

const StagedReplay = lazy(() => import("../components/StagedReplay").then((module) => ({ default: module.StagedReplay })));
const ConfirmWithPreview = lazy(() => import("../components/ConfirmWithPreview").then((module) => ({ default: module.ConfirmWithPreview })));

export function DeadLetters() {
  const queries = useQueryClient();
  const me = useQuery(meQuery).data;
  const admin = isAdmin(me);
  const canAct = admin || (me?.scopes.includes("cancel") ?? false);
  const [dialog, setDialog] = useState<{ action: "replay" | "delete"; group: GroupOut }>();
  const groups = useInfiniteQuery({
    queryKey: ["dead", "group pages"],
    queryFn: ({ pageParam, signal }) => call<"list_dead">("GET", "/v1/dead", { query: { group: "fingerprint", limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: 15_000,
  });
  const close = () => setDialog(undefined);
  return (
    <>
      <h1 className="hidden-text">Dead letters</h1>
      <Card title="Dead letters by error" aside={<Link to="/jobs" search={{ status: "dead" }}>Show as list</Link>}>
        <QueryView query={groups} lines={8}>
          {({ pages }) => {
            const all = pages.flatMap((page) => page.groups ?? []);
            return all.length ? (
              <ul className="groups" aria-label="Groups of dead letters">
                {all.map((group) => (
                  <Group key={`${group.tenant} ${group.fingerprint}`} group={group} admin={admin}>
                    {canAct && (
                      <>
                        <Button size="compact-sm" onClick={() => setDialog({ action: "replay", group })}>
                          Replay …
                        </Button>
                        <Button size="compact-sm" variant="default" onClick={() => setDialog({ action: "delete", group })}>
                          Delete …
                        </Button>
                      </>
                    )}
                  </Group>
                ))}
              </ul>
            ) : (
              <Empty title="No dead letters">No job has failed permanently. Dead jobs appear here, grouped by error.</Empty>
            );
          }}
        </QueryView>
        {groups.hasNextPage && (
          <footer className="row foot">
            <Button size="compact-sm" variant="default" loading={groups.isFetchingNextPage} onClick={() => void groups.fetchNextPage()}>
              Load more
            </Button>
          </footer>
        )}
      </Card>
      <Suspense fallback={null}>
        {dialog?.action === "replay" && <StagedReplay group={dialog.group} tenant={admin ? dialog.group.tenant : undefined} onClose={close} />}
        {dialog?.action === "delete" && (
          <ConfirmWithPreview
            opened
            onClose={close}
            title="Delete this group"
            verb="Delete"
            danger
            previewKey={[dialog.group.tenant, dialog.group.fingerprint]}
            onDone={() => void queries.invalidateQueries()}
            run={({ dryRun, cursor }) =>
              call<"purge_dead">("DELETE", "/v1/dead", { query: { error: dialog.group.fingerprint, ...(admin ? { tenant: dialog.group.tenant } : {}), dry_run: dryRun, ...(cursor ? { cursor } : {}) } })
            }
          >
            <p className="small soft">These jobs and everything recorded about them will be deleted permanently.</p>
          </ConfirmWithPreview>
        )}
      </Suspense>
    </>
  );
}

function Group({ group, admin, children }: { group: GroupOut; admin: boolean; children: React.ReactNode }) {
  const { newest } = group;
  return (
    <li data-group={group.fingerprint}>
      <div className="group-count num" title={group.more ? "The group has more jobs than were counted" : undefined}>
        {formatCompact(group.count)}
        {group.more && "+"}
      </div>
      <div className="grow stack tight">
        <div className="wrap-any clamp">
          <strong className="bad">{group.error?.kind ?? "No error recorded"}</strong> {group.error?.message}
        </div>
        <div className="small soft row">
          <span>
            newest: <Link to="/jobs/$id" params={{ id: newest.id }} className="wrap-any">{newest.type}</Link>
          </span>
          <span className="wrap-any">queue {newest.queue}</span>
          {admin && <span className="wrap-any">tenant {group.tenant}</span>}
          <span>
            {group.count > 1 && (
              <>
                first <Time at={group.first_at} />, last{" "}
              </>
            )}
            <Time at={group.last_at} />
          </span>
          <Link to="/jobs" search={{ status: "dead", error: group.fingerprint, ...(admin ? { tenant: group.tenant } : {}) }}>
            {group.count === 1 ? "Show job" : `Show all ${formatCount(group.count)}${group.more ? "+" : ""}`}
          </Link>
        </div>
      </div>
      <div className="row tight">{children}</div>
    </li>
  );
}
