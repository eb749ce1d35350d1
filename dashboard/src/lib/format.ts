/** How times, spans and numbers are shown. Everything is in the viewer's own zone and language. */

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

/** «3 min. ago», «in 12 s», «now». */
export function relative(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  if (size < 60) return told(seconds, "s");
  if (size < 3_600) return told(seconds / 60, "min");
  if (size < 86_400) return told(seconds / 3_600, "h");
  if (size < 86_400 * 100) return told(seconds / 86_400, "d");
  if (size < 86_400 * 730) return told(seconds / (86_400 * 30.44), "months");
  return told(seconds / (86_400 * 365.25), "years");
}

function told(value: number, unit: string): string {
  const shown = Math.trunc(Math.abs(value));
  return value < 0 ? `${shown} ${unit} ago` : `in ${shown} ${unit}`;
}

/** The exact time, in the viewer's zone. */
export function exact(iso: string): string {
  const at = Date.parse(iso);
  return Number.isNaN(at) ? iso : EXACT.format(at);
}

/** The time of day. */
export function clock(iso: string): string {
  return CLOCK.format(Date.parse(iso));
}

/** A span in seconds: «850 ms», «4.2 s», «3 min 20 s», «2 h 5 min», «4 d». */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.0005) return "0 ms";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return two(Math.floor(whole / 3_600), "h", Math.floor((whole % 3_600) / 60), "min");
  return two(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3_600), "h");
}

function two(more: number, unit: string, less: number, small: string): string {
  return less ? `${more} ${unit} ${less} ${small}` : `${more} ${unit}`;
}

/** Seconds between two times; null while one of them is not known. */
export function between(from: string | null | undefined, to: string | null | undefined): number | null {
  return from && to ? (Date.parse(to) - Date.parse(from)) / 1000 : null;
}

/** A whole number, with its thousands apart. */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** A number where there is little room: «12.3K». */
export function compact(value: number): string {
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value);
}

/** So many each second: «0», «0.4», «12», «1.2K». */
export function rate(value: number): string {
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  if (value < 10) return value.toFixed(1).replace(/\.0$/, "");
  return compact(Math.round(value));
}

/** A part of one, as a percentage. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.001) return "<0.1 %";
  return `${(value * 100).toFixed(value < 0.1 ? 1 : 0).replace(/\.0$/, "")} %`;
}

/** So many bytes: «84 MB». */
export function bytes(value: number): string {
  if (value < 999_500) return `${Math.round(value / 1_000)} kB`;
  if (value < 999_500_000) return `${Math.round(value / 1_000_000)} MB`;
  return `${(value / 1_000_000_000).toFixed(1)} GB`;
}

/** One word for one, another for more. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
