/** Lossless JSON: integers beyond `Number.MAX_SAFE_INTEGER` are parsed into bigints and written back exactly. */
import type { Json } from "../api/types.gen";

const MAY_LOSE_PRECISION = /\d{16}/;

/** Parse JSON. Uses `JSON.parse` unless the text has a number that might lose precision. */
export function parseExact(text: string): Json {
  return MAY_LOSE_PRECISION.test(text) ? new Parser(text).parse() : (JSON.parse(text) as Json);
}

/** Serialize to JSON: the inverse of `parseExact`. */
export function stringifyExact(value: Json, indent = 0): string {
  return write(value, indent, "");
}

/** Format a JSON scalar as text. */
export function formatLeaf(value: Json): string {
  return typeof value === "bigint" ? value.toString() : escapeInvisible(JSON.stringify(value));
}

const INVISIBLE = /[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u0080-\u009f]/g;

/** Escape invisible characters and those that change the text direction. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function write(value: Json, indent: number, margin: string): string {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = margin + " ".repeat(indent);
  const [open, close] = indent ? [`\n${inner}`, `\n${margin}`] : ["", ""];
  const comma = indent ? `,\n${inner}` : ",";
  if (Array.isArray(value)) {
    return value.length ? `[${open}${value.map((item) => write(item, indent, inner)).join(comma)}${close}]` : "[]";
  }
  const fields = Object.entries(value).map(
    ([key, field]) => `${JSON.stringify(key)}:${indent ? " " : ""}${write(field, indent, inner)}`,
  );
  return fields.length ? `{${open}${fields.join(comma)}${close}}` : "{}";
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const SPACE = /[ \t\r\n]*/y;
const MAX_DEPTH = 1_000;

class Parser {
  private position = 0;

  constructor(private readonly text: string) {}

  parse(): Json {
    const value = this.value(0);
    this.skip();
    if (this.position < this.text.length) this.fail();
    return value;
  }

  private value(depth: number): Json {
    if (depth > MAX_DEPTH) throw new SyntaxError("the JSON is nested too deeply");
    this.skip();
    switch (this.text[this.position]) {
      case "{":
        return this.object(depth);
      case "[":
        return this.array(depth);
      case '"':
        return this.string();
      case "t":
        return this.literal("true", true);
      case "f":
        return this.literal("false", false);
      case "n":
        return this.literal("null", null);
      default:
        return this.number();
    }
  }

  private object(depth: number): Json {
    const object: { [key: string]: Json } = {};
    this.position += 1;
    if (this.next("}")) return object;
    do {
      this.skip();
      const key = this.string();
      if (!this.next(":")) this.fail();
      // A plain assignment to `__proto__` would set the prototype instead of a field.
      Object.defineProperty(object, key, { value: this.value(depth + 1), enumerable: true, writable: true, configurable: true });
    } while (this.next(","));
    if (!this.next("}")) this.fail();
    return object;
  }

  private array(depth: number): Json {
    const array: Json[] = [];
    this.position += 1;
    if (this.next("]")) return array;
    do array.push(this.value(depth + 1));
    while (this.next(","));
    if (!this.next("]")) this.fail();
    return array;
  }

  private string(): string {
    return JSON.parse(this.match(STRING)) as string;
  }

  private number(): Json {
    const text = this.match(NUMBER);
    const plain = Number(text);
    if (/^-?\d+$/.test(text) && !Number.isSafeInteger(plain)) return BigInt(text);
    return plain;
  }

  private literal<T extends Json>(text: string, value: T): T {
    if (!this.text.startsWith(text, this.position)) this.fail();
    this.position += text.length;
    return value;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.position;
    const match = pattern.exec(this.text);
    if (!match) this.fail();
    this.position = pattern.lastIndex;
    return match[0];
  }

  private next(mark: string): boolean {
    this.skip();
    if (this.text[this.position] !== mark) return false;
    this.position += 1;
    return true;
  }

  private skip(): void {
    SPACE.lastIndex = this.position;
    SPACE.exec(this.text);
    this.position = SPACE.lastIndex;
  }

  private fail(): never {
    throw new SyntaxError(`unexpected input at character ${this.position + 1}`);
  }
}
