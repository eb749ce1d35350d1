/** Job search with field completion, an ARIA combobox. */
import { TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { complete, type Field } from "../lib/search";
import { Icon } from "./Icon";

interface Props {
  value: string;
  knownValues: Partial<Record<Field, readonly string[]>>;
  problem: string | undefined;
  onSearch: (text: string) => void;
}

export function SearchBox({ value, knownValues, problem, onSearch }: Props) {
  const [text, setText] = useState(value);
  const [open, setOpen] = useState(false);
  const [selected, setSelected] = useState(-1);
  const [cursor, setCursor] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  useEffect(() => setText(value), [value]);
  const { from, items } = complete(text, cursor, knownValues);
  const shown = open && items.length > 0;

  const accept = (index: number) => {
    const item = items[index];
    if (!item) return;
    const next = text.slice(0, from) + item.text + text.slice(cursor).replace(/^\s+/, "");
    const end = from + item.text.length;
    setText(next);
    setCursor(end);
    setSelected(-1);
    setOpen(item.text.endsWith(":"));
    requestAnimationFrame(() => input.current?.setSelectionRange(end, end));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!items.length) return;
      event.preventDefault();
      setOpen(true);
      setSelected((selected + (event.key === "ArrowDown" ? 1 : selected < 0 ? 0 : -1) + items.length) % items.length);
    } else if (event.key === "Tab" && shown && selected >= 0) {
      event.preventDefault();
      accept(selected);
    } else if (event.key === "Enter") {
      if (shown && selected >= 0) {
        event.preventDefault();
        accept(selected);
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
        rightSection={text ? <button type="button" className="clear" aria-label="Clear search" onClick={() => { setText(""); onSearch(""); }}><Icon name="close" size={14} /></button> : <kbd className="only-wide">/</kbd>}
        value={text}
        error={problem}
        role="combobox"
        aria-expanded={shown}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={shown && selected >= 0 ? `${list}-${selected}` : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setCursor(event.currentTarget.selectionStart ?? 0);
          setOpen(true);
          setSelected(-1);
        }}
        onSelect={(event) => setCursor(event.currentTarget.selectionStart ?? 0)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <div className="suggestions" role="listbox" id={list} aria-label="Suggestions" hidden={!shown}>
        {shown &&
          items.map((item, index) => (
            <div key={item.text} role="option" id={`${list}-${index}`} aria-selected={index === selected} onPointerDown={(event) => { event.preventDefault(); accept(index); }}>
              <code>{item.text.trim()}</code> <span className="soft small">{item.hint}</span>
            </div>
          ))}
      </div>
    </div>
  );
}
