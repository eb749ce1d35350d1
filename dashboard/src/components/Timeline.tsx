import { useState } from "react";
import type { JobDetail } from "../api/types.gen";
import { clock, exact, span } from "../lib/format";
import { timeline } from "../lib/timeline";
import { Time, useNow } from "./Time";

const MOST = 12;

export function Timeline({ job }: { job: JobDetail }) {
  const now = useNow();
  const [whole, setWhole] = useState(false);
  const moments = timeline(job, now);
  const hidden = whole ? 0 : Math.max(0, moments.length - MOST);
  const shown = hidden ? [...moments.slice(0, 1), ...moments.slice(1 + hidden)] : moments;
  return (
    <ol className="timeline">
      {shown.map((moment, index) => {
        const before = index > 0 ? shown[index - 1] : undefined;
        const gap = before && !(hidden && index === 1) ? (Date.parse(moment.at) - Date.parse(before.at)) / 1000 : null;
        return (
          <li key={`${moment.at}-${moment.what}`} className={moment.ahead ? "ahead" : ""}>
            <span className={`point ${moment.tone}`} aria-hidden="true" />
            <time className="num soft" dateTime={moment.at} title={exact(moment.at)}>
              {clock(moment.at)}
            </time>
            <span className="grow wrap-any">
              <strong>{moment.what}</strong>
              {moment.ahead && (
                <>
                  {" "}
                  <Time at={moment.at} />
                </>
              )}
              {moment.more && <div className="soft small clamp">{moment.more}</div>}
              {hidden > 0 && index === 0 && (
                <div>
                  <button type="button" className="plain" onClick={() => setWhole(true)}>
                    {hidden} more in between
                  </button>
                </div>
              )}
            </span>
            <span className="num soft small nowrap">{gap === null || moment.ahead ? "" : `+ ${span(gap)}`}</span>
          </li>
        );
      })}
    </ol>
  );
}
