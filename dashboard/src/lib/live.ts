/**
 * The stream of changes. It carries the key in a header, resumes where it ended, notices silence, rests while nobody
 * looks, and says at any time how far it can be trusted.
 */
import { EventReader, type StreamEvent } from "./sse";

export type LiveState = "connecting" | "live" | "stale" | "paused" | "off";

export interface LiveStatus {
  state: LiveState;
  /** Since when, in milliseconds of `Date.now()`; for `stale`, since when nothing was heard. */
  since: number;
  /** Why it is stale. */
  why?: string;
}

export interface LiveOptions {
  url: string;
  key: () => string | null;
  onEvent: (event: StreamEvent) => void;
  /** What lies between is not known: fetch anew what is shown. */
  onGap: () => void;
  /** The key is good no more. */
  onRefused: () => void;
  fetch?: typeof fetch;
  visible?: () => boolean;
  random?: () => number;
}

/** The server says something every 15 seconds; after this long without a word, the line is taken for dead. */
export const SILENCE = 40_000;
/** A tab that is hidden for longer reads no more. */
export const HIDDEN_FOR = 10_000;
const LONGEST_WAIT = 30_000;

export class Live {
  private status: LiveStatus = { state: "off", since: Date.now() };
  private readonly listeners = new Set<() => void>();
  private abort: AbortController | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private lastId = "";
  private failures = 0;
  private running = false;

  constructor(private readonly options: LiveOptions) {}

  /** Begin, and go on until `stop`. */
  start(): void {
    if (this.running) return;
    this.running = true;
    document.addEventListener("visibilitychange", this.looked);
    window.addEventListener("online", this.hurry);
    this.looked();
    if (this.status.state === "off") void this.connect();
  }

  /** End. */
  stop(): void {
    this.running = false;
    document.removeEventListener("visibilitychange", this.looked);
    window.removeEventListener("online", this.hurry);
    this.close();
    clearTimeout(this.hidden);
    this.lastId = "";
    this.set({ state: "off", since: Date.now() });
  }

  /** For `useSyncExternalStore`. */
  readonly snapshot = (): LiveStatus => this.status;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Try now rather than later. */
  readonly hurry = (): void => {
    if (this.running && this.status.state === "stale") {
      this.close();
      void this.connect();
    }
  };

  private readonly looked = (): void => {
    const visible = this.options.visible?.() ?? document.visibilityState !== "hidden";
    clearTimeout(this.hidden);
    if (!visible) {
      this.hidden = setTimeout(() => {
        this.close();
        this.set({ state: "paused", since: Date.now() });
      }, HIDDEN_FOR);
    } else if (this.status.state === "paused") {
      void this.connect();
    }
  };

  private async connect(): Promise<void> {
    const key = this.options.key();
    if (!key || !this.running) return;
    const abort = new AbortController();
    this.abort = abort;
    if (this.status.state !== "stale") this.set({ state: "connecting", since: Date.now() });
    const reader = new EventReader();
    try {
      const headers: Record<string, string> = { authorization: `Bearer ${key}`, accept: "text/event-stream" };
      if (this.lastId) headers["last-event-id"] = this.lastId;
      this.heard(abort);
      const answer = await (this.options.fetch ?? fetch)(this.options.url, {
        headers,
        signal: abort.signal,
        cache: "no-store",
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      if (answer.status === 401 || answer.status === 403) {
        this.close();
        this.set({ state: "off", since: Date.now() });
        if (answer.status === 401) this.options.onRefused();
        return;
      }
      if (!answer.ok || !answer.body) throw new Error(`the server answered ${answer.status}`);
      await this.read(answer.body, reader, abort);
      throw new Error("the server ended the stream");
    } catch (error) {
      if (abort.signal.aborted && this.abort !== abort) return;
      this.later(error instanceof Error ? error.message : String(error), reader.retry);
    }
  }

  private async read(body: ReadableStream<Uint8Array>, reader: EventReader, abort: AbortController): Promise<void> {
    const chunks = body.getReader();
    const decoder = new TextDecoder();
    let first = true;
    for (;;) {
      const { done, value } = await chunks.read();
      if (done) return;
      this.heard(abort);
      const events = reader.feed(decoder.decode(value, { stream: true }));
      if (first) {
        first = false;
        this.failures = 0;
        // Whoever never was here has fetched before the stream began: what happened between is fetched once more.
        if (!this.lastId) this.options.onGap();
        this.set({ state: "live", since: Date.now() });
      }
      if (reader.lastId) this.lastId = reader.lastId;
      for (const event of events) {
        if (event.event === "reset") this.options.onGap();
        else this.options.onEvent(event);
      }
    }
  }

  private heard(abort: AbortController): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      abort.abort(new Error("nothing was heard for a while"));
    }, SILENCE);
  }

  private later(why: string, retry: number): void {
    this.close();
    if (!this.running) return;
    if (this.status.state !== "stale") this.set({ state: "stale", since: Date.now(), why });
    const wait = Math.min(LONGEST_WAIT, retry * 2 ** Math.min(this.failures, 6));
    this.failures += 1;
    // Spread out, so that a server that restarts is not met by everybody at once.
    const spread = 0.5 + (this.options.random ?? Math.random)() / 2;
    this.again = setTimeout(() => void this.connect(), wait * spread);
  }

  private close(): void {
    clearTimeout(this.again);
    clearTimeout(this.silence);
    const open = this.abort;
    this.abort = undefined;
    open?.abort();
  }

  private set(status: LiveStatus): void {
    this.status = status;
    for (const each of this.listeners) each();
  }
}
