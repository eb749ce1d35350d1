import { describe, expect, it } from "vitest";
import { leafText, parseExact, stringifyExact } from "./json";

describe("numbers", () => {
  it.each(["9007199254740993", "-9007199254740993", "123456789012345678901234567890"])("keeps %s digit by digit", (text) => {
    expect(stringifyExact(parseExact(`{"id":${text}}`))).toBe(`{"id":${text}}`);
    expect(leafText(parseExact(text))).toBe(text);
  });

  it("leaves those alone that fit", () => {
    expect(parseExact("[9007199254740991, 1.5, -0, 1e3, 1234567890123456]")).toEqual([9007199254740991, 1.5, -0, 1000, 1234567890123456]);
  });
});

describe("the careful reader", () => {
  const LARGE = "12345678901234567890";
  it("reads all kinds of values", () => {
    const text = `{"a":[true,false,null,"\\u00e9\\n\\"",{}],"b":[],"big":${LARGE}, "nested" : {"x": -1.25e-2}}`;
    expect(parseExact(text)).toEqual({ a: [true, false, null, 'é\n"', {}], b: [], big: BigInt(LARGE), nested: { x: -0.0125 } });
  });

  it("takes __proto__ as a field like any other", () => {
    const found = parseExact(`{"__proto__":{"evil":1},"n":${LARGE}}`) as { [key: string]: unknown };
    expect(Object.keys(found)).toEqual(["__proto__", "n"]);
    expect(({} as { evil?: unknown }).evil).toBeUndefined();
    expect((found as { evil?: unknown }).evil).toBeUndefined();
  });

  it.each([`[${LARGE}`, `{"a":${LARGE},}`, `${LARGE} x`, `{a:${LARGE}}`, `[0${LARGE}]`, `"${LARGE}`, `[${LARGE} ${LARGE}]`])("refuses %s", (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
  });

  it("refuses what is nested without end rather than break", () => {
    expect(() => parseExact(`${"[".repeat(50_000)}${LARGE}`)).toThrow("nested too deeply");
  });
});

it("shows what would hide, or turn the writing around", () => {
  expect(leafText("a\u202eb\u200bc é 日本")).toBe('"a\\u202eb\\u200bc é 日本"');
});

it("writes with an indent for people", () => {
  expect(stringifyExact({ a: [1n, { b: null }], c: {} }, 2)).toBe('{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {}\n}');
});
