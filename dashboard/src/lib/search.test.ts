import { describe, expect, it } from "vitest";
import { complete, parseTime, parseSearch, formatSearch } from "./search";

const STATUSES = ["ready", "dead"];
const parse = (text: string) => parseSearch(text, STATUSES);

describe("the search parser", () => {
  it.each([
    ["", {}],
    ["status:dead queue:mail", { status: "dead", queue: "mail" }],
    ["is:dead after:2h BEFORE:2030-01-31", { status: "dead", created_after: "2h", created_before: "2030-01-31" }],
    ["mail.send dead", { type: "mail.send", status: "dead" }],
    ['tag:"two words" error:6976374d', { tag: "two words", error: "6976374d" }],
    ["type:a:b", { type: "a:b" }],
    ["mail:send", { type: "mail:send" }],
  ])("%s", (text, filters) => expect(parse(text)).toEqual({ filters }));

  it("recognizes a job id", () => expect(parse(" 01A1E261-290f-7926-a4f0-63dfdb3843f2 ").id).toBe("01a1e261-290f-7926-a4f0-63dfdb3843f2"));
  it.each(["status:gone", "queue:", "one two"])("rejects %s", (text) => expect(parse(text).problem).toBeTruthy());
  it("parses formatted filters back", () => {
    const filters = { queue: "mail", tag: "two words", created_after: "2h" };
    expect(parse(formatSearch(filters)).filters).toEqual(filters);
  });
});

it("converts relative times and dates", () => {
  const now = Date.parse("2030-01-31T12:00:00Z");
  expect([parseTime("2h", now), parseTime("1.5d", now), parseTime("2030-01-31T00:00:00Z", now), parseTime("soon", now), parseTime("12", now)]).toEqual(
    ["2030-01-31T10:00:00.000Z", "2030-01-30T00:00:00.000Z", "2030-01-31T00:00:00.000Z", null, null],
  );
});

describe("completion", () => {
  const known = { queue: ["mail", "email"], status: STATUSES, type: ["mail.send"] };
  const texts = (text: string) => complete(text, text.length, known).items.map((item) => item.text);
  it("suggests fields that are not in use yet", () => {
    expect(texts("que")).toEqual(["queue:"]);
    expect(texts("queue:mail t")).toEqual(["type:", "tag:", "tenant:"]);
  });
  it("suggests values, prefix matches first", () => expect(texts("queue:mail")).toEqual(["queue:mail ", "queue:email "]));
  it("suggests types for a word without a field", () => expect(texts("send")).toEqual(["type:mail.send "]));
  it("replaces only the word at the cursor", () => expect(complete("sta queue:mail", 3, known)).toEqual({ from: 0, items: [{ text: "status:", hint: "job status" }] }));
});
