/** Relative time with the exact time as its tooltip. All instances share one clock. */
import { useSyncExternalStore } from "react";
import { formatExactTime, formatRelativeTime } from "../lib/format";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    if (document.visibilityState === "hidden") return;
    now = Date.now();
    for (const listener of listeners) listener();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Current time, updated once per second while the page is visible. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

export function Time({ at }: { at: string | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="soft">–</span>;
  return (
    <time dateTime={at} title={formatExactTime(at)} className="nowrap num">
      {formatRelativeTime(at, Math.max(current, now))}
    </time>
  );
}
