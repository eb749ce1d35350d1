/** JSON without loss: a whole number that JavaScript's own cannot hold is a bigint, both ways. */
import type { Json } from "../api/types.gen";

const MAY_LOSE = /\d{16}/;

/** Read JSON. The quick way where no number can be too large, else digit by digit. */
export function parseExact(text: string): Json {
  return MAY_LOSE.test(text) ? new Reader(text).whole() : (JSON.parse(text) as Json);
}

/** Write JSON; the inverse of `parseExact`. */
export function stringifyExact(value: Json, indent = 0): string {
  return write(value, indent, "");
}

/** What stands for a leaf, as text. */
export function leafText(value: Json): string {
  return typeof value === "bigint" ? value.toString() : visible(JSON.stringify(value));
}

const UNSEEN = /[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u0080-\u009f]/g;

/** A text in which nothing hides: what turns the direction of writing, or is not seen at all, is written as an escape. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function write(value: Json, indent: number, margin: string): string {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = margin + " ".repeat(indent);
  const [open, close] = indent ? [`\n${inner}`, `\n${margin}`] : ["", ""];
  const comma = indent ? `,\n${inner}` : ",";
  if (Array.isArray(value)) {
    return value.length ? `[${open}${value.map((each) => write(each, indent, inner)).join(comma)}${close}]` : "[]";
  }
  const fields = Object.entries(value).map(
    ([key, each]) => `${JSON.stringify(key)}:${indent ? " " : ""}${write(each, indent, inner)}`,
  );
  return fields.length ? `{${open}${fields.join(comma)}${close}}` : "{}";
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const SPACE = /[ \t\r\n]*/y;
const MOST_DEPTH = 1_000;

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  whole(): Json {
    const value = this.value(0);
    this.skip();
    if (this.at < this.text.length) this.fail();
    return value;
  }

  private value(depth: number): Json {
    if (depth > MOST_DEPTH) throw new SyntaxError("the JSON is nested too deeply");
    this.skip();
    switch (this.text[this.at]) {
      case "{":
        return this.object(depth);
      case "[":
        return this.array(depth);
      case '"':
        return this.string();
      case "t":
        return this.word("true", true);
      case "f":
        return this.word("false", false);
      case "n":
        return this.word("null", null);
      default:
        return this.number();
    }
  }

  private object(depth: number): Json {
    const found: { [key: string]: Json } = {};
    this.at += 1;
    if (this.next("}")) return found;
    do {
      this.skip();
      const key = this.string();
      if (!this.next(":")) this.fail();
      // A field that is called __proto__ is a field like any other.
      Object.defineProperty(found, key, { value: this.value(depth + 1), enumerable: true, writable: true, configurable: true });
    } while (this.next(","));
    if (!this.next("}")) this.fail();
    return found;
  }

  private array(depth: number): Json {
    const found: Json[] = [];
    this.at += 1;
    if (this.next("]")) return found;
    do found.push(this.value(depth + 1));
    while (this.next(","));
    if (!this.next("]")) this.fail();
    return found;
  }

  private string(): string {
    return JSON.parse(this.take(STRING)) as string;
  }

  private number(): Json {
    const text = this.take(NUMBER);
    const plain = Number(text);
    if (/^-?\d+$/.test(text) && !Number.isSafeInteger(plain)) return BigInt(text);
    return plain;
  }

  private word<T extends Json>(text: string, value: T): T {
    if (!this.text.startsWith(text, this.at)) this.fail();
    this.at += text.length;
    return value;
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) this.fail();
    this.at = pattern.lastIndex;
    return found[0];
  }

  private next(mark: string): boolean {
    this.skip();
    if (this.text[this.at] !== mark) return false;
    this.at += 1;
    return true;
  }

  private skip(): void {
    SPACE.lastIndex = this.at;
    SPACE.exec(this.text);
    this.at = SPACE.lastIndex;
  }

  private fail(): never {
    throw new SyntaxError(`this is no JSON: look at character ${this.at + 1}`);
  }
}
