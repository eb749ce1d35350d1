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
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setState("done");
    } catch {
      setState("failed");
    }
  };
  return (
    <Button size="compact-xs" variant="subtle" leftSection={<Icon name={state === "done" ? "done" : "copy"} size={14} />} onClick={() => void copy()} title={title}>
      <span aria-live="polite">{state === "done" ? "Copied" : state === "failed" ? "Not allowed here" : label}</span>
    </Button>
  );
}
