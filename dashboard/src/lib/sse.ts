/** Incremental parser of server-sent events. A chunk may end anywhere, even within a line. */

export interface StreamEvent {
  event: string;
  data: string;
}

export class EventParser {
  /** Id of the last event, sent to resume the stream. */
  lastId = "";
  /** Reconnect delay requested by the server, in milliseconds. */
  retry = 2_000;
  private partialLine = "";
  private event = "";
  private data: string[] = [];

  /** Parse a chunk, and return the events that it completes. */
  parse(chunk: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    const lines = (this.partialLine + chunk).split("\n");
    this.partialLine = lines.pop() ?? "";
    for (const line of lines) this.parseLine(line.endsWith("\r") ? line.slice(0, -1) : line, events);
    return events;
  }

  private parseLine(line: string, events: StreamEvent[]): void {
    if (line === "") {
      if (this.data.length) events.push({ event: this.event || "message", data: this.data.join("\n") });
      this.event = "";
      this.data = [];
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id") this.lastId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
  }
}
