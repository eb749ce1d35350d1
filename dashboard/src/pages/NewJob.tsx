/** New job: from scratch, from the newest job of its type, or as an edited copy of another job. */
import { Button, NumberInput, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { call, Problem } from "../api/client";
import { findType, handlerTypesQuery, jobQuery, jobsQuery, meQuery, statsQuery } from "../api/queries";
import type { JobOut, Json, SubmitJob, TypeOut } from "../api/types.gen";
import { ToggleGroup } from "../components/ToggleGroup";
import { PayloadForm } from "../components/PayloadForm";
import { Card, Empty, ErrorBox, Loading } from "../components/Feedback";
import { Time } from "../components/Time";
import { pluralize } from "../lib/format";
import { shortId } from "../lib/ids";
import { parseExact, stringifyExact } from "../lib/json";
import { type Field, fieldsOf, type FormState, fillFields, readFields } from "../lib/payloadFields";
import { isAdmin } from "../lib/scopes";

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
      <Empty title="This API key cannot submit jobs">
        Sign in with a key that has the scope <code>submit</code>.
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
  const admin = isAdmin(me);
  const stats = useQuery(statsQuery()).data;
  const [draft, setDraft] = useState<Draft>(() => (from ? draftFrom(from) : BLANK));
  const [inputError, setInputError] = useState<{ pointer: string; text: string }>();
  const types = useQuery(handlerTypesQuery).data?.items ?? [];
  const typeInfo = findType(types, draft.type.trim(), draft.tenant || (me?.tenant ?? ""));
  const fields = useMemo(() => fieldsOf(typeInfo?.schema), [typeInfo?.schema]);
  const [asJson, setAsJson] = useState(false);
  const [edited, setEdited] = useState<{ type: string; form: FormState | { problem: string } }>();
  const [problems, setProblems] = useState<Record<string, string>>({});
  // The JSON text is authoritative until a field is edited; then the fields are, until the JSON is shown again.
  const formState: FormState | { problem: string } | null = fields && !asJson ? (edited?.type === draft.type ? edited.form : formFromText(fields, draft.payload)) : null;
  const form = fields && formState && !("problem" in formState) ? { fields, formState } : null;
  const switchTo = (view: "form" | "JSON") => {
    if (view === "JSON" && form) {
      const result = readFields(form.fields, form.formState);
      if ("problems" in result && Object.keys(form.formState.texts).length) {
        setProblems(result.problems);
        return;
      }
      setDraft((before) => ({ ...before, payload: stringifyExact("payload" in result ? result.payload : {}, 2) }));
    }
    setEdited(undefined);
    setProblems({});
    setInputError(undefined);
    setAsJson(view === "JSON");
  };
  const newest = useQuery({ ...jobsQuery({ type: draft.type, limit: 1 }), enabled: stats?.types.some((type) => type.name === draft.type) ?? false }).data?.items[0];
  const errorArea = useRef<HTMLDivElement>(null);
  const submit = useMutation({
    mutationFn: (body: SubmitJob) => call<"submit_job">("POST", "/v1/jobs", { body, tenant: admin && draft.tenant ? draft.tenant : undefined, idempotencyKey: draft.key || undefined }),
    onSuccess: (job) => void navigate({ to: "/jobs/$id", params: { id: job.id } }),
  });
  const problem = submit.error instanceof Problem ? submit.error : undefined;
  useEffect(() => {
    if (submit.error) errorArea.current?.focus();
  }, [submit.error]);
  const set = (field: keyof Draft) => (value: string | number) => {
    setDraft((before) => ({ ...before, [field]: value }));
    setInputError(undefined);
  };
  const onType = (field: keyof Draft) => (event: { currentTarget: { value: string } }) => set(field)(event.currentTarget.value);
  const errorOf = (field: string) => (inputError?.pointer === `/${field}` ? inputError.text : problem?.pointer?.startsWith(`/${field}`) ? problem.detail : undefined);
  const send = (event: FormEvent) => {
    event.preventDefault();
    let payload: Json;
    if (form) {
      const result = readFields(form.fields, form.formState);
      setProblems("problems" in result ? result.problems : {});
      if ("problems" in result) return;
      payload = result.payload;
    } else {
      try {
        payload = parseExact(draft.payload.trim() || "null");
      } catch (error) {
        setInputError({ pointer: "/payload", text: `Invalid JSON: ${error instanceof Error ? error.message : ""}` });
        return;
      }
    }
    submit.mutate({
      type: draft.type.trim(),
      queue: draft.queue.trim() || typeInfo?.queue || "default",
      payload,
      ...numberField("priority", draft.priority, typeInfo?.priority),
      ...numberField("max_attempts", draft.max_attempts, typeInfo?.max_attempts),
      ...(draft.delay.trim() ? { delay: draft.delay.trim() } : {}),
      ...(draft.timeout.trim() ? { timeout: draft.timeout.trim() } : typeInfo?.timeout ? { timeout: typeInfo.timeout } : {}),
      ...numberField("cost", "", from ? from.cost : typeInfo?.cost),
      ...(from?.concurrency_key ? { concurrency_key: from.concurrency_key } : {}),
      tags: draft.tags.split(/[,\s]+/).filter(Boolean),
    } as SubmitJob);
  };
  return (
    <>
      <h1>{from ? "Edit and resubmit" : "New job"}</h1>
      {from && (
        <p className="soft">
          Creates a new job with the settings of <Link to="/jobs/$id" params={{ id: from.id }}>{shortId(from.id)}</Link>. The original does not change.
        </p>
      )}
      <Card label="Job">
        <form className="pad stack" onSubmit={send}>
          <div className="fields">
            <TextInput label="Type" required value={draft.type} onChange={onType("type")} list="types" error={errorOf("type")} placeholder="mail.send" autoFocus={!from} />
            <TextInput label="Queue" value={draft.queue} onChange={onType("queue")} placeholder={typeInfo?.queue ?? "default"} list="queues" error={errorOf("queue")} />
            {admin && <TextInput label="Tenant" value={draft.tenant} onChange={onType("tenant")} placeholder={me?.tenant ?? ""} error={errorOf("tenant")} />}
          </div>
          <datalist id="types">
            {[...new Set([...types.map((type) => type.type), ...(stats?.types.map((type) => type.name) ?? [])])].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <datalist id="queues">{stats?.queues.map((queue) => <option key={queue.name} value={queue.name} />)}</datalist>
          <TypeInfo type={typeInfo} />
          {fields && <ToggleGroup label="Payload as" value={form ? "form" : "JSON"} options={["form", "JSON"]} onChange={switchTo} />}
          {form && (
            <PayloadForm
              fields={form.fields}
              texts={form.formState.texts}
              problems={problems}
              onChange={(name, text) => {
                setEdited({ type: draft.type, form: { ...form.formState, texts: { ...form.formState.texts, [name]: text } } });
                setProblems(({ [name]: _, ...rest }) => rest);
              }}
            />
          )}
          {form && Object.keys(form.formState.extra).length > 0 && (
            <p className="small soft wrap-any">
              Sent unchanged, because the form has no fields for them: <code>{Object.keys(form.formState.extra).join(", ")}</code>.
            </p>
          )}
          {formState && "problem" in formState && <p className="small warn">{formState.problem} It is shown as JSON.</p>}
          {!form && (
            <Textarea
            label="Payload"
            description="JSON. Integers of any size are kept exactly."
            value={draft.payload}
            onChange={onType("payload")}
            error={errorOf("payload")}
            rows={12}
            spellCheck={false}
            classNames={{ input: "mono" }}
            />
          )}
          {newest && !from && (
            <div>
              <Button size="compact-sm" variant="default" onClick={() => {
                setDraft({ ...draftFrom(newest), tenant: draft.tenant });
                setEdited(undefined);
                setProblems({});
              }}>
                Copy from the newest {draft.type} job
              </Button>
            </div>
          )}
          <div className="fields small-fields">
            <NumberInput label="Priority" description="Higher runs first." value={draft.priority} onChange={set("priority")} min={-1000} max={1000} allowDecimal={false} error={errorOf("priority")} placeholder={String(typeInfo?.priority ?? 0)} />
            <NumberInput label="Max. attempts" description="Including the first." value={draft.max_attempts} onChange={set("max_attempts")} min={1} max={1000} allowDecimal={false} error={errorOf("max_attempts")} placeholder={typeInfo?.max_attempts ? String(typeInfo.max_attempts) : "default"} />
            <TextInput label="Delay" description="Such as 30s, 5m, 1h30m." value={draft.delay} onChange={onType("delay")} error={errorOf("delay")} placeholder="none" />
            <TextInput label="Timeout" description="Per attempt." value={draft.timeout} onChange={onType("timeout")} error={errorOf("timeout")} placeholder={typeInfo?.timeout ? `${typeInfo.timeout}s` : "none"} />
            <TextInput label="Tags" description="Separated by spaces." value={draft.tags} onChange={onType("tags")} error={errorOf("tags")} />
            <TextInput label="Idempotency key" description="Same key, same job." value={draft.key} onChange={onType("key")} placeholder="none" />
          </div>
          <div ref={errorArea} tabIndex={-1}>
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

/** Request field with the entered number, or with the default of the job type. */
function numberField(name: string, input: number | string, fallback: number | null | undefined): Record<string, number> {
  if (input !== "") return { [name]: Number(input) };
  return fallback === null || fallback === undefined ? {} : { [name]: fallback };
}

/** Fill the form fields from the JSON text. */
function formFromText(fields: readonly Field[], text: string): FormState | { problem: string } {
  try {
    return fillFields(fields, parseExact(text.trim() || "{}"));
  } catch {
    return { problem: "The payload is not valid JSON." };
  }
}

/** Description of a job type, and whether a worker handles it. */
function TypeInfo({ type }: { type: TypeOut | undefined }) {
  if (!type) return null;
  const description = type.schema?.description;
  return (
    <p className="small soft wrap-any">
      {typeof description === "string" && <>{description.replace(/\.?$/, ".")} </>}
      {type.workers ? (
        `Handled by ${pluralize(type.workers, "worker")}.`
      ) : (
        <span className="warn">
          No worker handles this type now; the last one was seen <Time at={type.last_seen} />.
        </span>
      )}
    </p>
  );
}

function draftFrom(job: JobOut): Draft {
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
