import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { JsonTree } from "./JsonTree";

it("renders all content as text", () => {
  const evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const { container } = render(<JsonTree label="Payload" value={{ [evil]: evil, big: 9007199254740993n, none: null }} />);
  expect(container.querySelector("img, script")).toBeNull();
  expect(container.textContent).toContain(evil);
  expect(container.textContent).toContain("9007199254740993");
});

it("collapses deep levels, and opens them on demand", () => {
  render(<JsonTree label="Payload" value={{ a: { b: { c: "deep" } } }} />);
  expect(screen.queryByText('"deep"')).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "b, 1 field" }));
  expect(screen.getByText('"deep"')).toBeTruthy();
});

it("shows the first 100 entries, and the rest on demand", () => {
  render(<JsonTree label="Payload" value={{ list: Array.from({ length: 150 }, (_, index) => `item ${index}`) }} />);
  fireEvent.click(screen.getByRole("button", { name: "list, 150 items" }));
  expect(screen.queryByText('"item 149"')).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "… 50 more" }));
  expect(screen.getByText('"item 149"')).toBeTruthy();
});
