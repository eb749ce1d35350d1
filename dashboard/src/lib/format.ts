/** Formatting of times, durations and numbers. Times are shown in the time zone of the browser. */

const EXACT = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  timeZoneName: "short",
});
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const WHOLE = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Format a time relative to now: "3 min ago", "in 12 s", "now". */
export function formatRelativeTime(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  if (size < 60) return withUnit(seconds, "s");
  if (size < 3_600) return withUnit(seconds / 60, "min");
  if (size < 86_400) return withUnit(seconds / 3_600, "h");
  if (size < 86_400 * 100) return withUnit(seconds / 86_400, "d");
  if (size < 86_400 * 730) return withUnit(seconds / (86_400 * 30.44), "months");
  return withUnit(seconds / (86_400 * 365.25), "years");
}

function withUnit(value: number, unit: string): string {
  const rounded = Math.trunc(Math.abs(value));
  return value < 0 ? `${rounded} ${unit} ago` : `in ${rounded} ${unit}`;
}

/** Format a time to the millisecond, or return the text unchanged if it is not a time. */
export function formatExactTime(iso: string): string {
  const at = Date.parse(iso);
  return Number.isNaN(at) ? iso : EXACT.format(at);
}

/** Format the time of day. */
export function formatClock(iso: string): string {
  return CLOCK.format(Date.parse(iso));
}

/** Format a duration in seconds: "850 ms", "4.2 s", "3 min 20 s", "2 h 5 min", "4 d". */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.0005) return "0 ms";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 3_600) return twoUnits(Math.floor(rounded / 60), "min", rounded % 60, "s");
  if (rounded < 86_400) return twoUnits(Math.floor(rounded / 3_600), "h", Math.floor((rounded % 3_600) / 60), "min");
  return twoUnits(Math.floor(rounded / 86_400), "d", Math.floor((rounded % 86_400) / 3_600), "h");
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

/** Return the seconds between two times, or null if one of them is missing. */
export function secondsBetween(from: string | null | undefined, to: string | null | undefined): number | null {
  return from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : null;
}

/** Format an integer with thousands separators. */
export function formatCount(value: number): string {
  return WHOLE.format(value);
}

/** Format a number for narrow columns: "12.3K". */
export function formatCompact(value: number): string {
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value);
}

/** Format a rate per second: "0", "0.4", "12", "1.2K". */
export function formatRate(value: number): string {
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  if (value < 10) return value.toFixed(1).replace(/\.0$/, "");
  return formatCompact(Math.round(value));
}

/** Format a fraction as a percentage. */
export function formatPercent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.001) return "<0.1 %";
  return `${(value * 100).toFixed(value < 0.1 ? 1 : 0).replace(/\.0$/, "")} %`;
}

/** Format a number of bytes: "84 MB". */
export function formatBytes(value: number): string {
  if (value < 999_500) return `${Math.round(value / 1_000)} kB`;
  if (value < 999_500_000) return `${Math.round(value / 1_000_000)} MB`;
  return `${(value / 1_000_000_000).toFixed(1)} GB`;
}

/** Format a number with its noun in the singular or plural. */
export function pluralize(number: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(number)} ${number === 1 ? singular : plural}`;
}
