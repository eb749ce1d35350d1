/**
 * Form fields for a payload, derived from the JSON Schema of its job type. Parts of the payload without a field are kept
 * unchanged. Validation is a convenience only: the worker decides which payloads it accepts.
 */
import type { Json } from "../api/types.gen";
import { parseExact, stringifyExact } from "./json";

type JsonObject = { [key: string]: Json };
export type Kind = "text" | "integer" | "number" | "switch" | "choice" | "json";

export interface Field {
  name: string;
  kind: Kind;
  required: boolean;
  nullable: boolean;
  /** Allowed values of a choice. */
  options: Json[];
  description: string;
  /** Default value as JSON. */
  defaultText: string | undefined;
  /** Required type of a `json` field, if the schema names one. */
  shape: "array" | "object" | undefined;
  minimum: number | undefined;
  maximum: number | undefined;
  pattern: string | undefined;
}

/** Return the fields of a payload, or null if the schema does not describe an object with properties. */
export function fieldsOf(schema: JsonObject | null | undefined): Field[] | null {
  if (!isObject(schema)) return null;
  const root = resolveRef(schema, schema);
  if (!isObject(root.properties)) return null;
  const required = Array.isArray(root.required) ? root.required : [];
  return Object.entries(root.properties).map(([name, part]) => fieldOf(name, isObject(part) ? part : {}, required.includes(name), schema));
}

function fieldOf(name: string, schema: JsonObject, required: boolean, root: JsonObject): Field {
  const own = resolveRef(schema, root);
  const { nullable, part } = withoutNull(own, root);
  const type = part.type;
  const options = Array.isArray(part.enum) ? part.enum.filter((option) => option !== null) : part.const === undefined ? [] : [part.const];
  const kind: Kind = options.length
    ? "choice"
    : type === "boolean"
      ? "switch"
      : type === "string" || type === "integer" || type === "number"
        ? ({ string: "text", integer: "integer", number: "number" } as const)[type]
        : "json";
  const inner = isObject(part.properties) ? Object.keys(part.properties) : [];
  const notes = [own.description ?? part.description, part.format, inner.length ? `an object with ${inner.join(", ")}` : type === "array" ? "a list" : null];
  const defaultValue = schema.default ?? own.default;
  return {
    name,
    kind,
    required,
    nullable: nullable || (Array.isArray(part.enum) && part.enum.includes(null)),
    options,
    description: notes.filter((note): note is string => typeof note === "string").join(" · "),
    defaultText: defaultValue === undefined ? undefined : stringifyExact(defaultValue),
    shape: kind === "json" && (type === "array" || type === "object") ? type : undefined,
    minimum: typeof part.minimum === "number" ? part.minimum : undefined,
    maximum: typeof part.maximum === "number" ? part.maximum : undefined,
    pattern: typeof part.pattern === "string" ? part.pattern : undefined,
  };
}

/** Follow `$ref` and a single `allOf`. A circular reference resolves to a schema that accepts anything. */
function resolveRef(schema: JsonObject, root: JsonObject, depth = 0): JsonObject {
  if (typeof schema.$ref !== "string") {
    return Array.isArray(schema.allOf) && schema.allOf.length === 1 && isObject(schema.allOf[0]) ? { ...resolveRef(schema.allOf[0], root, depth + 1), ...schema } : schema;
  }
  let target: Json | undefined = root;
  for (const step of schema.$ref.replace(/^#\/?/, "").split("/").filter(Boolean)) target = isObject(target) ? target[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  if (!isObject(target) || depth > 8) return {};
  const { $ref: _, ...siblings } = schema;
  return { ...resolveRef(target, root, depth + 1), ...siblings };
}

/** Separate null from the schema: `anyOf` with one other schema, or a list of two types. */
function withoutNull(own: JsonObject, root: JsonObject): { nullable: boolean; part: JsonObject } {
  if (Array.isArray(own.type)) {
    const rest = own.type.filter((type) => type !== "null");
    const only = rest.length === 1 ? rest[0] : undefined;
    return { nullable: rest.length < own.type.length, part: { ...own, ...(only === undefined ? { type: null } : { type: only }) } };
  }
  const alternatives = own.anyOf ?? own.oneOf;
  if (!Array.isArray(alternatives)) return { nullable: own.type === "null", part: own };
  const shapes = alternatives.filter(isObject).map((option) => resolveRef(option, root));
  const rest = shapes.filter((shape) => shape.type !== "null");
  return { nullable: rest.length < shapes.length, part: rest.length === 1 && rest[0] ? rest[0] : {} };
}

/** Text of each field, and the parts of the payload that have no field. */
export interface FormState {
  texts: Record<string, string>;
  extra: JsonObject;
}

/** Fill the fields from a payload, or return why it does not fit them. */
export function fillFields(fields: readonly Field[], payload: Json): FormState | { problem: string } {
  if (!isObject(payload)) return { problem: "The payload is not an object." };
  const texts: Record<string, string> = {};
  const extra: JsonObject = {};
  const byName = new Map(fields.map((field) => [field.name, field]));
  for (const [name, value] of Object.entries(payload)) {
    const field = byName.get(name);
    if (!field) {
      Object.defineProperty(extra, name, { value, enumerable: true, writable: true, configurable: true });
      continue;
    }
    const text = value === null && field.nullable ? "null" : field.kind === "text" && typeof value === "string" ? value : stringifyExact(value, field.kind === "json" ? 2 : 0);
    if (field.kind === "text" && value !== null && typeof value !== "string") return { problem: `“${name}” is not a string.` };
    if ("problem" in parseField(field, text)) return { problem: `“${name}” does not match the schema of its type.` };
    texts[name] = text;
  }
  return { texts, extra };
}

/** Build the payload from the fields, or return the problems by field name. */
export function readFields(fields: readonly Field[], { texts, extra }: FormState): { payload: JsonObject } | { problems: Record<string, string> } {
  const payload: JsonObject = {};
  const problems: Record<string, string> = {};
  const set = (name: string, value: Json) => Object.defineProperty(payload, name, { value, enumerable: true, writable: true, configurable: true });
  for (const field of fields) {
    const result = parseField(field, texts[field.name] ?? "");
    if ("problem" in result) problems[field.name] = result.problem;
    else if (result.value !== undefined) set(field.name, result.value);
  }
  for (const [name, value] of Object.entries(extra)) set(name, value);
  return Object.keys(problems).length ? { problems } : { payload };
}

/** Parse the text of a field. The value is undefined if the field is omitted from the payload. */
export function parseField(field: Field, text: string): { value: Json | undefined } | { problem: string } {
  const trimmed = text.trim();
  if (trimmed === "") {
    if (!field.required) return { value: undefined };
    if (field.nullable) return { value: null };
    return { problem: field.kind === "text" ? "Required. Switch to JSON to submit an empty string." : "Required." };
  }
  if (field.nullable && trimmed === "null") return { value: null };
  if (field.kind === "text") return matchesPattern(field, text) ? { value: text } : { problem: `Must match ${field.pattern}.` };
  let value: Json;
  try {
    value = parseExact(trimmed);
  } catch (error) {
    return { problem: field.kind === "json" ? `Invalid JSON: ${error instanceof Error ? error.message : ""}` : EXPECTED[field.kind] };
  }
  switch (field.kind) {
    case "integer":
      if (!/^-?\d+$/.test(trimmed)) return { problem: EXPECTED.integer };
      return checkRange(field, value);
    case "number":
      return typeof value === "number" || typeof value === "bigint" ? checkRange(field, value) : { problem: EXPECTED.number };
    case "switch":
      return typeof value === "boolean" ? { value } : { problem: EXPECTED.switch };
    case "choice":
      return field.options.some((option) => stringifyExact(option) === stringifyExact(value)) ? { value } : { problem: EXPECTED.choice };
    case "json":
      if (field.shape === "array" && !Array.isArray(value)) return { problem: "Enter a list, such as [1, 2]." };
      if (field.shape === "object" && !isObject(value)) return { problem: "Enter an object, such as {}." };
      return { value };
  }
}

const EXPECTED = { integer: "Enter an integer.", number: "Enter a number.", switch: "Choose true or false.", choice: "Choose one of the options." } as const;

function checkRange(field: Field, value: Json): { value: Json } | { problem: string } {
  const number = value as number | bigint;
  if (field.minimum !== undefined && number < field.minimum) return { problem: `Must be ${field.minimum} or more.` };
  if (field.maximum !== undefined && number > field.maximum) return { problem: `Must be ${field.maximum} or less.` };
  return { value };
}

function matchesPattern(field: Field, text: string): boolean {
  if (field.pattern === undefined || text.length > 1_000) return true;
  try {
    return new RegExp(field.pattern, "u").test(text);
  } catch {
    return true; // Python syntax that JavaScript does not support: the worker decides
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
