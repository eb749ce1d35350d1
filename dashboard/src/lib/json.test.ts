import { describe, expect, it } from "vitest";
import { formatLeaf, parseExact, stringifyExact } from "./json";

describe("numbers", () => {
  it.each(["9007199254740993", "-9007199254740993", "123456789012345678901234567890"])("keeps every digit of %s", (text) => {
    expect(stringifyExact(parseExact(`{"id":${text}}`))).toBe(`{"id":${text}}`);
    expect(formatLeaf(parseExact(text))).toBe(text);
  });

  it("parses safe integers and decimals into numbers", () => {
    expect(parseExact("[9007199254740991, 1.5, -0, 1e3, 1234567890123456]")).toEqual([9007199254740991, 1.5, -0, 1000, 1234567890123456]);
  });
});

describe("the exact parser", () => {
  const LARGE = "12345678901234567890";
  it("parses all kinds of values", () => {
    const text = `{"a":[true,false,null,"\\u00e9\\n\\"",{}],"b":[],"big":${LARGE}, "nested" : {"x": -1.25e-2}}`;
    expect(parseExact(text)).toEqual({ a: [true, false, null, 'é\n"', {}], b: [], big: BigInt(LARGE), nested: { x: -0.0125 } });
  });

  it("parses __proto__ as an ordinary field", () => {
    const parsed = parseExact(`{"__proto__":{"evil":1},"n":${LARGE}}`) as { [key: string]: unknown };
    expect(Object.keys(parsed)).toEqual(["__proto__", "n"]);
    expect(({} as { evil?: unknown }).evil).toBeUndefined();
    expect((parsed as { evil?: unknown }).evil).toBeUndefined();
  });

  it.each([`[${LARGE}`, `{"a":${LARGE},}`, `${LARGE} x`, `{a:${LARGE}}`, `[0${LARGE}]`, `"${LARGE}`, `[${LARGE} ${LARGE}]`])("rejects %s", (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
  });

  it("rejects JSON that is nested too deeply", () => {
    expect(() => parseExact(`${"[".repeat(50_000)}${LARGE}`)).toThrow("nested too deeply");
  });
});

it("escapes invisible characters and direction overrides", () => {
  expect(formatLeaf("a\u202eb\u200bc é 日本")).toBe('"a\\u202eb\\u200bc é 日本"');
});

it("indents its output", () => {
  expect(stringifyExact({ a: [1n, { b: null }], c: {} }, 2)).toBe('{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {}\n}');
});
