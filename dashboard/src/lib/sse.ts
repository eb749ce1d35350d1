/** Server-sent events as text, cut into events. The chunks may end anywhere, also within a line. */

export interface StreamEvent {
  event: string;
  data: string;
}

export class EventReader {
  /** The id to resume after. */
  lastId = "";
  /** Milliseconds that the server wants us to wait before we come back. */
  retry = 2_000;
  private rest = "";
  private event = "";
  private data: string[] = [];

  /** The events that this chunk completes. */
  feed(chunk: string): StreamEvent[] {
    const found: StreamEvent[] = [];
    const lines = (this.rest + chunk).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line, found);
    return found;
  }

  private line(line: string, found: StreamEvent[]): void {
    if (line === "") {
      if (this.data.length) found.push({ event: this.event || "message", data: this.data.join("\n") });
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
