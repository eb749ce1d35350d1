/** The search for jobs: qualifiers with completion. A combobox as screen readers know it. */
import { TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { complete, type Field } from "../lib/search";
import { Icon } from "./Icon";

interface Props {
  value: string;
  known: Partial<Record<Field, readonly string[]>>;
  problem: string | undefined;
  onSearch: (text: string) => void;
}

export function SearchBox({ value, known, problem, onSearch }: Props) {
  const [text, setText] = useState(value);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  useEffect(() => setText(value), [value]);
  const { from, items } = complete(text, at, known);
  const shown = open && items.length > 0;

  const take = (index: number) => {
    const item = items[index];
    if (!item) return;
    const next = text.slice(0, from) + item.text + text.slice(at).replace(/^\s+/, "");
    const cursor = from + item.text.length;
    setText(next);
    setAt(cursor);
    setChosen(-1);
    setOpen(item.text.endsWith(":"));
    requestAnimationFrame(() => input.current?.setSelectionRange(cursor, cursor));
  };
  const pressed = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!items.length) return;
      event.preventDefault();
      setOpen(true);
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : chosen < 0 ? 0 : -1) + items.length) % items.length);
    } else if (event.key === "Tab" && shown && chosen >= 0) {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Enter") {
      if (shown && chosen >= 0) {
        event.preventDefault();
        take(chosen);
      } else {
        setOpen(false);
        onSearch(text);
      }
    } else if (event.key === "Escape") {
      if (open) setOpen(false);
      else input.current?.blur();
    }
  };
  return (
    <div className="search">
      <TextInput
        ref={input}
        data-search
        aria-label="Search jobs"
        placeholder="queue:mail type:send tag:… after:2h, or an id"
        leftSection={<Icon name="search" />}
        rightSection={text ? <button type="button" className="clear" aria-label="Clear the search" onClick={() => { setText(""); onSearch(""); }}><Icon name="close" size={14} /></button> : <kbd className="only-wide">/</kbd>}
        value={text}
        error={problem}
        role="combobox"
        aria-expanded={shown}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={shown && chosen >= 0 ? `${list}-${chosen}` : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(event.currentTarget.selectionStart ?? 0);
          setOpen(true);
          setChosen(-1);
        }}
        onSelect={(event) => setAt(event.currentTarget.selectionStart ?? 0)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={pressed}
      />
      <div className="suggestions" role="listbox" id={list} aria-label="Suggestions" hidden={!shown}>
        {shown &&
          items.map((item, index) => (
            <div key={item.text} role="option" id={`${list}-${index}`} aria-selected={index === chosen} onPointerDown={(event) => { event.preventDefault(); take(index); }}>
              <code>{item.text.trim()}</code> <span className="soft small">{item.hint}</span>
            </div>
          ))}
      </div>
    </div>
  );
}
