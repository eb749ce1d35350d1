/** Cards and placeholders for empty, loading and failed content. */
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Problem } from "../api/client";

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="blank">
      <h2>{title}</h2>
      {children && <div>{children}</div>}
    </div>
  );
}

const WIDTHS = ["72%", "58%", "84%", "66%", "78%", "52%"];

export function Loading({ lines = 4, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div className="stack tight pad" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} className="skeleton" style={{ width: WIDTHS[line % WIDTHS.length] ?? "60%" }} />
      ))}
    </div>
  );
}

/** Error message with an optional retry button and the request id of a server error. */
export function ErrorBox({ error, retry, title }: { error: unknown; retry?: () => void; title?: string }) {
  const problem = error instanceof Problem ? error : null;
  return (
    <div className="note bad" role="alert">
      <div className="grow stack tight">
        <div>
          <strong>{title ?? headline(problem)}</strong>
          <div className="wrap-any">{problem?.detail ?? (error instanceof Error ? error.message : "Something went wrong.")}</div>
          {problem?.requestId && problem.status >= 500 && (
            <div className="small soft">
              See request <code>{problem.requestId}</code> in the server log.
            </div>
          )}
        </div>
        {retry && (
          <div>
            <Button size="compact-sm" variant="default" onClick={retry}>
              Try again
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function headline(problem: Problem | null): string {
  if (!problem) return "Request failed";
  if (problem.status === 0) return "No response";
  if (problem.status === 403) return "Permission denied";
  if (problem.status === 404) return "Not found";
  if (problem.status === 409) return "Conflict";
  if (problem.status === 429) return "Too many requests";
  if (problem.status === 503) return "Temporarily unavailable";
  return problem.status >= 500 ? "Server error" : "Request rejected";
}

interface QueryState<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** Show the data of a query, or its loading or error state. An error does not hide data that was fetched before. */
export function QueryView<T>({ query, children, lines }: { query: QueryState<T>; children: (data: T) => ReactNode; lines?: number }) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error ? <ErrorBox error={query.error} title="Could not refresh" retry={() => query.refetch()} /> : null}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <ErrorBox error={query.error} retry={() => query.refetch()} />;
  return <Loading lines={lines ?? 4} />;
}

export function Card({ title, aside, children, label }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; label?: string }) {
  return (
    <section className="card" aria-label={label ?? (typeof title === "string" ? title : undefined)}>
      {title !== undefined && (
        <header>
          <h2 className="grow">{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}
