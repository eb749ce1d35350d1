import { expect, it } from "vitest";
import { parseRate, writeRate } from "./rates";

it("reads what people write", () => {
  expect(parseRate("10/s")).toEqual({ limit: 10, per: 1 });
  expect(parseRate(" 100 / 5m ")).toEqual({ limit: 100, per: 300 });
  expect(parseRate("")).toBeNull();
  for (const wrong of ["10", "x/s", "0/s", "10/0s", "10/y", "-1/s", "10/s; drop"]) expect(parseRate(wrong)).toBeUndefined();
});

it("writes what it reads", () => {
  for (const text of ["10/s", "100/5m", "1/h", "3/90s", "2/d", "7/0.5s"]) expect(writeRate(parseRate(text) ?? null)).toBe(text);
  expect(writeRate(null)).toBe("");
});
