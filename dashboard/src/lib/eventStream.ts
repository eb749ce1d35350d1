/**
 * Client of the event stream. It sends the API key in a header, resumes after the last event it received, detects dead
 * connections, disconnects while the tab is hidden, and exposes its connection state.
 */
import { EventParser, type StreamEvent } from "./sse";

export type LiveState = "connecting" | "live" | "stale" | "paused" | "off";

export interface LiveStatus {
  state: LiveState;
  /** Start of this state, as `Date.now()` milliseconds. */
  since: number;
  /** Reason why the connection was lost, for `stale`. */
  reason?: string;
}

export interface EventStreamOptions {
  url: string;
  apiKey: () => string | null;
  onEvent: (event: StreamEvent) => void;
  /** Events may have been missed: refetch everything on the page. */
  onGap: () => void;
  /** The server rejected the API key. */
  onUnauthorized: () => void;
  fetch?: typeof fetch;
  isVisible?: () => boolean;
  random?: () => number;
}

/** The server sends at least a heartbeat every 15 seconds. After this long without data, the connection counts as dead. */
export const SILENCE_TIMEOUT_MS = 40_000;
/** A tab that is hidden for longer than this disconnects. */
export const HIDDEN_TIMEOUT_MS = 10_000;
const MAX_RECONNECT_DELAY_MS = 30_000;

export class EventStream {
  private status: LiveStatus = { state: "off", since: Date.now() };
  private readonly listeners = new Set<() => void>();
  private abort: AbortController | undefined;
  private reconnectTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  private lastId = "";
  private failures = 0;
  private running = false;

  constructor(private readonly options: EventStreamOptions) {}

  /** Connect, and stay connected until `stop`. */
  start(): void {
    if (this.running) return;
    this.running = true;
    document.addEventListener("visibilitychange", this.onVisibilityChange);
    window.addEventListener("online", this.reconnectNow);
    this.onVisibilityChange();
    if (this.status.state === "off") void this.connect();
  }

  /** Disconnect. */
  stop(): void {
    this.running = false;
    document.removeEventListener("visibilitychange", this.onVisibilityChange);
    window.removeEventListener("online", this.reconnectNow);
    this.close();
    clearTimeout(this.hiddenTimer);
    this.lastId = "";
    this.set({ state: "off", since: Date.now() });
  }

  /** For `useSyncExternalStore`. */
  readonly snapshot = (): LiveStatus => this.status;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Reconnect immediately instead of waiting for the next retry. */
  readonly reconnectNow = (): void => {
    if (this.running && this.status.state === "stale") {
      this.close();
      void this.connect();
    }
  };

  private readonly onVisibilityChange = (): void => {
    const visible = this.options.isVisible?.() ?? document.visibilityState !== "hidden";
    clearTimeout(this.hiddenTimer);
    if (!visible) {
      this.hiddenTimer = setTimeout(() => {
        this.close();
        this.set({ state: "paused", since: Date.now() });
      }, HIDDEN_TIMEOUT_MS);
    } else if (this.status.state === "paused") {
      void this.connect();
    }
  };

  private async connect(): Promise<void> {
    const apiKey = this.options.apiKey();
    if (!apiKey || !this.running) return;
    const abort = new AbortController();
    this.abort = abort;
    if (this.status.state !== "stale") this.set({ state: "connecting", since: Date.now() });
    const parser = new EventParser();
    try {
      const headers: Record<string, string> = { authorization: `Bearer ${apiKey}`, accept: "text/event-stream" };
      if (this.lastId) headers["last-event-id"] = this.lastId;
      this.restartSilenceTimer(abort);
      const response = await (this.options.fetch ?? fetch)(this.options.url, {
        headers,
        signal: abort.signal,
        cache: "no-store",
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
      if (response.status === 401 || response.status === 403) {
        this.close();
        this.set({ state: "off", since: Date.now() });
        if (response.status === 401) this.options.onUnauthorized();
        return;
      }
      if (!response.ok || !response.body) throw new Error(`the server responded with ${response.status}`);
      await this.read(response.body, parser, abort);
      throw new Error("the server ended the stream");
    } catch (error) {
      if (abort.signal.aborted && this.abort !== abort) return;
      this.scheduleReconnect(error instanceof Error ? error.message : String(error), parser.retry);
    }
  }

  private async read(body: ReadableStream<Uint8Array>, parser: EventParser, abort: AbortController): Promise<void> {
    const chunks = body.getReader();
    const decoder = new TextDecoder();
    let first = true;
    for (;;) {
      const { done, value } = await chunks.read();
      if (done) return;
      this.restartSilenceTimer(abort);
      const events = parser.parse(decoder.decode(value, { stream: true }));
      if (first) {
        first = false;
        this.failures = 0;
        // The page was fetched before the first connection: changes in between would be missed.
        if (!this.lastId) this.options.onGap();
        this.set({ state: "live", since: Date.now() });
      }
      if (parser.lastId) this.lastId = parser.lastId;
      for (const event of events) {
        if (event.event === "reset") this.options.onGap();
        else this.options.onEvent(event);
      }
    }
  }

  private restartSilenceTimer(abort: AbortController): void {
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => {
      abort.abort(new Error("no data arrived for 40 seconds"));
    }, SILENCE_TIMEOUT_MS);
  }

  private scheduleReconnect(reason: string, retry: number): void {
    this.close();
    if (!this.running) return;
    if (this.status.state !== "stale") this.set({ state: "stale", since: Date.now(), reason });
    const delay = Math.min(MAX_RECONNECT_DELAY_MS, retry * 2 ** Math.min(this.failures, 6));
    this.failures += 1;
    // Jitter, so that not all clients reconnect to a restarted server at the same time.
    const jitter = 0.5 + (this.options.random ?? Math.random)() / 2;
    this.reconnectTimer = setTimeout(() => void this.connect(), delay * jitter);
  }

  private close(): void {
    clearTimeout(this.reconnectTimer);
    clearTimeout(this.silenceTimer);
    const open = this.abort;
    this.abort = undefined;
    open?.abort();
  }

  private set(status: LiveStatus): void {
    this.status = status;
    for (const listener of this.listeners) listener();
  }
}
