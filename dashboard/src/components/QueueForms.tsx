/** What may be set of a queue. */
import { NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../api/client";
import type { QueueOut } from "../api/types.gen";
import { FormModal } from "./FormModal";

const TERMS: Record<string, number | null> = { "until it is resumed": null, "for 15 minutes": 900, "for 1 hour": 3_600, "for 8 hours": 28_800, "for 24 hours": 86_400 };

export function PauseQueue({ queue, onClose }: { queue: QueueOut; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [term, setTerm] = useState("until it is resumed");
  const send = () => {
    const seconds = TERMS[term];
    const until = seconds ? new Date(Date.now() + seconds * 1_000).toISOString() : null;
    return call<"change_queue">("PATCH", "/v1/queues/{name}", { path: { name: queue.name }, body: { paused: true, reason, until } });
  };
  return (
    <FormModal title={`Pause ${queue.name}`} verb="Pause" onClose={onClose} send={send} fields={["reason"]}>
      {(problemOf) => (
        <>
          <p>No job of it starts while it rests; what runs is let finish, and jobs may still be submitted.</p>
          <TextInput label="Reason" description="Whoever wonders why nothing runs reads this." value={reason} maxLength={500} error={problemOf("reason")} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />
          <Select label="How long" data={Object.keys(TERMS)} value={term} allowDeselect={false} onChange={(value) => value && setTerm(value)} />
        </>
      )}
    </FormModal>
  );
}

export function LimitQueue({ queue, onClose }: { queue: QueueOut; onClose: () => void }) {
  const [most, setMost] = useState<string | number>(queue.max_running ?? "");
  const [pace, setPace] = useState(queue.rate === null ? "" : String(queue.rate));
  const send = () => {
    const rate = pace.trim();
    return call<"change_queue">("PATCH", "/v1/queues/{name}", {
      path: { name: queue.name },
      // Only what was changed: another may have set the other one meanwhile.
      body: {
        ...(most !== (queue.max_running ?? "") ? { max_running: most === "" ? null : Number(most) } : {}),
        ...(rate !== (queue.rate === null ? "" : String(queue.rate)) ? { rate: rate === "" ? null : /^[\d.]+$/.test(rate) ? Number(rate) : rate } : {}),
      },
    });
  };
  return (
    <FormModal title={`Limits of ${queue.name}`} verb="Set" onClose={onClose} send={send} fields={["max_running", "rate"]}>
      {(problemOf) => (
        <>
          <p>They hold for all workers together, from the next job on.</p>
          <NumberInput label="At once" description="How many of its jobs may run; empty for as many as there are slots." min={1} allowDecimal={false} value={most} error={problemOf("max_running")} onChange={setMost} data-autofocus />
          <TextInput label="Starts" description="How many may start in a time, such as 10/s or 100/m; empty for any number." value={pace} error={problemOf("rate")} onChange={(event) => setPace(event.currentTarget.value)} />
        </>
      )}
    </FormModal>
  );
}
