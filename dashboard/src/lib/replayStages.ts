/** Staged replay of a group of dead letters: one, then 5 %, then the rest, so that a wrong fix does little damage. */

export type Stage = "one" | "sample" | "rest";
export const STAGES: readonly Stage[] = ["one", "sample", "rest"];

const SAMPLE_FRACTION = 0.05;
/** Ids that one request may contain. */
const MAX_IDS = 1_000;

/** Size of the second stage for a group of `count`; 0 if the stage would cover everything that is left. */
export function sampleSize(count: number): number {
  const size = Math.min(MAX_IDS, Math.ceil(count * SAMPLE_FRACTION));
  return count - 1 <= size ? 0 : size;
}

/** The stage after this one in a group of `count`, or null after the last one. */
export function nextStage(stage: Stage, count: number): Stage | null {
  if (stage === "rest" || count <= 1) return null;
  return stage === "one" && sampleSize(count) > 0 ? "sample" : "rest";
}

/** Outcomes of replayed jobs. */
export interface ReplayCounts {
  succeeded: number;
  dead: number;
  unfinished: number;
}

/** Count replayed jobs by outcome. A job that waits for a retry is still unfinished. */
export function countOutcomes(statuses: readonly string[]): ReplayCounts {
  const counts: ReplayCounts = { succeeded: 0, dead: 0, unfinished: 0 };
  for (const status of statuses) {
    if (status === "succeeded") counts.succeeded += 1;
    else if (status === "dead" || status === "cancelled") counts.dead += 1;
    else counts.unfinished += 1;
  }
  return counts;
}
