/** A time as people say it, with the exact one on hover, and a clock that all of them share. */
import { useSyncExternalStore } from "react";
import { exact, relative } from "../lib/format";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    if (document.visibilityState === "hidden") return;
    now = Date.now();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time of day, once a second, while somebody looks. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

export function Time({ at }: { at: string | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="soft">–</span>;
  return (
    <time dateTime={at} title={exact(at)} className="nowrap num">
      {relative(at, Math.max(current, now))}
    </time>
  );
}
