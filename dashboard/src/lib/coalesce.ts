/** Gathers what comes quickly and hands it on slowly: however many changes a second, one hand-over each interval. */

export class Coalescer<T> {
  private waiting: T[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = Number.NEGATIVE_INFINITY;
  private lost = false;

  constructor(
    private readonly hand: (items: T[], lost: boolean) => void,
    private readonly interval: number,
    private readonly most = 2_000,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The first after a quiet time goes at once, the rest together. */
  add(item: T): void {
    if (this.waiting.length < this.most) this.waiting.push(item);
    else this.lost = true;
    if (this.timer === undefined) {
      const wait = Math.max(50, this.last + this.interval - this.now());
      this.timer = setTimeout(() => this.flush(), wait);
    }
  }

  /** Hand over now. */
  flush(): void {
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.waiting.length && !this.lost) return;
    const items = this.waiting;
    const lost = this.lost;
    this.waiting = [];
    this.lost = false;
    this.last = this.now();
    this.hand(items, lost);
  }

  /** Forget what waits. */
  stop(): void {
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting = [];
    this.lost = false;
  }
}
