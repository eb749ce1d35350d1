import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import type { JobOut } from "../api/types.gen";
import { type Column, DataTable } from "./DataTable";
import { freezeRows } from "./JobTable";

interface Row {
  name: string;
  size: number | null;
}
const columns = (): Column<Row>[] => [
  { id: "name", header: "Name", cell: (row) => <b>{row.name}</b>, value: (row) => row.name },
  { id: "size", header: "Size", cell: (row) => row.size, value: (row) => row.size, descendingFirst: true },
  { id: "note", header: "Note", cell: () => "x" },
];
const ROWS: Row[] = [{ name: "b", size: 1 }, { name: "a", size: null }, { name: "c", size: 3 }];
const names = () => screen.getAllByRole("row").slice(1).map((row) => row.querySelector("td")?.textContent);

it("sorts by the value of a column, missing values last", () => {
  render(<DataTable label="Things" columns={columns()} rows={ROWS} rowId={(row) => row.name} />);
  expect(names()).toEqual(["b", "a", "c"]);
  fireEvent.click(screen.getByRole("button", { name: "Size" }));
  expect(names()).toEqual(["c", "b", "a"]);
  fireEvent.click(screen.getByRole("button", { name: "Name" }));
  expect(names()).toEqual(["a", "b", "c"]);
  expect(screen.queryByRole("button", { name: "Note" })).toBeNull();
});

it("keeps the elements of a row when it renders again, so that no click is lost", () => {
  const { rerender } = render(<DataTable label="Things" columns={columns()} rows={ROWS} rowId={(row) => row.name} />);
  const before = screen.getByText("b");
  rerender(<DataTable label="Things" columns={columns()} rows={[{ name: "new", size: 9 }, ...ROWS.map((row) => ({ ...row }))]} rowId={(row) => row.name} />);
  expect(screen.getByText("b")).toBe(before);
});

it("selects and opens rows by keyboard", () => {
  const open = vi.fn();
  render(<DataTable label="Things" columns={columns()} rows={ROWS} rowId={(row) => row.name} onOpen={open} />);
  for (const key of ["j", "j", "k", "j", "Enter"]) fireEvent.keyDown(document.body, { key });
  expect(open).toHaveBeenCalledWith(ROWS[1]);
});

it("keeps the rows under the pointer, with their latest content", () => {
  const job = (id: string, status: string, at: number) => ({ id, status, created_at: `2030-01-31T12:00:0${at}Z` }) as JobOut;
  const { rows, newer } = freezeRows([job("b", "running", 2), job("a", "ready", 1)], [job("d", "ready", 4), job("c", "ready", 3), job("b", "dead", 2)]);
  expect([rows.map((row) => `${row.id} ${row.status}`), newer]).toEqual([["b dead", "a ready"], 2]);
});
