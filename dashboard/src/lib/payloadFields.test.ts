import { describe, expect, it } from "vitest";
import type { Json } from "../api/types.gen";
import { type Field, fieldsOf, fillFields, readFields } from "./payloadFields";

const SCHEMA: { [key: string]: Json } = {
  type: "object",
  properties: {
    to: { type: "string", description: "recipient" },
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
  it("have the kind given by the schema, through references and nullable types", () => {
    expect(fields.map(({ name, kind, required, nullable, defaultText }) => [name, kind, required, nullable, defaultText])).toEqual([
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
  it.each([[null], [undefined], [{}], [{ type: "string" }], [{ $ref: "#/nowhere" }]])("are null if %j does not describe an object", (schema) => expect(fieldsOf(schema)).toBeNull());
});

describe("a payload in form fields", () => {
  const payload = { to: "a@b", order: 9007199254740993n, weight: null, urgent: true, size: "A5", lines: [1, 2], not_described: { deep: 1n } } as Json;
  it("is read back unchanged, with exact integers and parts that have no field", () => {
    const form = fillFields(fields, payload);
    expect("problem" in form).toBe(false);
    expect(readFields(fields, form as never)).toEqual({ payload });
  });
  it("omits empty optional fields, and reports missing required ones", () => {
    expect(readFields(fields, { texts: { to: "x", order: "3", lines: "[]" }, extra: {} })).toEqual({ payload: { to: "x", order: 3, lines: [] } });
    expect(readFields(fields, { texts: {}, extra: {} })).toEqual({ problems: { to: "Required. Switch to JSON to submit an empty string.", order: "Required.", lines: "Required." } });
  });
  it.each([
    ["order", "1.5", "Enter an integer."],
    ["order", "1e3", "Enter an integer."],
    ["order", "0", "Must be 1 or more."],
    ["weight", "heavy", "Enter a number."],
    ["urgent", "1", "Choose true or false."],
    ["size", '"A3"', "Choose one of the options."],
    ["lines", "{}", "Enter a list, such as [1, 2]."],
    ["address", "[]", "Enter an object, such as {}."],
    ["address", "{", "Invalid JSON"],
  ])("rejects %s = %s: %s", (name, text, problem) => {
    const result = readFields(fields, { texts: { to: "x", order: "3", lines: "[]", [name]: text }, extra: {} }) as { problems: Record<string, string> };
    expect(Object.keys(result.problems)).toEqual([name]);
    if (!problem.startsWith("Invalid JSON")) expect(result.problems[name]).toBe(problem);
  });
  it.each([[[1], "not an object"], [{ order: "three" }, "“order”"], [{ to: 5 }, "“to”"]] as [Json, string][])("rejects %j", (payload, message) => {
    expect((fillFields(fields, payload) as { problem: string }).problem).toContain(message);
  });
});
