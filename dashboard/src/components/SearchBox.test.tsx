import { MantineProvider } from "@mantine/core";
import { fireEvent, render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { SearchBox } from "./SearchBox";

function show(value = "") {
  const search = vi.fn();
  const { container } = render(
    <MantineProvider withCssVariables={false} withGlobalClasses={false}>
      <SearchBox value={value} knownValues={{ queue: ["mail", "media"] }} problem={undefined} onSearch={search} />
    </MantineProvider>,
  );
  const input = container.querySelector("input") as HTMLInputElement;
  const type = (text: string) => {
    input.focus();
    fireEvent.change(input, { target: { value: text, selectionStart: text.length } });
  };
  const press = (key: string) => fireEvent.keyDown(input, { key });
  const options = () => [...container.querySelectorAll("[role=option]")].map((option) => option.textContent?.trim());
  return { input, type, press, options, search };
}

it("completes a field and its value by keyboard, and searches", () => {
  const { input, type, press, options, search } = show();
  type("que");
  expect(options()).toEqual(["queue: queue name"]);
  press("ArrowDown");
  press("Enter");
  expect(input.value).toBe("queue:");
  type("queue:me");
  expect(options()).toEqual(["queue:media"]);
  press("ArrowDown");
  press("Enter");
  expect(input.value).toBe("queue:media ");
  expect(search).not.toHaveBeenCalled();
  press("Enter");
  expect(search).toHaveBeenCalledWith("queue:media ");
});

it("exposes the selected suggestion to screen readers", () => {
  const { input, type, press } = show();
  type("t");
  press("ArrowDown");
  expect(input.getAttribute("aria-expanded")).toBe("true");
  expect(document.getElementById(input.getAttribute("aria-activedescendant") ?? "")?.getAttribute("aria-selected")).toBe("true");
  press("Escape");
  expect(input.getAttribute("aria-expanded")).toBe("false");
});

it("shows the current search, and clears it", () => {
  const { input, search } = show("queue:mail");
  expect(input.value).toBe("queue:mail");
  fireEvent.click(document.querySelector("[aria-label='Clear search']") as Element);
  expect([input.value, search.mock.calls]).toEqual(["", [[""]]]);
});
