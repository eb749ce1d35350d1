/** A new job: from nothing, from the newest of its type, or from another to be changed. */
import { Button, NumberInput, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { call, Problem } from "../api/client";
import { jobQuery, jobsQuery, meQuery, statsQuery } from "../api/queries";
import type { JobOut, Json, SubmitJob } from "../api/types.gen";
import { Card, Empty, ErrorBox, Loading } from "../components/States";
import { parseExact, stringifyExact } from "../lib/json";
import { shortId } from "../lib/ids";

interface Draft {
  type: string;
  queue: string;
  tenant: string;
  payload: string;
  priority: number | string;
  max_attempts: number | string;
  delay: string;
  timeout: string;
  tags: string;
  key: string;
}

const BLANK: Draft = { type: "", queue: "default", tenant: "", payload: "{}", priority: 0, max_attempts: "", delay: "", timeout: "", tags: "", key: "" };

export function NewJob() {
  const { from } = useSearch({ strict: false }) as { from?: string };
  const source = useQuery({ ...jobQuery(from ?? ""), enabled: Boolean(from) });
  const scopes = useQuery(meQuery).data?.scopes;
  if (scopes && !scopes.includes("submit") && !scopes.includes("admin")) {
    return (
      <Empty title="This key may not submit jobs">
        Sign in with one that has the scope <code>submit</code>.
      </Empty>
    );
  }
  if (from && source.isPending) return <Loading lines={8} />;
  if (from && source.error) return <ErrorBox error={source.error} />;
  return <Form key={from ?? ""} from={from ? source.data : undefined} />;
}

function Form({ from }: { from: JobOut | undefined }) {
  const navigate = useNavigate();
  const me = useQuery(meQuery).data;
  const admin = me?.scopes.includes("admin") ?? false;
  const stats = useQuery(statsQuery()).data;
  const [draft, setDraft] = useState<Draft>(() => (from ? drafted(from) : BLANK));
  const [wrong, setWrong] = useState<{ pointer: string; text: string }>();
  const newest = useQuery({ ...jobsQuery({ type: draft.type, limit: 1 }), enabled: stats?.types.some((each) => each.name === draft.type) ?? false }).data?.items[0];
  const problems = useRef<HTMLDivElement>(null);
  const submit = useMutation({
    mutationFn: (body: SubmitJob) => call<"submit_job">("POST", "/v1/jobs", { body, tenant: admin && draft.tenant ? draft.tenant : undefined, idempotencyKey: draft.key || undefined }),
    onSuccess: (job) => void navigate({ to: "/jobs/$id", params: { id: job.id } }),
  });
  const refused = submit.error instanceof Problem ? submit.error : undefined;
  useEffect(() => {
    if (submit.error) problems.current?.focus();
  }, [submit.error]);
  const set = (field: keyof Draft) => (value: string | number) => {
    setDraft((before) => ({ ...before, [field]: value }));
    setWrong(undefined);
  };
  const typed = (field: keyof Draft) => (event: { currentTarget: { value: string } }) => set(field)(event.currentTarget.value);
  const errorOf = (field: string) => (wrong?.pointer === `/${field}` ? wrong.text : refused?.pointer?.startsWith(`/${field}`) ? refused.detail : undefined);
  const send = (event: FormEvent) => {
    event.preventDefault();
    let payload: Json;
    try {
      payload = parseExact(draft.payload.trim() || "null");
    } catch (error) {
      setWrong({ pointer: "/payload", text: `Not JSON: ${error instanceof Error ? error.message : ""}` });
      return;
    }
    submit.mutate({
      type: draft.type.trim(),
      queue: draft.queue.trim() || "default",
      payload,
      ...(draft.priority === "" ? {} : { priority: Number(draft.priority) }),
      ...(draft.max_attempts === "" ? {} : { max_attempts: Number(draft.max_attempts) }),
      ...(draft.delay.trim() ? { delay: draft.delay.trim() } : {}),
      ...(draft.timeout.trim() ? { timeout: draft.timeout.trim() } : {}),
      ...(from && from.cost !== 1 ? { cost: from.cost } : {}),
      ...(from?.concurrency_key ? { concurrency_key: from.concurrency_key } : {}),
      tags: draft.tags.split(/[,\s]+/).filter(Boolean),
    } as SubmitJob);
  };
  return (
    <>
      <h1>{from ? "Edit and replay" : "New job"}</h1>
      {from && (
        <p className="soft">
          A new job like <Link to="/jobs/$id" params={{ id: from.id }}>{shortId(from.id)}</Link>, which stays as it is.
        </p>
      )}
      <Card label="Job">
        <form className="pad stack" onSubmit={send}>
          <div className="fields">
            <TextInput label="Type" required value={draft.type} onChange={typed("type")} list="types" error={errorOf("type")} placeholder="mail.send" autoFocus={!from} />
            <TextInput label="Queue" value={draft.queue} onChange={typed("queue")} list="queues" error={errorOf("queue")} />
            {admin && <TextInput label="Tenant" value={draft.tenant} onChange={typed("tenant")} placeholder={me?.tenant ?? ""} error={errorOf("tenant")} />}
          </div>
          <datalist id="types">{stats?.types.map((each) => <option key={each.name} value={each.name} />)}</datalist>
          <datalist id="queues">{stats?.queues.map((each) => <option key={each.name} value={each.name} />)}</datalist>
          <Textarea
            label="Payload"
            description="JSON; whole numbers of any size are kept exactly."
            value={draft.payload}
            onChange={typed("payload")}
            error={errorOf("payload")}
            rows={12}
            spellCheck={false}
            classNames={{ input: "mono" }}
          />
          {newest && !from && (
            <div>
              <Button size="compact-sm" variant="default" onClick={() => setDraft({ ...drafted(newest), tenant: draft.tenant })}>
                Take the newest {draft.type} as a pattern
              </Button>
            </div>
          )}
          <div className="fields small-fields">
            <NumberInput label="Priority" description="Higher is sooner." value={draft.priority} onChange={set("priority")} min={-1000} max={1000} allowDecimal={false} error={errorOf("priority")} />
            <NumberInput label="Attempts" description="At the most." value={draft.max_attempts} onChange={set("max_attempts")} min={1} max={1000} allowDecimal={false} error={errorOf("max_attempts")} placeholder="the default" />
            <TextInput label="Delay" description="Such as 30s, 5m, 1h30m." value={draft.delay} onChange={typed("delay")} error={errorOf("delay")} placeholder="none" />
            <TextInput label="Timeout" description="Of one attempt." value={draft.timeout} onChange={typed("timeout")} error={errorOf("timeout")} placeholder="none" />
            <TextInput label="Tags" description="With spaces between." value={draft.tags} onChange={typed("tags")} error={errorOf("tags")} />
            <TextInput label="Idempotency key" description="The same key is the same job." value={draft.key} onChange={typed("key")} placeholder="none" />
          </div>
          <div ref={problems} tabIndex={-1}>
            {submit.error && <ErrorBox error={submit.error} title="Not submitted" />}
          </div>
          <div className="row">
            <Button type="submit" loading={submit.isPending} disabled={!draft.type.trim()}>
              Submit
            </Button>
          </div>
        </form>
      </Card>
    </>
  );
}

function drafted(job: JobOut): Draft {
  return {
    ...BLANK,
    type: job.type,
    queue: job.queue,
    tenant: job.tenant,
    payload: stringifyExact(job.payload as unknown as Json, 2),
    priority: job.priority,
    max_attempts: job.max_attempts,
    timeout: job.timeout === null ? "" : `${job.timeout}s`,
    tags: job.tags.join(" "),
  };
}
