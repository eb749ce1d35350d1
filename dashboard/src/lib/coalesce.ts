/** Batches items, so that a burst of any size is delivered at most once per interval. */

export class Coalescer<T> {
  private pending: T[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastFlush = Number.NEGATIVE_INFINITY;
  private overflowed = false;

  constructor(
    private readonly deliver: (items: T[], overflowed: boolean) => void,
    private readonly interval: number,
    private readonly maxItems = 2_000,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Add an item. The first one after an idle interval is delivered almost immediately. */
  add(item: T): void {
    if (this.pending.length < this.maxItems) this.pending.push(item);
    else this.overflowed = true;
    if (this.timer === undefined) {
      const delay = Math.max(50, this.lastFlush + this.interval - this.now());
      this.timer = setTimeout(() => this.flush(), delay);
    }
  }

  /** Deliver the pending items now. */
  flush(): void {
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.pending.length && !this.overflowed) return;
    const items = this.pending;
    const overflowed = this.overflowed;
    this.pending = [];
    this.overflowed = false;
    this.lastFlush = this.now();
    this.deliver(items, overflowed);
  }

  /** Discard the pending items. */
  stop(): void {
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
    this.pending = [];
    this.overflowed = false;
  }
}
