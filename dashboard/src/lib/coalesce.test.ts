import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Coalescer } from "./coalesce";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("delivers 500 items per second in one batch per second, without loss", () => {
  const batches: number[] = [];
  const coalescer = new Coalescer<number>((items) => batches.push(items.length), 1_000, 2_000, () => Date.now());
  for (let change = 0; change < 2_500; change += 1) {
    coalescer.add(change);
    vi.advanceTimersByTime(2);
  }
  vi.advanceTimersByTime(1_000);
  expect(batches.reduce((sum, size) => sum + size, 0)).toBe(2_500);
  expect(batches.length).toBeLessThanOrEqual(7);
});

it("reports an overflow when more items arrive than it keeps", () => {
  const batches: [number, boolean][] = [];
  const coalescer = new Coalescer<number>((items, overflowed) => batches.push([items.length, overflowed]), 1_000, 3, () => Date.now());
  for (let change = 0; change < 5; change += 1) coalescer.add(change);
  coalescer.flush();
  coalescer.add(6);
  coalescer.flush();
  expect(batches).toEqual([[3, true], [1, false]]);
});

it("discards pending items when it is stopped", () => {
  const deliver = vi.fn();
  const coalescer = new Coalescer<number>(deliver, 1_000);
  coalescer.add(1);
  coalescer.stop();
  vi.advanceTimersByTime(5_000);
  expect(deliver).not.toHaveBeenCalled();
});
