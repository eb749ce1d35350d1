import { describe, expect, it } from "vitest";
import type { Json } from "../api/types.gen";
import { type Field, fieldsOf, fill, gather } from "./schema";

const SCHEMA: { [key: string]: Json } = {
  type: "object",
  properties: {
    to: { type: "string", description: "whom" },
    order: { type: "integer", minimum: 1 },
    weight: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
    urgent: { type: "boolean", default: false },
    size: { $ref: "#/$defs/Size", default: "A4" },
    lines: { type: "array", items: { type: "integer" } },
    address: { $ref: "#/$defs/Address" },
    anything: {},
    again: { $ref: "#/$defs/Again" },
  },
  required: ["to", "order", "lines"],
  $defs: { Size: { enum: ["A4", "A5"] }, Address: { type: "object", properties: { street: { type: "string" }, zip: {} } }, Again: { $ref: "#/$defs/Again" } },
};
const fields = fieldsOf(SCHEMA) as Field[];

describe("the fields of a schema", () => {
  it("are of the kind that the schema says, through references and null", () => {
    expect(fields.map(({ name, kind, required, nullable, otherwise }) => [name, kind, required, nullable, otherwise])).toEqual([
      ["to", "text", true, false, undefined],
      ["order", "integer", true, false, undefined],
      ["weight", "number", false, true, "null"],
      ["urgent", "switch", false, false, "false"],
      ["size", "choice", false, false, '"A4"'],
      ["lines", "json", true, false, undefined],
      ["address", "json", false, false, undefined],
      ["anything", "json", false, false, undefined],
      ["again", "json", false, false, undefined],
    ]);
    expect(fields.find((field) => field.name === "address")?.description).toBe("an object with street, zip");
  });
  it.each([[null], [undefined], [{}], [{ type: "string" }], [{ $ref: "#/nowhere" }]])("are none where %j describes no object", (schema) => expect(fieldsOf(schema)).toBeNull());
});

describe("a payload in its fields", () => {
  const payload = { to: "a@b", order: 9007199254740993n, weight: null, urgent: true, size: "A5", lines: [1, 2], not_described: { deep: 1n } } as Json;
  it("comes back as it was, with exact numbers and with what has no field", () => {
    const filled = fill(fields, payload);
    expect("problem" in filled).toBe(false);
    expect(gather(fields, filled as never)).toEqual({ payload });
  });
  it("leaves out what is left empty, and says what is needed", () => {
    expect(gather(fields, { texts: { to: "x", order: "3", lines: "[]" }, kept: {} })).toEqual({ payload: { to: "x", order: 3, lines: [] } });
    expect(gather(fields, { texts: {}, kept: {} })).toEqual({ problems: { to: "This is needed. An empty text can be given as JSON.", order: "This is needed.", lines: "This is needed." } });
  });
  it.each([
    ["order", "1.5", "A whole number is needed."],
    ["order", "1e3", "A whole number is needed."],
    ["order", "0", "It must be 1 or more."],
    ["weight", "heavy", "A number is needed."],
    ["urgent", "1", "Choose true or false."],
    ["size", '"A3"', "Choose one of these."],
    ["lines", "{}", "A list is needed, such as [1, 2]."],
    ["address", "[]", "An object is needed, such as {}."],
    ["address", "{", "Not JSON: this is no JSON"],
  ])("refuses %s as %s: %s", (name, text, problem) => {
    const found = gather(fields, { texts: { to: "x", order: "3", lines: "[]", [name]: text }, kept: {} }) as { problems: Record<string, string> };
    expect(Object.keys(found.problems)).toEqual([name]);
    if (!problem.startsWith("Not JSON")) expect(found.problems[name]).toBe(problem);
  });
  it.each([[[1], "no object"], [{ order: "three" }, "“order”"], [{ to: 5 }, "“to”"]] as [Json, string][])("does not take %j", (given, said) => {
    expect((fill(fields, given) as { problem: string }).problem).toContain(said);
  });
});
