import { expect, it } from "vitest";
import { sparkPath } from "./sparkline";

it("runs from left to right with the highest value at the top", () => {
  expect(sparkPath([0, 5, 10], 20, 10)).toBe("M0 10L10 5L20 0");
});

it("is a line at the bottom if all values are zero, and empty for fewer than two values", () => {
  expect(sparkPath([0, 0], 20, 10)).toBe("M0 10L20 10");
  expect(sparkPath([3], 20, 10)).toBe("");
});
