import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Coalescer } from "./coalesce";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("hands over 500 changes a second once a second, and loses none", () => {
  const handed: number[] = [];
  const coalescer = new Coalescer<number>((items) => handed.push(items.length), 1_000, 2_000, () => Date.now());
  for (let change = 0; change < 2_500; change += 1) {
    coalescer.add(change);
    vi.advanceTimersByTime(2);
  }
  vi.advanceTimersByTime(1_000);
  expect(handed.reduce((sum, each) => sum + each, 0)).toBe(2_500);
  expect(handed.length).toBeLessThanOrEqual(7);
});

it("says so when there was too much to keep", () => {
  const told: [number, boolean][] = [];
  const coalescer = new Coalescer<number>((items, lost) => told.push([items.length, lost]), 1_000, 3, () => Date.now());
  for (let change = 0; change < 5; change += 1) coalescer.add(change);
  coalescer.flush();
  coalescer.add(6);
  coalescer.flush();
  expect(told).toEqual([[3, true], [1, false]]);
});

it("forgets when it is stopped", () => {
  const hand = vi.fn();
  const coalescer = new Coalescer<number>(hand, 1_000);
  coalescer.add(1);
  coalescer.stop();
  vi.advanceTimersByTime(5_000);
  expect(hand).not.toHaveBeenCalled();
});
