import { expect, it } from "vitest";
import { fateOf, following, someOf } from "./stages";

it("takes a twentieth after the first, never more than one request may name", () => {
  expect([someOf(100), someOf(101), someOf(1_000_000)]).toEqual([5, 6, 1_000]);
});

it("leaves the middle stage out where it would be all that is left", () => {
  expect([someOf(1), someOf(2)]).toEqual([0, 0]);
  expect([following("one", 1), following("one", 2), following("one", 100), following("some", 100), following("rest", 100)]).toEqual([null, "rest", "some", "rest", null]);
});

it("does not count what waits for another attempt as decided", () => {
  expect(fateOf(["succeeded", "retrying", "dead", "ready", "running"])).toEqual({ succeeded: 1, dead: 1, waiting: 3 });
});
