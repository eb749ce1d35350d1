import { describe, expect, it } from "vitest";
import { complete, instant, parseSearch, writeSearch } from "./search";

const STATUSES = ["ready", "dead"];
const read = (text: string) => parseSearch(text, STATUSES);

describe("reading", () => {
  it.each([
    ["", {}],
    ["status:dead queue:mail", { status: "dead", queue: "mail" }],
    ["is:dead after:2h BEFORE:2030-01-31", { status: "dead", created_after: "2h", created_before: "2030-01-31" }],
    ["mail.send dead", { type: "mail.send", status: "dead" }],
    ['tag:"two words" error:6976374d', { tag: "two words", error: "6976374d" }],
    ["type:a:b", { type: "a:b" }],
    ["mail:send", { type: "mail:send" }],
  ])("%s", (text, filters) => expect(read(text)).toEqual({ filters }));

  it("knows an id when it sees one", () => expect(read(" 01A1E261-290f-7926-a4f0-63dfdb3843f2 ").id).toBe("01a1e261-290f-7926-a4f0-63dfdb3843f2"));
  it.each(["status:gone", "queue:", "one two"])("says what is wrong with %s", (text) => expect(read(text).problem).toBeTruthy());
  it("reads what it wrote", () => {
    const filters = { queue: "mail", tag: "two words", created_after: "2h" };
    expect(read(writeSearch(filters)).filters).toEqual(filters);
  });
});

it("tells times exactly", () => {
  const now = Date.parse("2030-01-31T12:00:00Z");
  expect([instant("2h", now), instant("1.5d", now), instant("2030-01-31T00:00:00Z", now), instant("soon", now), instant("12", now)]).toEqual(
    ["2030-01-31T10:00:00.000Z", "2030-01-30T00:00:00.000Z", "2030-01-31T00:00:00.000Z", null, null],
  );
});

describe("completing", () => {
  const known = { queue: ["mail", "email"], status: STATUSES, type: ["mail.send"] };
  const texts = (text: string) => complete(text, text.length, known).items.map((each) => each.text);
  it("offers fields, not those that stand already", () => {
    expect(texts("que")).toEqual(["queue:"]);
    expect(texts("queue:mail t")).toEqual(["type:", "tag:", "tenant:"]);
  });
  it("offers values, those that begin so first", () => expect(texts("queue:mail")).toEqual(["queue:mail ", "queue:email "]));
  it("offers types for a bare word", () => expect(texts("send")).toEqual(["type:mail.send "]));
  it("replaces the word at the cursor alone", () => expect(complete("sta queue:mail", 3, known)).toEqual({ from: 0, items: [{ text: "status:", hint: "where it stands" }] }));
});
