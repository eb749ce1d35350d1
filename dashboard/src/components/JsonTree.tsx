/** JSON as a tree that folds. Whatever is in it is text and stays text. */
import { useState } from "react";
import type { Json } from "../api/types.gen";
import { leafText, visible } from "../lib/json";
import { Icon } from "./Icon";

const OPEN_TO = 2;
const MOST_SHOWN = 100;
const LONG_TEXT = 2_000;

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
  const key = name === undefined ? null : <span className="key">{visible(name)}: </span>;
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
  const entries: [string, Json][] = Array.isArray(value) ? value.map((each, index) => [String(index), each]) : Object.entries(value);
  const [open, setOpen] = useState(depth < OPEN_TO && entries.length <= MOST_SHOWN);
  const [shown, setShown] = useState(MOST_SHOWN);
  const [left, right] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const size = Array.isArray(value) ? `${entries.length} items` : `${entries.length} fields`;
  if (!entries.length) {
    return (
      <li>
        {name !== undefined && <span className="key">{visible(name)}: </span>}
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
      {name !== undefined && <span className="key">{visible(name)}: </span>}
      <span className="soft">{open ? left : `${left} … ${right} ${size}`}</span>
      {open && (
        <>
          <ul>
            {entries.slice(0, shown).map(([key, each]) => (
              <Node key={key} name={key} value={each} depth={depth + 1} />
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
  const [whole, setWhole] = useState(false);
  const text = leafText(value);
  const kind = typeof value === "string" ? "text" : typeof value === "number" || typeof value === "bigint" ? "number" : "word";
  if (text.length <= LONG_TEXT || whole) return <span className={kind}>{text}</span>;
  return (
    <>
      <span className={kind}>{text.slice(0, LONG_TEXT)}</span>{" "}
      <button type="button" className="fold" onClick={() => setWhole(true)}>
        … {text.length - LONG_TEXT} more characters
      </button>
    </>
  );
}
