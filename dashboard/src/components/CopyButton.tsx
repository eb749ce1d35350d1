import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { Icon } from "./Icon";

/** Copies a text, and says so. */
export function CopyButton({ text, label = "Copy", title }: { text: string | (() => string); label?: string; title?: string }) {
  const [state, setState] = useState<"" | "done" | "failed">("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(""), 1_600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    const whole = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(whole);
      setState("done");
    } catch {
      setState(copyBySelection(whole) ? "done" : "failed");
    }
  };
  return (
    <Button size="compact-xs" variant="subtle" leftSection={<Icon name={state === "done" ? "done" : "copy"} size={14} />} onClick={() => void copy()} title={title}>
      <span aria-live="polite">{state === "done" ? "Copied" : state === "failed" ? "Not allowed here" : label}</span>
    </Button>
  );
}

/** The old way, for pages that came over plain HTTP from another machine: browsers give those no clipboard. */
function copyBySelection(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden-text";
  field.setAttribute("aria-hidden", "true");
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
