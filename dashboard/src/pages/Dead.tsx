/** Dead letters by what they failed with: run them again, a few first, or throw them away. */
import { Button } from "@mantine/core";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call } from "../api/client";
import { meQuery } from "../api/queries";
import type { GroupOut } from "../api/types.gen";
import { Answered, Card, Empty } from "../components/States";
import { Time } from "../components/Time";
import { compact, count } from "../lib/format";

const StagedReplay = lazy(() => import("../components/StagedReplay").then((module) => ({ default: module.StagedReplay })));
const ConfirmWithPreview = lazy(() => import("../components/ConfirmWithPreview").then((module) => ({ default: module.ConfirmWithPreview })));

export function Dead() {
  const queries = useQueryClient();
  const me = useQuery(meQuery).data;
  const admin = me?.scopes.includes("admin") ?? false;
  const mayAct = admin || (me?.scopes.includes("cancel") ?? false);
  const [asking, setAsking] = useState<{ what: "replay" | "delete"; group: GroupOut }>();
  const groups = useInfiniteQuery({
    queryKey: ["dead", "pages of groups"],
    queryFn: ({ pageParam, signal }) => call<"list_dead">("GET", "/v1/dead", { query: { group: "fingerprint", limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: 15_000,
  });
  const close = () => setAsking(undefined);
  return (
    <>
      <h1 className="hidden-text">Dead letters</h1>
      <Card title="Dead letters by error" aside={<Link to="/jobs" search={{ status: "dead" }}>one by one</Link>}>
        <Answered query={groups} lines={8}>
          {({ pages }) => {
            const found = pages.flatMap((page) => page.groups ?? []);
            return found.length ? (
              <ul className="groups" aria-label="Groups of dead letters">
                {found.map((group) => (
                  <Group key={`${group.tenant} ${group.fingerprint}`} group={group} admin={admin}>
                    {mayAct && (
                      <>
                        <Button size="compact-sm" onClick={() => setAsking({ what: "replay", group })}>
                          Replay …
                        </Button>
                        <Button size="compact-sm" variant="default" onClick={() => setAsking({ what: "delete", group })}>
                          Delete …
                        </Button>
                      </>
                    )}
                  </Group>
                ))}
              </ul>
            ) : (
              <Empty title="No dead letters">Nothing has run out of attempts. Jobs that do come here, together with those that failed alike.</Empty>
            );
          }}
        </Answered>
        {groups.hasNextPage && (
          <footer className="row foot">
            <Button size="compact-sm" variant="default" loading={groups.isFetchingNextPage} onClick={() => void groups.fetchNextPage()}>
              More
            </Button>
          </footer>
        )}
      </Card>
      <Suspense fallback={null}>
        {asking?.what === "replay" && <StagedReplay group={asking.group} tenant={admin ? asking.group.tenant : undefined} onClose={close} />}
        {asking?.what === "delete" && (
          <ConfirmWithPreview
            opened
            onClose={close}
            title="Delete this group"
            verb="Delete"
            danger
            previewKey={[asking.group.tenant, asking.group.fingerprint]}
            onDone={() => void queries.invalidateQueries()}
            run={({ dryRun, cursor }) =>
              call<"purge_dead">("DELETE", "/v1/dead", { query: { error: asking.group.fingerprint, ...(admin ? { tenant: asking.group.tenant } : {}), dry_run: dryRun, ...(cursor ? { cursor } : {}) } })
            }
          >
            <p className="small soft">These jobs and all they recorded are gone for good.</p>
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
      <div className="group-count num" title={group.more ? "so many were counted, there are more" : undefined}>
        {compact(group.count)}
        {group.more && "+"}
      </div>
      <div className="grow stack tight">
        <div className="wrap-any clamp">
          <strong className="bad">{group.error?.kind ?? "Without an error"}</strong> {group.error?.message}
        </div>
        <div className="small soft row">
          <span>
            newest: <Link to="/jobs/$id" params={{ id: newest.id }} className="wrap-any">{newest.type}</Link>
          </span>
          <span className="wrap-any">in {newest.queue}</span>
          {admin && <span className="wrap-any">of {group.tenant}</span>}
          <span>
            {group.count > 1 && (
              <>
                first <Time at={group.first_at} />, last{" "}
              </>
            )}
            <Time at={group.last_at} />
          </span>
          <Link to="/jobs" search={{ status: "dead", error: group.fingerprint, ...(admin ? { tenant: group.tenant } : {}) }}>
            {group.count === 1 ? "look at it" : `look at all ${count(group.count)}${group.more ? " and more" : ""}`}
          </Link>
        </div>
      </div>
      <div className="row tight">{children}</div>
    </li>
  );
}
