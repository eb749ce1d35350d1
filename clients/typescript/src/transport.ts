import * as http from "node:http";
import * as https from "node:https";

import { ConnectionError, HoldfastError, isUnavailable, mayHaveHappened } from "./errors.js";

const RESPONSE_TIMEOUT_S = 30;
const MIN_DELAY_S = 0.1;
const MAX_DELAY_S = 2;
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export interface Request {
  method: "GET" | "POST";
  path: string;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  /** Safe to send again after a try that may have taken effect. */
  repeat?: boolean;
  /** Seconds that the service may hold the request (long poll). */
  wait?: number;
  signal?: AbortSignal | undefined;
  /** Seconds for which to retry; 0 for one try. */
  retryFor?: number;
}

/** Growing delays with jitter, never shorter than the service asks for. */
export class Backoff {
  #next = 0;

  /** Return the seconds until the next try. */
  delay(error: unknown): number {
    this.#next = Math.min(Math.max(2 * this.#next, MIN_DELAY_S), MAX_DELAY_S);
    const after = error instanceof HoldfastError ? error.retryAfter : 0;
    return Math.max((0.5 + Math.random() / 2) * this.#next, after);
  }

  reset(): void {
    this.#next = 0;
  }
}

/** Wait, and return whether the signal is still not aborted. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const end = (alive: boolean) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
      resolve(alive);
    };
    const aborted = () => end(false);
    const timer = setTimeout(() => end(true), Math.max(0, seconds) * 1000);
    signal?.addEventListener("abort", aborted);
  });
}

/** Run a function with a signal that also ends after a timeout. */
export async function withTimeout<T>(
  seconds: number,
  outer: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const aborted = () => inner.abort(outer?.reason);
  const timer = setTimeout(() => inner.abort(new Error("no response in time")), seconds * 1000);
  outer?.addEventListener("abort", aborted);
  if (outer?.aborted) aborted();
  try {
    return await call(inner.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", aborted);
  }
}

/** Sends requests to one service, and repeats those that are safe to repeat. */
export class Transport {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #agent: http.Agent;

  constructor(url: string, key: string, tenant: string | undefined) {
    const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: "" };
    if (protocol !== "http:" && protocol !== "https:") {
      throw new TypeError(`url: ${JSON.stringify(url)} is not the address of a service: use a form such as http://localhost:8080`);
    }
    if (!key) throw new TypeError("key: the key is missing: create one with 'holdfast keys create'");
    this.#agent = new (protocol === "https:" ? https : http).Agent({ keepAlive: true });
    this.#url = url.replace(/\/+$/, "");
    this.#headers = { authorization: `Bearer ${key}`, accept: "application/json", "user-agent": "holdfast-typescript" };
    if (tenant) this.#headers["holdfast-tenant"] = tenant;
  }

  async send<T>(request: Request): Promise<T> {
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const end = performance.now() + (request.retryFor ?? 0) * 1000;
    for (const backoff = new Backoff(); ; ) {
      try {
        return await this.#try<T>(request, body);
      } catch (error) {
        request.signal?.throwIfAborted();
        if (!isUnavailable(error) || (mayHaveHappened(error) && !request.repeat)) throw error;
        const delay = backoff.delay(error);
        if (performance.now() + delay * 1000 > end || !(await sleep(delay, request.signal))) throw error;
      }
    }
  }

  async #try<T>(request: Request, body: string | undefined): Promise<T> {
    const headers: Record<string, string> = { ...this.#headers, ...request.headers };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = String(Buffer.byteLength(body));
    }
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const address = `${this.#url}${request.path}${query.size ? `?${query}` : ""}`;
    const timeout = RESPONSE_TIMEOUT_S + (request.wait ?? 0);
    const call = (signal: AbortSignal) => this.#exchange(address, { method: request.method, headers, signal }, body);
    const { status, retryAfter, text } = await withTimeout(timeout, request.signal, call);
    if (status >= 300) throw HoldfastError.of(status, retryAfter, text);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Send one request. `node:http` needs a fraction of the processor time of `fetch`. */
  #exchange(address: string, options: http.RequestOptions, body: string | undefined): Promise<Exchange> {
    return new Promise((resolve, reject) => {
      const { request } = address.startsWith("https:") ? https : http;
      const fail = (error: Error) => reject(new ConnectionError(!NOT_SENT.has(codeOf(error)), error));
      const sent = request(address, { ...options, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", fail);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"], text });
        });
      });
      sent.on("error", fail);
      sent.end(body);
    });
  }
}

interface Exchange {
  status: number;
  retryAfter: string | undefined;
  text: string;
}

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}
