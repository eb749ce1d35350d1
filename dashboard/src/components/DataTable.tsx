/** Dense table with client-side sorting, keyboard navigation and a caption for screen readers. */
import { type ColumnDef, createSortedRowModel, rowSortingFeature, sortFns, tableFeatures, useTable } from "@tanstack/react-table";
import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { isTextInput } from "./keyboard";

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel(), sortFns });

/** Column of a table. It is sortable if it has a `value`. */
export interface Column<T> {
  id: string;
  header: ReactNode;
  cell: (row: T) => ReactNode;
  value?: (row: T) => string | number | null;
  className?: string;
  /** Sort descending on the first click. */
  descendingFirst?: boolean;
}

export interface DataTableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowId: (row: T) => string;
  /** Called on Enter or on a double click on a row. */
  onOpen?: (row: T) => void;
  /** On narrow screens, show each row as a few lines with labelled values. */
  stacked?: boolean;
}

export function DataTable<T extends object>({ label, columns, rows, rowId, onOpen, stacked = true }: DataTableProps<T>) {
  // Cells are rendered from the current `columns`. The table model only sorts, and is rebuilt only if the column ids change.
  const byId = new Map(columns.map((column) => [column.id, column]));
  const latest = useRef(byId);
  latest.current = byId;
  const ids = columns.map((column) => `${column.id}${column.value ? "+" : ""}`).join(" ");
  const definitions = useMemo(
    () =>
      [...latest.current.values()].map(
        (column): ColumnDef<typeof features, T> => ({
          id: column.id,
          ...(column.value ? { accessorFn: (row: T) => latest.current.get(column.id)?.value?.(row) ?? undefined } : {}),
          enableSorting: column.value !== undefined,
          sortDescFirst: column.descendingFirst ?? false,
          sortUndefined: "last" as const,
        }),
      ),
    [ids],
  );
  const table = useTable({ features, columns: definitions, data: rows as T[], getRowId: rowId });
  const shown = table.getRowModel().rows;
  const [selected, setSelected] = useState<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    if (!onOpen) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTextInput(event.target) || document.querySelector("[role=dialog]")) return;
      const index = shown.findIndex((row) => row.id === selected);
      if (event.key === "j" || event.key === "k") {
        const to = Math.min(shown.length - 1, Math.max(0, index + (event.key === "j" ? 1 : -1)));
        const next = shown[to];
        if (!next) return;
        setSelected(next.id);
        body.current?.rows[to]?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter" && index >= 0 && (event.target === document.body || event.target instanceof HTMLElement && event.target.id === "content")) {
        const row = shown[index];
        if (row) onOpen(row.original);
      }
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [selected, onOpen, shown]);
  // Explicit roles: a table with a different CSS `display` loses its implicit ones.
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table className={stacked ? "dense stacked" : "dense"} role="table">
        <caption className="hidden-text">{label}</caption>
        <thead role="rowgroup">
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} role="row">
              {group.headers.map((header) => {
                const sorted = header.column.getIsSorted();
                return (
                  <th key={header.id} scope="col" role="columnheader" className={byId.get(header.column.id)?.className} aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : undefined}>
                    {header.column.getCanSort() ? (
                      <button type="button" className="sort" onClick={header.column.getToggleSortingHandler()}>
                        {byId.get(header.column.id)?.header}
                        <span aria-hidden="true">{sorted === "asc" ? " ↑" : sorted === "desc" ? " ↓" : ""}</span>
                      </button>
                    ) : (
                      byId.get(header.column.id)?.header
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body} role="rowgroup">
          {shown.map((row) => (
            <Row key={row.id} id={row.id} row={row.original} columns={columns} selected={row.id === selected} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps<T> {
  id: string;
  row: T;
  columns: readonly Column<T>[];
  selected: boolean;
  onOpen: ((row: T) => void) | undefined;
}

function PlainRow<T extends object>({ id, row, columns, selected, onOpen }: RowProps<T>) {
  return (
    <tr data-row={id} role="row" data-selected={selected} onDoubleClick={onOpen ? () => onOpen(row) : undefined}>
      {columns.map((column) => (
        <td key={column.id} role="cell" className={column.className} data-name={typeof column.header === "string" ? column.header : undefined}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** Memoized, because most rows of a list that is refetched every second do not change. */
const Row = memo(PlainRow) as typeof PlainRow;
