import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { Icon } from "./Icon";

/** Button that copies a text to the clipboard and confirms it. */
export function CopyButton({ text, label = "Copy", title }: { text: string | (() => string); label?: string; title?: string }) {
  const [state, setState] = useState<"" | "done" | "failed">("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(""), 1_600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    const content = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(content);
      setState("done");
    } catch {
      setState(copyBySelection(content) ? "done" : "failed");
    }
  };
  return (
    <Button size="compact-xs" variant="subtle" leftSection={<Icon name={state === "done" ? "done" : "copy"} size={14} />} onClick={() => void copy()} title={title}>
      <span aria-live="polite">{state === "done" ? "Copied" : state === "failed" ? "Copying is blocked" : label}</span>
    </Button>
  );
}

/** Fallback for pages served over plain HTTP from another host, where browsers disable the clipboard API. */
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
