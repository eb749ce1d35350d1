/** How much ended lately, as a line in a row. It is asked for only once it is in view: there may be many rows. */
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useRef, useState } from "react";
import { throughputQuery } from "../api/queries";
import { count, plural } from "../lib/format";
import { sparkPath } from "../lib/spark";

const WIDTH = 84;
const HEIGHT = 20;

export function QueueSparkline({ queue }: { queue: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const seen = useSeen(place);
  const series = useQuery({ ...throughputQuery({ window: "30m", queue }), enabled: seen, refetchInterval: 15_000 }).data;
  const ended = series?.points.map(({ totals }) => totals.succeeded + totals.failed) ?? [];
  const failed = series?.points.reduce((sum, { totals }) => sum + totals.failed, 0) ?? 0;
  const whole = ended.reduce((sum, each) => sum + each, 0);
  const said = series ? `Last 30 minutes: ${plural(whole, "attempt")} ended, ${count(failed)} failed` : undefined;
  return (
    <span ref={place} className="spark" title={said}>
      {series && (
        <svg width={WIDTH} height={HEIGHT + 2} role="img" aria-label={said}>
          <path d={sparkPath(ended, WIDTH, HEIGHT)} transform="translate(0 1)" fill="none" stroke={failed > whole / 5 ? "var(--bad)" : "var(--good)"} strokeWidth="1.5" />
        </svg>
      )}
    </span>
  );
}

/** Whether something has been in view. */
export function useSeen(place: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (seen || !place.current) return;
    const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [place, seen]);
  return seen;
}
