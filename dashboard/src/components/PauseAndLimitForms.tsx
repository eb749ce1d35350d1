/** Forms to pause a queue, tenant or type, and to set its concurrency and rate limits. */
import { NumberInput, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/client";
import { statsQuery } from "../api/queries";
import type { QueueOut, RateOut } from "../api/types.gen";
import { parseRateLimit, formatRateLimit } from "../lib/rates";
import { FormModal } from "./FormModal";

export type Subject = { queue: string } | { tenant: string } | { type: string };

const DURATIONS: Record<string, number | null> = { "until resumed": null, "for 15 minutes": 900, "for 1 hour": 3_600, "for 8 hours": 28_800, "for 24 hours": 86_400 };

/** Pause form. If the subject is a type without a name, the form asks for the name. */
export function PauseForm({ subject, onClose }: { subject: Subject; onClose: () => void }) {
  const unnamed = nameOf(subject) === "";
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [duration, setDuration] = useState("until resumed");
  const send = () => {
    const seconds = DURATIONS[duration];
    const until = seconds ? new Date(Date.now() + seconds * 1_000).toISOString() : null;
    return "queue" in subject
      ? call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: subject.queue }, body: { paused: true, reason, until } })
      : call<"set_pause">("PUT", "/v1/pauses", { body: { ...(unnamed ? { type: name.trim() } : subject), reason, until } });
  };
  return (
    <FormModal title={unnamed ? "Pause a type" : `Pause ${nameOf(subject)}`} verb="Pause" disabled={unnamed && !name.trim()} onClose={onClose} send={send} fields={["reason", "type"]}>
      {(errorOf) => (
        <>
          <p>No jobs start while it is paused. Running jobs finish, and new jobs can still be submitted.</p>
          {unnamed && <TypeField value={name} problem={errorOf("type")} onChange={setName} />}
          <TextInput label="Reason" description="Shown to anyone who checks why jobs are not running." value={reason} maxLength={500} error={errorOf("reason")} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus={!unnamed || undefined} />
          <Select label="Duration" data={Object.keys(DURATIONS)} value={duration} allowDeselect={false} onChange={(value) => value && setDuration(value)} />
        </>
      )}
    </FormModal>
  );
}

/** Text field for a job type, with suggestions. */
function TypeField({ value, problem, onChange }: { value: string; problem: string | undefined; onChange: (value: string) => void }) {
  const knownTypes = useQuery(statsQuery()).data?.types ?? [];
  return (
    <>
      <TextInput label="Type" placeholder="mail.send" list="types-to-pause" autoComplete="off" value={value} error={problem} onChange={(event) => onChange(event.currentTarget.value)} data-autofocus />
      <datalist id="types-to-pause">
        {knownTypes.map((type) => (
          <option key={type.name} value={type.name} />
        ))}
      </datalist>
    </>
  );
}

/** Limits that are in effect now. */
export interface CurrentLimits {
  max_running: QueueOut["max_running"];
  rate: RateOut | null;
}

export function LimitForm({ subject, current, onClose }: { subject: { queue: string } | { tenant: string }; current: CurrentLimits; onClose: () => void }) {
  const [maxRunning, setMaxRunning] = useState<string | number>(current.max_running ?? "");
  const [rateText, setRateText] = useState(formatRateLimit(current.rate));
  const rate = parseRateLimit(rateText);
  const send = () => {
    const max_running = maxRunning === "" ? null : Number(maxRunning);
    const rateUnchanged = rateText.trim() === formatRateLimit(current.rate);
    if ("queue" in subject) {
      // Send only what changed: someone else may have changed the other limit in the meantime.
      const body = { ...(max_running === current.max_running ? {} : { max_running }), ...(rateUnchanged ? {} : { rate: rate ?? null }) };
      return call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: subject.queue }, body });
    }
    return call<"set_limit">("PUT", "/v1/limits", { body: { ...subject, max_running, rate: rateUnchanged ? current.rate : (rate ?? null) } });
  };
  return (
    <FormModal title={`Limits of ${nameOf(subject)}`} verb="Save" disabled={rate === undefined} onClose={onClose} send={send} fields={["max_running", "rate"]}>
      {(errorOf) => (
        <>
          <p>Limits apply across all workers, starting with the next job.</p>
          <NumberInput label="Max. running jobs" description="Leave empty for no limit." min={1} allowDecimal={false} value={maxRunning} error={errorOf("max_running")} onChange={setMaxRunning} data-autofocus />
          <TextInput
            label="Rate limit"
            description="Job starts per interval. Leave empty for no limit."
            placeholder="10/s, 100/m, 5/30s"
            value={rateText}
            error={rate === undefined ? "Enter a number and an interval, such as 10/s or 100/m." : errorOf("rate")}
            onChange={(event) => setRateText(event.currentTarget.value)}
          />
        </>
      )}
    </FormModal>
  );
}

function nameOf(subject: Subject): string {
  return Object.values(subject)[0] ?? "";
}
