/**
 * A payload as a form, from the JSON Schema of its type. What the form cannot show it keeps, and what a schema does not
 * say it does not ask: the schema is told by workers, and the worker decides what it takes.
 */
import type { Json } from "../api/types.gen";
import { parseExact, stringifyExact } from "./json";

type Fields = { [key: string]: Json };
export type Kind = "text" | "integer" | "number" | "switch" | "choice" | "json";

export interface Field {
  name: string;
  kind: Kind;
  required: boolean;
  nullable: boolean;
  /** What may be chosen, for a choice. */
  options: Json[];
  description: string;
  /** What holds if it is left empty, as JSON. */
  otherwise: string | undefined;
  /** For `json`: what it must be, if only one will do. */
  shape: "array" | "object" | undefined;
  least: number | undefined;
  most: number | undefined;
  pattern: string | undefined;
}

/** The fields of a payload; null if the schema does not describe an object with named parts. */
export function fieldsOf(schema: Fields | null | undefined): Field[] | null {
  if (!isFields(schema)) return null;
  const whole = resolved(schema, schema);
  if (!isFields(whole.properties)) return null;
  const required = Array.isArray(whole.required) ? whole.required : [];
  return Object.entries(whole.properties).map(([name, part]) => fieldOf(name, isFields(part) ? part : {}, required.includes(name), schema));
}

function fieldOf(name: string, given: Fields, required: boolean, root: Fields): Field {
  const own = resolved(given, root);
  const { nullable, part } = withoutNull(own, root);
  const type = part.type;
  const options = Array.isArray(part.enum) ? part.enum.filter((each) => each !== null) : part.const === undefined ? [] : [part.const];
  const kind: Kind = options.length
    ? "choice"
    : type === "boolean"
      ? "switch"
      : type === "string" || type === "integer" || type === "number"
        ? ({ string: "text", integer: "integer", number: "number" } as const)[type]
        : "json";
  const inner = isFields(part.properties) ? Object.keys(part.properties) : [];
  const notes = [own.description ?? part.description, part.format, inner.length ? `an object with ${inner.join(", ")}` : type === "array" ? "a list" : null];
  const otherwise = given.default ?? own.default;
  return {
    name,
    kind,
    required,
    nullable: nullable || (Array.isArray(part.enum) && part.enum.includes(null)),
    options,
    description: notes.filter((note): note is string => typeof note === "string").join(" · "),
    otherwise: otherwise === undefined ? undefined : stringifyExact(otherwise),
    shape: kind === "json" && (type === "array" || type === "object") ? type : undefined,
    least: typeof part.minimum === "number" ? part.minimum : undefined,
    most: typeof part.maximum === "number" ? part.maximum : undefined,
    pattern: typeof part.pattern === "string" ? part.pattern : undefined,
  };
}

/** A shape as it is where it is referred to. One that goes round in circles is anything. */
function resolved(given: Fields, root: Fields, depth = 0): Fields {
  if (typeof given.$ref !== "string") {
    return Array.isArray(given.allOf) && given.allOf.length === 1 && isFields(given.allOf[0]) ? { ...resolved(given.allOf[0], root, depth + 1), ...given } : given;
  }
  let at: Json | undefined = root;
  for (const step of given.$ref.replace(/^#\/?/, "").split("/").filter(Boolean)) at = isFields(at) ? at[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  if (!isFields(at) || depth > 8) return {};
  const { $ref: _, ...beside } = given;
  return { ...resolved(at, root, depth + 1), ...beside };
}

/** What a value is besides null: `anyOf` of one thing and null, or two types of which one is null. */
function withoutNull(own: Fields, root: Fields): { nullable: boolean; part: Fields } {
  if (Array.isArray(own.type)) {
    const rest = own.type.filter((each) => each !== "null");
    const only = rest.length === 1 ? rest[0] : undefined;
    return { nullable: rest.length < own.type.length, part: { ...own, ...(only === undefined ? { type: null } : { type: only }) } };
  }
  const either = own.anyOf ?? own.oneOf;
  if (!Array.isArray(either)) return { nullable: own.type === "null", part: own };
  const shapes = either.filter(isFields).map((each) => resolved(each, root));
  const rest = shapes.filter((each) => each.type !== "null");
  return { nullable: rest.length < shapes.length, part: rest.length === 1 && rest[0] ? rest[0] : {} };
}

/** What stands in the fields, and what of a payload has none. */
export interface Filled {
  texts: Record<string, string>;
  kept: Fields;
}

/** A payload in its fields; or why it does not fit them. */
export function fill(fields: readonly Field[], payload: Json): Filled | { problem: string } {
  if (!isFields(payload)) return { problem: "The payload is no object." };
  const texts: Record<string, string> = {};
  const kept: Fields = {};
  const named = new Map(fields.map((field) => [field.name, field]));
  for (const [name, value] of Object.entries(payload)) {
    const field = named.get(name);
    if (!field) {
      Object.defineProperty(kept, name, { value, enumerable: true, writable: true, configurable: true });
      continue;
    }
    const text = value === null && field.nullable ? "null" : field.kind === "text" && typeof value === "string" ? value : stringifyExact(value, field.kind === "json" ? 2 : 0);
    if (field.kind === "text" && value !== null && typeof value !== "string") return { problem: `“${name}” is no text.` };
    if ("problem" in read(field, text)) return { problem: `“${name}” is not as its type has it.` };
    texts[name] = text;
  }
  return { texts, kept };
}

/** The payload that the fields say; or what is wrong, by the names of the fields. */
export function gather(fields: readonly Field[], { texts, kept }: Filled): { payload: Fields } | { problems: Record<string, string> } {
  const payload: Fields = {};
  const problems: Record<string, string> = {};
  const set = (name: string, value: Json) => Object.defineProperty(payload, name, { value, enumerable: true, writable: true, configurable: true });
  for (const field of fields) {
    const found = read(field, texts[field.name] ?? "");
    if ("problem" in found) problems[field.name] = found.problem;
    else if (found.value !== undefined) set(field.name, found.value);
  }
  for (const [name, value] of Object.entries(kept)) set(name, value);
  return Object.keys(problems).length ? { problems } : { payload };
}

/** What a field says: a value, nothing (it is left out), or something that will not do. */
export function read(field: Field, text: string): { value: Json | undefined } | { problem: string } {
  const bare = text.trim();
  if (bare === "") {
    if (!field.required) return { value: undefined };
    if (field.nullable) return { value: null };
    return { problem: field.kind === "text" ? "This is needed. An empty text can be given as JSON." : "This is needed." };
  }
  if (field.nullable && bare === "null") return { value: null };
  if (field.kind === "text") return matches(field, text) ? { value: text } : { problem: `It must match ${field.pattern}.` };
  let value: Json;
  try {
    value = parseExact(bare);
  } catch (error) {
    return { problem: field.kind === "json" ? `Not JSON: ${error instanceof Error ? error.message : ""}` : NEEDED[field.kind] };
  }
  switch (field.kind) {
    case "integer":
      if (!/^-?\d+$/.test(bare)) return { problem: NEEDED.integer };
      return within(field, value);
    case "number":
      return typeof value === "number" || typeof value === "bigint" ? within(field, value) : { problem: NEEDED.number };
    case "switch":
      return typeof value === "boolean" ? { value } : { problem: NEEDED.switch };
    case "choice":
      return field.options.some((option) => stringifyExact(option) === stringifyExact(value)) ? { value } : { problem: NEEDED.choice };
    case "json":
      if (field.shape === "array" && !Array.isArray(value)) return { problem: "A list is needed, such as [1, 2]." };
      if (field.shape === "object" && !isFields(value)) return { problem: "An object is needed, such as {}." };
      return { value };
  }
}

const NEEDED = { integer: "A whole number is needed.", number: "A number is needed.", switch: "Choose true or false.", choice: "Choose one of these." } as const;

function within(field: Field, value: Json): { value: Json } | { problem: string } {
  const number = value as number | bigint;
  if (field.least !== undefined && number < field.least) return { problem: `It must be ${field.least} or more.` };
  if (field.most !== undefined && number > field.most) return { problem: `It must be ${field.most} or less.` };
  return { value };
}

function matches(field: Field, text: string): boolean {
  if (field.pattern === undefined || text.length > 1_000) return true;
  try {
    return new RegExp(field.pattern, "u").test(text);
  } catch {
    return true; // an expression of Python's that this browser does not know: the worker decides
  }
}

function isFields(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
