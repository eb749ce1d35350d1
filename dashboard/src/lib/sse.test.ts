import { expect, it } from "vitest";
import { EventParser } from "./sse";

const STREAM = 'retry: 3000\nid: 41\n\nid: 42\nevent: job\ndata: {"id":"a"}\n\n: heartbeat\n\nid: 43\r\nevent: jobs\r\ndata: {\r\ndata: }\r\n\r\n';

it.each([1, 2, 7, 1000])("parses the same events from chunks of %d characters", (size) => {
  const parser = new EventParser();
  const events = [];
  for (let at = 0; at < STREAM.length; at += size) events.push(...parser.parse(STREAM.slice(at, at + size)));
  expect(events).toEqual([
    { event: "job", data: '{"id":"a"}' },
    { event: "jobs", data: "{\n}" },
  ]);
  expect([parser.lastId, parser.retry]).toEqual(["43", 3000]);
});

it("keeps an incomplete event until the next chunk", () => {
  const parser = new EventParser();
  expect(parser.parse("data: half")).toEqual([]);
  expect(parser.parse(" and half\n\n")).toEqual([{ event: "message", data: "half and half" }]);
});
