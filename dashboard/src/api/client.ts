/** API client: adds the API key, keeps large integers exact, and turns every failure into a `Problem`. */
import { parseExact, stringifyExact } from "../lib/json";
import * as session from "./session";
import type { Json, Operations, Problem as ProblemShape } from "./types.gen";

type OperationName = keyof Operations;
type Operation<N extends OperationName> = Operations[N];

interface CallOptions<N extends OperationName> {
  path?: Record<string, string>;
  query?: Operation<N>["query"];
  body?: Operation<N>["body"];
  tenant?: string | undefined;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Error of a request that failed. `status` is 0 if no response arrived. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly pointer?: string,
    readonly requestId?: string | null,
    readonly jobId?: string,
  ) {
    super(detail);
    this.name = "Problem";
  }

  /** Whether a retry may succeed. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Absolute URL of an API path. It is relative to this page, so that both may be served below any path prefix. */
export function apiUrl(path: string): string {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).toString();
}

/** Call an operation by its method and path, as in the OpenAPI description. */
export async function call<N extends OperationName>(method: Operation<N>["method"], path: Operation<N>["path"], options: CallOptions<N> = {}): Promise<Operation<N>["response"]> {
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const headers: Record<string, string> = { accept: "application/json" };
  const apiKey = session.apiKey();
  if (apiKey) headers.authorization = `Bearer ${apiKey}`;
  if (options.tenant) headers["holdfast-tenant"] = options.tenant;
  if (options.idempotencyKey) headers["idempotency-key"] = options.idempotencyKey;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const queryText = query.toString();
  return (await send(apiUrl(filledPath) + (queryText ? `?${queryText}` : ""), {
    method,
    headers,
    ...(options.body === undefined ? {} : { body: stringifyExact(options.body as unknown as Json) }),
    ...(options.signal ? { signal: options.signal } : {}),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  })) as Operation<N>["response"];
}

async function send(url: string, request: RequestInit): Promise<Json> {
  let response: Response;
  try {
    response = await fetch(url, request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server does not respond. It may be restarting. This page retries automatically.");
  }
  if (!response.ok) throw await readProblem(response);
  if (response.status === 204) return null;
  return parseExact(await response.text());
}

/** Read the problem from an error response. A 401 also ends the session. */
export async function readProblem(response: Response): Promise<Problem> {
  let body: Partial<ProblemShape> = {};
  try {
    body = JSON.parse(await response.text()) as Partial<ProblemShape>;
  } catch {
    // Probably an error page of a proxy: use the status alone.
  }
  if (response.status === 401) session.expire();
  return new Problem(
    response.status,
    body.code ?? `http_${response.status}`,
    body.detail ?? `The server responded with ${response.status} ${response.statusText}.`,
    body.pointer,
    response.headers.get("x-request-id"),
    body.job_id,
  );
}
