/** Sparkline of the recent throughput of a queue. Fetched only once it is visible, because there may be many rows. */
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useRef, useState } from "react";
import { throughputQuery } from "../api/queries";
import { formatCount, pluralize } from "../lib/format";
import { sparkPath } from "../lib/sparkline";

const WIDTH = 84;
const HEIGHT = 20;

export function ThroughputSparkline({ queue }: { queue: string }) {
  const element = useRef<HTMLSpanElement>(null);
  const visible = useHasBeenVisible(element);
  const series = useQuery({ ...throughputQuery({ window: "30m", queue }), enabled: visible, refetchInterval: 15_000 }).data;
  const finished = series?.points.map(({ totals }) => totals.succeeded + totals.failed) ?? [];
  const failed = series?.points.reduce((sum, { totals }) => sum + totals.failed, 0) ?? 0;
  const total = finished.reduce((sum, value) => sum + value, 0);
  const label = series ? `Last 30 minutes: ${pluralize(total, "attempt")} finished, ${formatCount(failed)} failed` : undefined;
  return (
    <span ref={element} className="spark" title={label}>
      {series && (
        <svg width={WIDTH} height={HEIGHT + 2} role="img" aria-label={label}>
          <path d={sparkPath(finished, WIDTH, HEIGHT)} transform="translate(0 1)" fill="none" stroke={failed > total / 5 ? "var(--bad)" : "var(--good)"} strokeWidth="1.5" />
        </svg>
      )}
    </span>
  );
}

/** Whether the element has been visible in the viewport at least once. */
export function useHasBeenVisible(element: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (seen || !element.current) return;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, seen]);
  return seen;
}
