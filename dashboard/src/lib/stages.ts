/** A replay in stages: one, then a twentieth, then all that is left. Whoever errs at the first has lost nothing. */

export type Stage = "one" | "some" | "rest";
export const STAGES: readonly Stage[] = ["one", "some", "rest"];

const PART = 0.05;
/** As many as one request may name. */
const MOST = 1_000;

/** How many the second stage takes of a group that had `count` at first; none if that would be nearly all of it. */
export function someOf(count: number): number {
  const part = Math.min(MOST, Math.ceil(count * PART));
  return count - 1 <= part ? 0 : part;
}

/** The stage that comes after this one, in a group of so many; null after the last. */
export function following(stage: Stage, count: number): Stage | null {
  if (stage === "rest" || count <= 1) return null;
  return stage === "one" && someOf(count) > 0 ? "some" : "rest";
}

/** What became of those that were run again. */
export interface Fate {
  succeeded: number;
  dead: number;
  waiting: number;
}

/** Counts them by what they came to: what failed and waits for another attempt is not decided yet. */
export function fateOf(statuses: readonly string[]): Fate {
  const fate: Fate = { succeeded: 0, dead: 0, waiting: 0 };
  for (const status of statuses) {
    if (status === "succeeded") fate.succeeded += 1;
    else if (status === "dead" || status === "cancelled") fate.dead += 1;
    else fate.waiting += 1;
  }
  return fate;
}
