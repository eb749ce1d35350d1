import { MantineProvider } from "@mantine/core";
import { fireEvent, render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { SearchBox } from "./SearchBox";

function shown(value = "") {
  const search = vi.fn();
  const { container } = render(
    <MantineProvider withCssVariables={false} withGlobalClasses={false}>
      <SearchBox value={value} known={{ queue: ["mail", "media"] }} problem={undefined} onSearch={search} />
    </MantineProvider>,
  );
  const input = container.querySelector("input") as HTMLInputElement;
  const type = (text: string) => {
    input.focus();
    fireEvent.change(input, { target: { value: text, selectionStart: text.length } });
  };
  const press = (key: string) => fireEvent.keyDown(input, { key });
  const options = () => [...container.querySelectorAll("[role=option]")].map((each) => each.textContent?.trim());
  return { input, type, press, options, search };
}

it("completes a field and then its value by keys, and searches", () => {
  const { input, type, press, options, search } = shown();
  type("que");
  expect(options()).toEqual(["queue: name of a queue"]);
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

it("tells readers what is chosen", () => {
  const { input, type, press } = shown();
  type("t");
  press("ArrowDown");
  expect(input.getAttribute("aria-expanded")).toBe("true");
  expect(document.getElementById(input.getAttribute("aria-activedescendant") ?? "")?.getAttribute("aria-selected")).toBe("true");
  press("Escape");
  expect(input.getAttribute("aria-expanded")).toBe("false");
});

it("shows what the address says, and clears it", () => {
  const { input, search } = shown("queue:mail");
  expect(input.value).toBe("queue:mail");
  fireEvent.click(document.querySelector("[aria-label='Clear the search']") as Element);
  expect([input.value, search.mock.calls]).toEqual(["", [[""]]]);
});
