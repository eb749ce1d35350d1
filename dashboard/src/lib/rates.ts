/** Rate limits in text form: "10/s", "100/m", "5 / 30s". */

interface Rate {
  limit: number;
  per: number;
}

const UNITS: Record<string, number> = { ms: 0.001, s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/** Parse a rate limit. Returns null for an empty text and undefined for an invalid one. */
export function parseRateLimit(text: string): Rate | null | undefined {
  const trimmed = text.trim();
  if (!trimmed) return null;
  const match = /^(\d+)\s*\/\s*(\d+(?:\.\d+)?)?\s*(ms|s|m|min|h|d)$/.exec(trimmed);
  const unit = UNITS[match?.[3] ?? ""];
  const limit = Number(match?.[1]);
  const per = Number(match?.[2] ?? 1) * (unit ?? 0);
  return match && unit && limit > 0 && per > 0 ? { limit, per } : undefined;
}

/** Format a rate limit in its shortest form. */
export function formatRateLimit(rate: Rate | null): string {
  if (!rate) return "";
  const [name, unit] = (["d", "h", "m", "s"] as const).map((unit) => [unit, UNITS[unit] as number] as const).find(([, seconds]) => rate.per >= seconds && rate.per % seconds === 0) ?? ["s", 1];
  const times = rate.per / unit;
  return `${rate.limit}/${times === 1 ? "" : times}${name}`;
}
