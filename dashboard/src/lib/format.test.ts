import { describe, expect, it } from "vitest";
import { between, bytes, compact, exact, percent, plural, rate, relative, span } from "./format";

const NOW = Date.parse("2030-01-31T12:00:00Z");

describe("relative times", () => {
  it.each([
    ["2030-01-31T12:00:00.400Z", "now"],
    ["2030-01-31T11:59:50Z", "10 s ago"],
    ["2030-01-31T12:01:30Z", "in 1 min"],
    ["2030-01-31T09:00:00Z", "3 h ago"],
    ["2030-01-29T12:00:00Z", "2 d ago"],
    ["2030-01-31T13:00:00+01:00", "now"],
    ["2030-05-01T12:00:00Z", "in 90 d"],
    ["2029-06-01T12:00:00Z", "8 months ago"],
    ["2034-02-01T12:00:00Z", "in 4 years"],
  ])("tells %s as %s", (at, told) => expect(relative(at, NOW)).toBe(told));

  it("tells the exact time with its zone, and gives back what is none", () => {
    expect(exact("2030-01-31T12:00:00.123456Z")).toMatch(/2030.*123/);
    expect(exact("soon")).toBe("soon");
  });
});

it.each([
  [null, "–"], [0, "0 ms"], [0.0123, "12 ms"], [4.21, "4.2 s"], [59.4, "59 s"], [59.9, "1 min"], [200, "3 min 20 s"], [7_500, "2 h 5 min"], [90_000, "1 d 1 h"],
])("tells %s seconds as %s", (seconds, told) => expect(span(seconds)).toBe(told));

it("tells numbers for little room", () => {
  expect([bytes(84_200), bytes(84_200_000), bytes(1_260_000_000)]).toEqual(["84 kB", "84 MB", "1.3 GB"]);
  expect([compact(9_999), compact(12_345), rate(0), rate(0.01), rate(3.04), rate(12.4), percent(0.0312), percent(null), percent(0.0001), plural(1, "job"), plural(1_200, "job")]).toEqual(
    ["9,999", "12.3K", "0", "<0.1", "3", "12", "3.1 %", "–", "<0.1 %", "1 job", "1,200 jobs"],
  );
  expect(between("2030-01-31T12:00:00Z", "2030-01-31T12:00:01.500Z")).toBe(1.5);
  expect(between(null, "2030-01-31T12:00:01.500Z")).toBeNull();
});
