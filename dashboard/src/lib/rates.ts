/** Rates of starts as people write them: «10/s», «100/m», «5 / 30s». */

interface Rate {
  limit: number;
  per: number;
}

const UNITS: Record<string, number> = { ms: 0.001, s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/** The rate that a text says; null if it is empty, undefined if it says none. */
export function parseRate(text: string): Rate | null | undefined {
  const given = text.trim();
  if (!given) return null;
  const found = /^(\d+)\s*\/\s*(\d+(?:\.\d+)?)?\s*(ms|s|m|min|h|d)$/.exec(given);
  const unit = UNITS[found?.[3] ?? ""];
  const limit = Number(found?.[1]);
  const per = Number(found?.[2] ?? 1) * (unit ?? 0);
  return found && unit && limit > 0 && per > 0 ? { limit, per } : undefined;
}

/** The shortest way to write a rate. */
export function writeRate(rate: Rate | null): string {
  if (!rate) return "";
  const [name, unit] = (["d", "h", "m", "s"] as const).map((each) => [each, UNITS[each] as number] as const).find(([, seconds]) => rate.per >= seconds && rate.per % seconds === 0) ?? ["s", 1];
  const times = rate.per / unit;
  return `${rate.limit}/${times === 1 ? "" : times}${name}`;
}
