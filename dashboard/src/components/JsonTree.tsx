/** Collapsible JSON tree. All content is rendered as text, never as markup. */
import { useState } from "react";
import type { Json } from "../api/types.gen";
import { pluralize } from "../lib/format";
import { escapeInvisible, formatLeaf } from "../lib/json";
import { Icon } from "./Icon";

const OPEN_DEPTH = 2;
const MAX_ENTRIES = 100;
const MAX_TEXT_LENGTH = 2_000;

export function JsonTree({ value, label }: { value: Json; label: string }) {
  return (
    <div className="json" role="group" aria-label={label}>
      <ul>
        <Node value={value} depth={0} />
      </ul>
    </div>
  );
}

function Node({ name, value, depth }: { name?: string; value: Json; depth: number }) {
  const key = name === undefined ? null : <span className="key">{escapeInvisible(name)}: </span>;
  if (value === null || typeof value !== "object") {
    return (
      <li>
        {key}
        <Leaf value={value} />
      </li>
    );
  }
  return <Branch {...(name === undefined ? {} : { name })} value={value} depth={depth} />;
}

function Branch({ name, value, depth }: { name?: string; value: Json[] | { [key: string]: Json }; depth: number }) {
  const entries: [string, Json][] = Array.isArray(value) ? value.map((item, index) => [String(index), item]) : Object.entries(value);
  const [open, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= MAX_ENTRIES);
  const [shown, setShown] = useState(MAX_ENTRIES);
  const [left, right] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const size = Array.isArray(value) ? pluralize(entries.length, "item") : pluralize(entries.length, "field");
  if (!entries.length) {
    return (
      <li>
        {name !== undefined && <span className="key">{escapeInvisible(name)}: </span>}
        {left}
        {right}
      </li>
    );
  }
  return (
    <li>
      <button type="button" className="fold" aria-expanded={open} aria-label={`${name ?? "value"}, ${size}`} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} size={11} />
      </button>
      {name !== undefined && <span className="key">{escapeInvisible(name)}: </span>}
      <span className="soft">{open ? left : `${left} … ${right} ${size}`}</span>
      {open && (
        <>
          <ul>
            {entries.slice(0, shown).map(([key, child]) => (
              <Node key={key} name={key} value={child} depth={depth + 1} />
            ))}
            {entries.length > shown && (
              <li>
                <button type="button" className="fold" onClick={() => setShown(shown + 1_000)}>
                  … {entries.length - shown} more
                </button>
              </li>
            )}
          </ul>
          <span className="soft">{right}</span>
        </>
      )}
    </li>
  );
}

function Leaf({ value }: { value: Json }) {
  const [expanded, setExpanded] = useState(false);
  const text = formatLeaf(value);
  const kind = typeof value === "string" ? "text" : typeof value === "number" || typeof value === "bigint" ? "number" : "word";
  if (text.length <= MAX_TEXT_LENGTH || expanded) return <span className={kind}>{text}</span>;
  return (
    <>
      <span className={kind}>{text.slice(0, MAX_TEXT_LENGTH)}</span>{" "}
      <button type="button" className="fold" onClick={() => setExpanded(true)}>
        … {text.length - MAX_TEXT_LENGTH} more characters
      </button>
    </>
  );
}
