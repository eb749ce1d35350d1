/** Query language of the job search: `status:dead queue:mail`, an id, or a type. It maps one to one to the address. */

export const FIELDS = ["status", "queue", "type", "tag", "tenant", "error", "created_after", "created_before"] as const;
export type Field = (typeof FIELDS)[number];
export type Filters = Partial<Record<Field, string>>;

/** Alternative names of fields. */
const ALIASES: Record<string, Field> = { is: "status", state: "status", after: "created_after", before: "created_before", since: "created_after", until: "created_before", fingerprint: "error" };
const NAMES: Record<string, Field> = { ...Object.fromEntries(FIELDS.map((field) => [field, field])), ...ALIASES };
const SHORT_NAMES: Partial<Record<Field, string>> = { created_after: "after", created_before: "before" };
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const WORD = /(?:[^\s"]|"[^"]*"?)+/g;

export interface Query {
  filters: Filters;
  /** Job id, if the text is one. */
  id?: string;
  /** Error message, if the text is invalid. */
  problem?: string;
}

export function parseSearch(text: string, statuses: readonly string[]): Query {
  const filters: Filters = {};
  for (const word of text.match(WORD) ?? []) {
    const colon = word.indexOf(":");
    const name = colon > 0 ? NAMES[word.slice(0, colon).toLowerCase()] : undefined;
    if (name === undefined) {
      const value = unquote(word);
      if (UUID.test(value)) return { filters: {}, id: value.toLowerCase() };
      if (statuses.includes(value)) filters.status = value;
      else if (filters.type === undefined) filters.type = value;
      else return { filters, problem: `“${value}” needs a field name: put type:, queue: or tag: before it.` };
      continue;
    }
    const value = unquote(word.slice(colon + 1));
    if (!value) return { filters, problem: `${word.slice(0, colon)}: needs a value.` };
    if (name === "status" && !statuses.includes(value)) return { filters, problem: `Unknown status “${value}”. Use one of ${statuses.join(", ")}.` };
    filters[name] = value;
  }
  return { filters };
}

/** Format filters as search text, without the status, which has its own tabs. */
export function formatSearch(filters: Filters): string {
  return FIELDS.filter((field) => field !== "status")
    .flatMap((field) => {
      const value = filters[field];
      return value ? [`${SHORT_NAMES[field] ?? field}:${/\s/.test(value) ? `"${value}"` : value}`] : [];
    })
    .join(" ");
}

/** Convert "2h" (two hours ago), "3d" or a date to an ISO time. Returns null if the text is neither. */
export function parseTime(text: string, now: number): string | null {
  const ago = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text);
  if (ago) {
    const unit = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }[ago[2] as "s"];
    return new Date(now - Number(ago[1]) * unit * 1000).toISOString();
  }
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

export interface Suggestion {
  /** Text that replaces the word at the cursor. */
  text: string;
  hint: string;
}

const HINTS: Record<string, string> = { status: "job status", queue: "queue name", type: "job type", tag: "tag", tenant: "tenant name", error: "error fingerprint", after: "submitted after: 2h, 2030-01-31", before: "submitted before" };

/** Suggest completions for the word that ends at the cursor. */
export function complete(text: string, cursor: number, knownValues: Partial<Record<Field, readonly string[]>>): { from: number; items: Suggestion[] } {
  const from = text.slice(0, cursor).search(/[^\s"]*$/);
  const word = text.slice(from, cursor);
  const colon = word.indexOf(":");
  if (colon < 0) {
    const names = Object.keys(HINTS).filter((name) => name.startsWith(word.toLowerCase()) && !new RegExp(`(^|\\s)${name}:`).test(text));
    const items: Suggestion[] = names.map((name) => ({ text: `${name}:`, hint: HINTS[name] as string }));
    if (word) for (const type of knownValues.type ?? []) if (type.includes(word)) items.push({ text: `type:${type} `, hint: "type" });
    return { from, items: items.slice(0, 10) };
  }
  const name = NAMES[word.slice(0, colon).toLowerCase()];
  const prefix = word.slice(colon + 1).toLowerCase();
  const values = name === undefined ? [] : (knownValues[name] ?? []);
  const items = values.filter((value) => value.toLowerCase().includes(prefix)).sort((a, b) => Number(b.startsWith(prefix)) - Number(a.startsWith(prefix)));
  return { from, items: items.slice(0, 10).map((value) => ({ text: `${word.slice(0, colon)}:${value} `, hint: "" })) };
}

function unquote(text: string): string {
  return text.replaceAll('"', "");
}
