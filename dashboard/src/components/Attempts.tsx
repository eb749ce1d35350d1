/** Attempts that failed or logged something, with worker, times, error and log lines. */
import { useState } from "react";
import type { AttemptOut, JobDetail } from "../api/types.gen";
import { secondsBetween, formatClock, formatExactTime, pluralize, formatDuration } from "../lib/format";
import { foldEngineFrames } from "../lib/traceback";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";
import { Card } from "./Feedback";
import { Time } from "./Time";

export function Attempts({ job }: { job: JobDetail }) {
  const newestFirst = [...job.attempt_log].reverse();
  if (!newestFirst.length) return null;
  return (
    <Card title="Attempts" aside={<span className="soft small">{job.attempts} of {job.max_attempts} attempts; failed attempts and attempts with logs are listed</span>}>
      <ul className="attempts">
        {newestFirst.map((attempt, index) => (
          <Attempt key={`${attempt.generation}-${attempt.attempt}`} attempt={attempt} first={index === 0} />
        ))}
      </ul>
    </Card>
  );
}

function Attempt({ attempt, first }: { attempt: AttemptOut; first: boolean }) {
  const [open, setOpen] = useState(first);
  const { error, logs } = attempt;
  const bad = Boolean(error);
  return (
    <li>
      <button type="button" className="attempt-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} size={12} />
        <strong className="num nowrap">
          #{attempt.attempt}
          {attempt.generation ? ` · replay ${attempt.generation}` : ""}
        </strong>
        <span className={`nowrap ${bad ? "bad" : ""}`}>{attempt.outcome.replaceAll("_", " ")}</span>
        <span className="cut grow soft">{error ? `${error.kind}: ${error.message}` : ""}</span>
        <span className="soft small nowrap num">{formatDuration(secondsBetween(attempt.started_at, attempt.ended_at))}</span>
      </button>
      {open && (
        <div className="attempt-body stack tight">
          <div className="row small soft">
            <span className="wrap-any">
              on <code>{attempt.worker}</code>
            </span>
            <span title={formatExactTime(attempt.started_at)}>
              started <Time at={attempt.started_at} />
            </span>
            <span title={formatExactTime(attempt.ended_at)}>
              ended <Time at={attempt.ended_at} />
            </span>
          </div>
          {error && (
            <div className="stack tight">
              <div className="row apart">
                <span className="wrap-any">
                  <strong className="bad">{error.kind}</strong> {error.message}
                </span>
                {error.traceback && <CopyButton text={error.traceback} label="Copy traceback" />}
              </div>
              {error.traceback && (
                <pre className="block" tabIndex={0} aria-label="Traceback">
                  {foldEngineFrames(error.traceback).map((part, index) =>
                    part.frames === 0 ? (
                      part.text
                    ) : (
                      <details key={index} className="folded">
                        <summary>  … {pluralize(part.frames, "frame")} of holdfast</summary>
                        {part.text}
                      </details>
                    ),
                  )}
                </pre>
              )}
            </div>
          )}
          {logs && (
            <div className="stack tight">
              <h3>Log</h3>
              {logs.dropped > 0 && <div className="soft small">{pluralize(logs.dropped, "earlier line")} dropped</div>}
              <ol className="log" tabIndex={0} aria-label="Log">
                {logs.lines.map((line, index) => (
                  <li key={`${line.at}-${index}`} className={line.level.toLowerCase()}>
                    <time className="soft num" dateTime={line.at} title={formatExactTime(line.at)}>
                      {formatClock(line.at)}
                    </time>{" "}
                    <span className="level">{line.level}</span> <span className="wrap-any">{line.message}</span>
                  </li>
                ))}
              </ol>
            </div>
          )}
        </div>
      )}
    </li>
  );
}
