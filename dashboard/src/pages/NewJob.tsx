/** A new job: by the form of its type, as JSON, from the newest of its type, or from another to be changed. */
import { Button, NumberInput, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { call, Problem } from "../api/client";
import { jobTypesQuery, typeOf } from "../api/operate";
import { jobQuery, jobsQuery, meQuery, statsQuery } from "../api/queries";
import type { JobOut, Json, SubmitJob, TypeOut } from "../api/types.gen";
import { Choice } from "../components/Choice";
import { PayloadForm } from "../components/PayloadForm";
import { Card, Empty, ErrorBox, Loading } from "../components/States";
import { Time } from "../components/Time";
import { plural } from "../lib/format";
import { shortId } from "../lib/ids";
import { parseExact, stringifyExact } from "../lib/json";
import { type Field, fieldsOf, type Filled, fill, gather } from "../lib/schema";

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

const BLANK: Draft = { type: "", queue: "", tenant: "", payload: "{}", priority: "", max_attempts: "", delay: "", timeout: "", tags: "", key: "" };

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
  const types = useQuery(jobTypesQuery).data?.items ?? [];
  const told = typeOf(types, draft.type.trim(), draft.tenant || (me?.tenant ?? ""));
  const fields = useMemo(() => fieldsOf(told?.schema), [told?.schema]);
  const [asJson, setAsJson] = useState(false);
  const [filled, setFilled] = useState<{ of: string; what: Filled | { problem: string } }>();
  const [problems, setProblems] = useState<Record<string, string>>({});
  // The text is what counts until a field is touched: then the fields are, until the text is shown again.
  const inFields: Filled | { problem: string } | null = fields && !asJson ? (filled?.of === draft.type ? filled.what : filledFrom(fields, draft.payload)) : null;
  const form = fields && inFields && !("problem" in inFields) ? { fields, inFields } : null;
  const show = (how: "form" | "JSON") => {
    if (how === "JSON" && form) {
      const found = gather(form.fields, form.inFields);
      if ("problems" in found && Object.keys(form.inFields.texts).length) {
        setProblems(found.problems);
        return;
      }
      setDraft((before) => ({ ...before, payload: stringifyExact("payload" in found ? found.payload : {}, 2) }));
    }
    setFilled(undefined);
    setProblems({});
    setWrong(undefined);
    setAsJson(how === "JSON");
  };
  const newest = useQuery({ ...jobsQuery({ type: draft.type, limit: 1 }), enabled: stats?.types.some((each) => each.name === draft.type) ?? false }).data?.items[0];
  const trouble = useRef<HTMLDivElement>(null);
  const submit = useMutation({
    mutationFn: (body: SubmitJob) => call<"submit_job">("POST", "/v1/jobs", { body, tenant: admin && draft.tenant ? draft.tenant : undefined, idempotencyKey: draft.key || undefined }),
    onSuccess: (job) => void navigate({ to: "/jobs/$id", params: { id: job.id } }),
  });
  const refused = submit.error instanceof Problem ? submit.error : undefined;
  useEffect(() => {
    if (submit.error) trouble.current?.focus();
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
    if (form) {
      const found = gather(form.fields, form.inFields);
      setProblems("problems" in found ? found.problems : {});
      if ("problems" in found) return;
      payload = found.payload;
    } else {
      try {
        payload = parseExact(draft.payload.trim() || "null");
      } catch (error) {
        setWrong({ pointer: "/payload", text: `Not JSON: ${error instanceof Error ? error.message : ""}` });
        return;
      }
    }
    submit.mutate({
      type: draft.type.trim(),
      queue: draft.queue.trim() || told?.queue || "default",
      payload,
      ...number("priority", draft.priority, told?.priority),
      ...number("max_attempts", draft.max_attempts, told?.max_attempts),
      ...(draft.delay.trim() ? { delay: draft.delay.trim() } : {}),
      ...(draft.timeout.trim() ? { timeout: draft.timeout.trim() } : told?.timeout ? { timeout: told.timeout } : {}),
      ...number("cost", "", from ? from.cost : told?.cost),
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
            <TextInput label="Queue" value={draft.queue} onChange={typed("queue")} placeholder={told?.queue ?? "default"} list="queues" error={errorOf("queue")} />
            {admin && <TextInput label="Tenant" value={draft.tenant} onChange={typed("tenant")} placeholder={me?.tenant ?? ""} error={errorOf("tenant")} />}
          </div>
          <datalist id="types">
            {[...new Set([...types.map((each) => each.type), ...(stats?.types.map((each) => each.name) ?? [])])].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <datalist id="queues">{stats?.queues.map((each) => <option key={each.name} value={each.name} />)}</datalist>
          <About told={told} />
          {fields && <Choice label="Payload as" value={form ? "form" : "JSON"} options={["form", "JSON"]} onChange={show} />}
          {form && (
            <PayloadForm
              fields={form.fields}
              texts={form.inFields.texts}
              problems={problems}
              onChange={(name, text) => {
                setFilled({ of: draft.type, what: { ...form.inFields, texts: { ...form.inFields.texts, [name]: text } } });
                setProblems(({ [name]: _, ...rest }) => rest);
              }}
            />
          )}
          {form && Object.keys(form.inFields.kept).length > 0 && (
            <p className="small soft wrap-any">
              Sent as they are, since the form has no fields for them: <code>{Object.keys(form.inFields.kept).join(", ")}</code>.
            </p>
          )}
          {inFields && "problem" in inFields && <p className="small warn">{inFields.problem} It is shown as JSON.</p>}
          {!form && (
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
          )}
          {newest && !from && (
            <div>
              <Button size="compact-sm" variant="default" onClick={() => {
                setDraft({ ...drafted(newest), tenant: draft.tenant });
                setFilled(undefined);
                setProblems({});
              }}>
                Take the newest {draft.type} as a pattern
              </Button>
            </div>
          )}
          <div className="fields small-fields">
            <NumberInput label="Priority" description="Higher is sooner." value={draft.priority} onChange={set("priority")} min={-1000} max={1000} allowDecimal={false} error={errorOf("priority")} placeholder={String(told?.priority ?? 0)} />
            <NumberInput label="Attempts" description="At the most." value={draft.max_attempts} onChange={set("max_attempts")} min={1} max={1000} allowDecimal={false} error={errorOf("max_attempts")} placeholder={told?.max_attempts ? String(told.max_attempts) : "the default"} />
            <TextInput label="Delay" description="Such as 30s, 5m, 1h30m." value={draft.delay} onChange={typed("delay")} error={errorOf("delay")} placeholder="none" />
            <TextInput label="Timeout" description="Of one attempt." value={draft.timeout} onChange={typed("timeout")} error={errorOf("timeout")} placeholder={told?.timeout ? `${told.timeout}s` : "none"} />
            <TextInput label="Tags" description="With spaces between." value={draft.tags} onChange={typed("tags")} error={errorOf("tags")} />
            <TextInput label="Idempotency key" description="Same key, same job." value={draft.key} onChange={typed("key")} placeholder="none" />
          </div>
          <div ref={trouble} tabIndex={-1}>
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

/** A number as it was written, or as its type would have it. */
function number(name: string, written: number | string, otherwise: number | null | undefined): Record<string, number> {
  if (written !== "") return { [name]: Number(written) };
  return otherwise === null || otherwise === undefined ? {} : { [name]: otherwise };
}

/** The payload in the fields of its type, as far as it is JSON. */
function filledFrom(fields: readonly Field[], text: string): Filled | { problem: string } {
  try {
    return fill(fields, parseExact(text.trim() || "{}"));
  } catch {
    return { problem: "The payload is no JSON." };
  }
}

/** What is known of a type: what it is for, and whether anybody handles it. */
function About({ told }: { told: TypeOut | undefined }) {
  if (!told) return null;
  const described = told.schema?.description;
  return (
    <p className="small soft wrap-any">
      {typeof described === "string" && <>{described.replace(/\.?$/, ".")} </>}
      {told.workers ? (
        `Handled by ${plural(told.workers, "worker")}.`
      ) : (
        <span className="warn">
          No worker handles it now; one did <Time at={told.last_seen} />.
        </span>
      )}
    </p>
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
