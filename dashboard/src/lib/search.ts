/** What is typed into the search for jobs: `status:dead queue:mail`, an id, or a type. It and the address say the same. */

export const FIELDS = ["status", "queue", "type", "tag", "tenant", "error", "created_after", "created_before"] as const;
export type Field = (typeof FIELDS)[number];
export type Filters = Partial<Record<Field, string>>;

/** Words that stand for a field, beside its own name. */
const ALIASES: Record<string, Field> = { is: "status", state: "status", after: "created_after", before: "created_before", since: "created_after", until: "created_before", fingerprint: "error" };
const NAMES: Record<string, Field> = { ...Object.fromEntries(FIELDS.map((field) => [field, field])), ...ALIASES };
const SHOWN: Partial<Record<Field, string>> = { created_after: "after", created_before: "before" };
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const WORD = /(?:[^\s"]|"[^"]*"?)+/g;

export interface Query {
  filters: Filters;
  /** A whole id: there is nothing to search for. */
  id?: string;
  /** What was not understood, in words. */
  problem?: string;
}

export function parseSearch(text: string, statuses: readonly string[]): Query {
  const filters: Filters = {};
  for (const word of text.match(WORD) ?? []) {
    const colon = word.indexOf(":");
    const name = colon > 0 ? NAMES[word.slice(0, colon).toLowerCase()] : undefined;
    if (name === undefined) {
      const value = unquoted(word);
      if (UUID.test(value)) return { filters: {}, id: value.toLowerCase() };
      if (statuses.includes(value)) filters.status = value;
      else if (filters.type === undefined) filters.type = value;
      else return { filters, problem: `“${value}” has no field: write type:, queue:, tag: or another before it.` };
      continue;
    }
    const value = unquoted(word.slice(colon + 1));
    if (!value) return { filters, problem: `${word.slice(0, colon)}: needs a value.` };
    if (name === "status" && !statuses.includes(value)) return { filters, problem: `There is no status “${value}”: ${statuses.join(", ")}.` };
    filters[name] = value;
  }
  return { filters };
}

/** The other way: what the search shows for the filters of an address. The status has tabs of its own. */
export function writeSearch(filters: Filters): string {
  return FIELDS.filter((field) => field !== "status")
    .flatMap((field) => {
      const value = filters[field];
      return value ? [`${SHOWN[field] ?? field}:${/\s/.test(value) ? `"${value}"` : value}`] : [];
    })
    .join(" ");
}

/** Times may be told as «2h» or «3d» ago; the API wants them exact. Null if it is no time. */
export function instant(text: string, now: number): string | null {
  const ago = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text);
  if (ago) {
    const unit = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }[ago[2] as "s"];
    return new Date(now - Number(ago[1]) * unit * 1000).toISOString();
  }
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

export interface Suggestion {
  /** What is put in the place of the word that is being written. */
  text: string;
  hint: string;
}

const HINTS: Record<string, string> = { status: "where it stands", queue: "name of a queue", type: "name of a type", tag: "a tag", tenant: "whose", error: "fingerprint of an error", after: "submitted after: 2h, 2030-01-31", before: "submitted before" };

/** What may come next, for the word that ends at the cursor. */
export function complete(text: string, at: number, known: Partial<Record<Field, readonly string[]>>): { from: number; items: Suggestion[] } {
  const from = text.slice(0, at).search(/[^\s"]*$/);
  const word = text.slice(from, at);
  const colon = word.indexOf(":");
  if (colon < 0) {
    const names = Object.keys(HINTS).filter((name) => name.startsWith(word.toLowerCase()) && !new RegExp(`(^|\\s)${name}:`).test(text));
    const items: Suggestion[] = names.map((name) => ({ text: `${name}:`, hint: HINTS[name] as string }));
    if (word) for (const type of known.type ?? []) if (type.includes(word)) items.push({ text: `type:${type} `, hint: "type" });
    return { from, items: items.slice(0, 10) };
  }
  const name = NAMES[word.slice(0, colon).toLowerCase()];
  const begun = word.slice(colon + 1).toLowerCase();
  const values = name === undefined ? [] : (known[name] ?? []);
  const items = values.filter((value) => value.toLowerCase().includes(begun)).sort((a, b) => Number(b.startsWith(begun)) - Number(a.startsWith(begun)));
  return { from, items: items.slice(0, 10).map((value) => ({ text: `${word.slice(0, colon)}:${value} `, hint: "" })) };
}

function unquoted(text: string): string {
  return text.replaceAll('"', "");
}
