import { expect, it } from "vitest";
import { countOutcomes, nextStage, sampleSize } from "./replayStages";

it("replays 5 % in the second stage, at most one request", () => {
  expect([sampleSize(100), sampleSize(101), sampleSize(1_000_000)]).toEqual([5, 6, 1_000]);
});

it("skips the second stage if it would cover everything that is left", () => {
  expect([sampleSize(1), sampleSize(2)]).toEqual([0, 0]);
  expect([nextStage("one", 1), nextStage("one", 2), nextStage("one", 100), nextStage("sample", 100), nextStage("rest", 100)]).toEqual([null, "rest", "sample", "rest", null]);
});

it("counts a job that waits for a retry as unfinished", () => {
  expect(countOutcomes(["succeeded", "retrying", "dead", "ready", "running"])).toEqual({ succeeded: 1, dead: 1, unfinished: 3 });
});
