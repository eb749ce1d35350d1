/** A dense table: sorting where the whole list is here, rows that keys can walk, a caption for readers. */
import { type ColumnDef, createSortedRowModel, rowSortingFeature, sortFns, tableFeatures, useTable } from "@tanstack/react-table";
import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { isTyping } from "./typing";

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel(), sortFns });

/** One column. `value` is what it sorts by; without it, it does not sort. */
export interface Column<T> {
  id: string;
  header: ReactNode;
  cell: (row: T) => ReactNode;
  value?: (row: T) => string | number | null;
  className?: string;
  /** Sorted from high to low at the first press. */
  highFirst?: boolean;
}

export interface DataTableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowId: (row: T) => string;
  /** What Enter or a double press on a row does. */
  onOpen?: (row: T) => void;
  /** Where there is little room, a row becomes a few lines, each value with its name. Not where the columns fit. */
  folds?: boolean;
}

export function DataTable<T extends object>({ label, columns, rows, rowId, onOpen, folds = true }: DataTableProps<T>) {
  // What is drawn comes from `columns` as they are now; the model only sorts, and is made anew only with other columns.
  const byId = new Map(columns.map((column) => [column.id, column]));
  const newest = useRef(byId);
  newest.current = byId;
  const ids = columns.map((column) => `${column.id}${column.value ? "+" : ""}`).join(" ");
  const defined = useMemo(
    () =>
      [...newest.current.values()].map(
        (column): ColumnDef<typeof features, T> => ({
          id: column.id,
          ...(column.value ? { accessorFn: (row: T) => newest.current.get(column.id)?.value?.(row) ?? undefined } : {}),
          enableSorting: column.value !== undefined,
          sortDescFirst: column.highFirst ?? false,
          sortUndefined: "last" as const,
        }),
      ),
    [ids],
  );
  const table = useTable({ features, columns: defined, data: rows as T[], getRowId: rowId });
  const shown = table.getRowModel().rows;
  const [at, setAt] = useState<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    if (!onOpen) return;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("[role=dialog]")) return;
      const index = shown.findIndex((row) => row.id === at);
      if (event.key === "j" || event.key === "k") {
        const to = Math.min(shown.length - 1, Math.max(0, index + (event.key === "j" ? 1 : -1)));
        const next = shown[to];
        if (!next) return;
        setAt(next.id);
        body.current?.rows[to]?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter" && index >= 0 && (event.target === document.body || event.target instanceof HTMLElement && event.target.id === "content")) {
        const row = shown[index];
        if (row) onOpen(row.original);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [at, onOpen, shown]);
  // The roles are said outright: a table that is laid out otherwise is none to a browser.
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table className={folds ? "dense folds" : "dense"} role="table">
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
            <Row key={row.id} id={row.id} row={row.original} columns={columns} chosen={row.id === at} onOpen={onOpen} />
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
  chosen: boolean;
  onOpen: ((row: T) => void) | undefined;
}

function PlainRow<T extends object>({ id, row, columns, chosen, onOpen }: RowProps<T>) {
  return (
    <tr data-row={id} role="row" data-selected={chosen} onDoubleClick={onOpen ? () => onOpen(row) : undefined}>
      {columns.map((column) => (
        <td key={column.id} role="cell" className={column.className} data-name={typeof column.header === "string" ? column.header : undefined}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** Drawn again only if what is in it changed: a list that is fetched each second is mostly as it was. */
const Row = memo(PlainRow) as typeof PlainRow;
