import { expect, it } from "vitest";
import { sparkPath } from "./spark";

it("goes from left to right, the highest at the top", () => {
  expect(sparkPath([0, 5, 10], 20, 10)).toBe("M0 10L10 5L20 0");
});

it("lies on the ground where nothing happened, and is not there without values", () => {
  expect(sparkPath([0, 0], 20, 10)).toBe("M0 10L20 10");
  expect(sparkPath([3], 20, 10)).toBe("");
});
