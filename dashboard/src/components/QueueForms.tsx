/** Having things rest, and limiting them. */
import { NumberInput, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/client";
import { statsQuery } from "../api/queries";
import type { QueueOut, RateOut } from "../api/types.gen";
import { parseRate, writeRate } from "../lib/rates";
import { FormModal } from "./FormModal";

/** What may rest, or be limited. */
export type Subject = { queue: string } | { tenant: string } | { type: string };

const TERMS: Record<string, number | null> = { "until it is resumed": null, "for 15 minutes": 900, "for 1 hour": 3_600, "for 8 hours": 28_800, "for 24 hours": 86_400 };

/** A type without a name is asked for: it may be one of which there is no job yet. */
export function PauseForm({ subject, onClose }: { subject: Subject; onClose: () => void }) {
  const unnamed = nameOf(subject) === "";
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [term, setTerm] = useState("until it is resumed");
  const send = () => {
    const seconds = TERMS[term];
    const until = seconds ? new Date(Date.now() + seconds * 1_000).toISOString() : null;
    return "queue" in subject
      ? call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: subject.queue }, body: { paused: true, reason, until } })
      : call<"set_pause">("PUT", "/v1/pauses", { body: { ...(unnamed ? { type: name.trim() } : subject), reason, until } });
  };
  return (
    <FormModal title={unnamed ? "Pause a type" : `Pause ${nameOf(subject)}`} verb="Pause" disabled={unnamed && !name.trim()} onClose={onClose} send={send} fields={["reason", "type"]}>
      {(problemOf) => (
        <>
          <p>None of its jobs starts while it rests; what runs is let finish, and jobs may still be submitted.</p>
          {unnamed && <TypeField value={name} problem={problemOf("type")} onChange={setName} />}
          <TextInput label="Reason" description="Whoever wonders why nothing runs reads this." value={reason} maxLength={500} error={problemOf("reason")} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus={!unnamed || undefined} />
          <Select label="How long" data={Object.keys(TERMS)} value={term} allowDeselect={false} onChange={(value) => value && setTerm(value)} />
        </>
      )}
    </FormModal>
  );
}

/** The name of a type, with those that are known. */
function TypeField({ value, problem, onChange }: { value: string; problem: string | undefined; onChange: (value: string) => void }) {
  const known = useQuery(statsQuery()).data?.types ?? [];
  return (
    <>
      <TextInput label="Type" placeholder="mail.send" list="types-to-pause" autoComplete="off" value={value} error={problem} onChange={(event) => onChange(event.currentTarget.value)} data-autofocus />
      <datalist id="types-to-pause">
        {known.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
    </>
  );
}

/** What is set now. */
export interface Set {
  max_running: QueueOut["max_running"];
  rate: RateOut | null;
}

export function LimitForm({ subject, now, onClose }: { subject: { queue: string } | { tenant: string }; now: Set; onClose: () => void }) {
  const [most, setMost] = useState<string | number>(now.max_running ?? "");
  const [pace, setPace] = useState(writeRate(now.rate));
  const rate = parseRate(pace);
  const send = () => {
    const max_running = most === "" ? null : Number(most);
    const same = pace.trim() === writeRate(now.rate);
    if ("queue" in subject) {
      // Only what was changed: another may have set the other one meanwhile.
      const body = { ...(max_running === now.max_running ? {} : { max_running }), ...(same ? {} : { rate: rate ?? null }) };
      return call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: subject.queue }, body });
    }
    return call<"set_limit">("PUT", "/v1/limits", { body: { ...subject, max_running, rate: same ? now.rate : (rate ?? null) } });
  };
  return (
    <FormModal title={`Limits of ${nameOf(subject)}`} verb="Set" disabled={rate === undefined} onClose={onClose} send={send} fields={["max_running", "rate"]}>
      {(problemOf) => (
        <>
          <p>They hold for all workers together, from the next job on.</p>
          <NumberInput label="At once" description="How many of its jobs may run; empty for as many as there are slots." min={1} allowDecimal={false} value={most} error={problemOf("max_running")} onChange={setMost} data-autofocus />
          <TextInput
            label="Starts"
            description="How many may start in a time; empty for any number."
            placeholder="10/s, 100/m, 5/30s"
            value={pace}
            error={rate === undefined ? "Write a number and a time, such as 10/s or 100/m." : problemOf("rate")}
            onChange={(event) => setPace(event.currentTarget.value)}
          />
        </>
      )}
    </FormModal>
  );
}

export function nameOf(subject: Subject): string {
  return Object.values(subject)[0] ?? "";
}
