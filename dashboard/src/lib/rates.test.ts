import { expect, it } from "vitest";
import { parseRateLimit, formatRateLimit } from "./rates";

it("parses rate limits", () => {
  expect(parseRateLimit("10/s")).toEqual({ limit: 10, per: 1 });
  expect(parseRateLimit(" 100 / 5m ")).toEqual({ limit: 100, per: 300 });
  expect(parseRateLimit("")).toBeNull();
  for (const invalid of ["10", "x/s", "0/s", "10/0s", "10/y", "-1/s", "10/s; drop"]) expect(parseRateLimit(invalid)).toBeUndefined();
});

it("formats a parsed rate limit back to the same text", () => {
  for (const text of ["10/s", "100/5m", "1/h", "3/90s", "2/d", "7/0.5s"]) expect(formatRateLimit(parseRateLimit(text) ?? null)).toBe(text);
  expect(formatRateLimit(null)).toBe("");
});
