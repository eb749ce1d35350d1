/** One way to the API: adds the key, reads numbers exactly, turns every failure into a `Problem`. */
import { parseExact, stringifyExact } from "../lib/json";
import * as session from "./session";
import type { Json, Operations, Problem as ProblemShape } from "./types.gen";

type Name = keyof Operations;
type Of<N extends Name> = Operations[N];

interface Asked<N extends Name> {
  path?: Record<string, string>;
  query?: Of<N>["query"];
  body?: Of<N>["body"];
  tenant?: string | undefined;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Why a request was not done. `status` 0: no answer came at all. */
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

  /** Whether trying again may help. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Where the API is: beside this page, whatever path a proxy has put both below. */
export function address(path: string): string {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).toString();
}

/** Call one operation by its method and path, as the description of the API names them. */
export async function call<N extends Name>(method: Of<N>["method"], path: Of<N>["path"], asked: Asked<N> = {}): Promise<Of<N>["answer"]> {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(asked.path?.[name] ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked.query ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const headers: Record<string, string> = { accept: "application/json" };
  const key = session.key();
  if (key) headers.authorization = `Bearer ${key}`;
  if (asked.tenant) headers["holdfast-tenant"] = asked.tenant;
  if (asked.idempotencyKey) headers["idempotency-key"] = asked.idempotencyKey;
  if (asked.body !== undefined) headers["content-type"] = "application/json";
  const text = query.toString();
  return (await send(address(filled) + (text ? `?${text}` : ""), {
    method,
    headers,
    ...(asked.body === undefined ? {} : { body: stringifyExact(asked.body as unknown as Json) }),
    ...(asked.signal ? { signal: asked.signal } : {}),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  })) as Of<N>["answer"];
}

async function send(url: string, request: RequestInit): Promise<Json> {
  let answer: Response;
  try {
    answer = await fetch(url, request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server does not answer. It may be restarting; this page tries again by itself.");
  }
  if (!answer.ok) throw await problemOf(answer);
  if (answer.status === 204) return null;
  return parseExact(await answer.text());
}

/** The problem that an answer tells of. A key that is good no more ends the session, wherever it shows. */
export async function problemOf(answer: Response): Promise<Problem> {
  let told: Partial<ProblemShape> = {};
  try {
    told = JSON.parse(await answer.text()) as Partial<ProblemShape>;
  } catch {
    // A proxy's own page, most likely: the status has to do.
  }
  if (answer.status === 401) session.refused();
  return new Problem(
    answer.status,
    told.code ?? `http_${answer.status}`,
    told.detail ?? `The server answered ${answer.status} ${answer.statusText}.`,
    told.pointer,
    answer.headers.get("x-request-id"),
    told.job_id,
  );
}
