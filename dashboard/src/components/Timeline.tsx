import { useState } from "react";
import type { JobDetail } from "../api/types.gen";
import { formatClock, formatExactTime, formatDuration } from "../lib/format";
import { timeline } from "../lib/timeline";
import { Time, useNow } from "./Time";

const MAX_ENTRIES = 12;

export function Timeline({ job }: { job: JobDetail }) {
  const now = useNow();
  const [expanded, setExpanded] = useState(false);
  const entries = timeline(job, now);
  const hidden = expanded ? 0 : Math.max(0, entries.length - MAX_ENTRIES);
  const shown = hidden ? [...entries.slice(0, 1), ...entries.slice(1 + hidden)] : entries;
  return (
    <ol className="timeline">
      {shown.map((entry, index) => {
        const before = index > 0 ? shown[index - 1] : undefined;
        const gap = before && !(hidden && index === 1) ? (Date.parse(entry.at) - Date.parse(before.at)) / 1000 : null;
        return (
          <li key={`${entry.at}-${entry.title}`} className={entry.upcoming ? "upcoming" : ""}>
            <span className={`point ${entry.tone}`} aria-hidden="true" />
            <time className="num soft" dateTime={entry.at} title={formatExactTime(entry.at)}>
              {formatClock(entry.at)}
            </time>
            <span className="grow wrap-any">
              <strong>{entry.title}</strong>
              {entry.upcoming && (
                <>
                  {" "}
                  <Time at={entry.at} />
                </>
              )}
              {entry.detail && <div className="soft small clamp">{entry.detail}</div>}
              {hidden > 0 && index === 0 && (
                <div>
                  <button type="button" className="plain" onClick={() => setExpanded(true)}>
                    {hidden} more in between
                  </button>
                </div>
              )}
            </span>
            <span className="num soft small nowrap">{gap === null || entry.upcoming ? "" : `+ ${formatDuration(gap)}`}</span>
          </li>
        );
      })}
    </ol>
  );
}
