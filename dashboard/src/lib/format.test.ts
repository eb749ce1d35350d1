import { describe, expect, it } from "vitest";
import { secondsBetween, formatBytes, formatCompact, formatExactTime, formatPercent, pluralize, formatRate, formatRelativeTime, formatDuration } from "./format";

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
  ])("formats %s as %s", (at, expected) => expect(formatRelativeTime(at, NOW)).toBe(expected));

  it("formats the exact time with its zone, and returns other text unchanged", () => {
    expect(formatExactTime("2030-01-31T12:00:00.123456Z")).toMatch(/2030.*123/);
    expect(formatExactTime("soon")).toBe("soon");
  });
});

it.each([
  [null, "–"], [0, "0 ms"], [0.0123, "12 ms"], [4.21, "4.2 s"], [59.4, "59 s"], [59.9, "1 min"], [200, "3 min 20 s"], [7_500, "2 h 5 min"], [90_000, "1 d 1 h"],
])("formats %s seconds as %s", (seconds, expected) => expect(formatDuration(seconds)).toBe(expected));

it("formats numbers for narrow columns", () => {
  expect([formatBytes(84_200), formatBytes(84_200_000), formatBytes(1_260_000_000)]).toEqual(["84 kB", "84 MB", "1.3 GB"]);
  expect([formatCompact(9_999), formatCompact(12_345), formatRate(0), formatRate(0.01), formatRate(3.04), formatRate(12.4), formatPercent(0.0312), formatPercent(null), formatPercent(0.0001), pluralize(1, "job"), pluralize(1_200, "job")]).toEqual(
    ["9,999", "12.3K", "0", "<0.1", "3", "12", "3.1 %", "–", "<0.1 %", "1 job", "1,200 jobs"],
  );
  expect(secondsBetween("2030-01-31T12:00:00Z", "2030-01-31T12:00:01.500Z")).toBe(1.5);
  expect(secondsBetween(null, "2030-01-31T12:00:01.500Z")).toBeNull();
});
