import { expect, it } from "vitest";
import { EventReader } from "./sse";

const STREAM = 'retry: 3000\nid: 41\n\nid: 42\nevent: job\ndata: {"id":"a"}\n\n: beat\n\nid: 43\r\nevent: jobs\r\ndata: {\r\ndata: }\r\n\r\n';

it.each([1, 2, 7, 1000])("reads the same in pieces of %d", (size) => {
  const reader = new EventReader();
  const found = [];
  for (let at = 0; at < STREAM.length; at += size) found.push(...reader.feed(STREAM.slice(at, at + size)));
  expect(found).toEqual([
    { event: "job", data: '{"id":"a"}' },
    { event: "jobs", data: "{\n}" },
  ]);
  expect([reader.lastId, reader.retry]).toEqual(["43", 3000]);
});

it("keeps what is not complete for later", () => {
  const reader = new EventReader();
  expect(reader.feed("data: half")).toEqual([]);
  expect(reader.feed(" and half\n\n")).toEqual([{ event: "message", data: "half and half" }]);
});
