/** A dense table: sorting where the whole list is here, rows that keys can walk, a caption for readers. */
import { type ColumnDef, createSortedRowModel, rowSortingFeature, sortFns, tableFeatures, useTable } from "@tanstack/react-table";
import { type ReactNode, useEffect, useRef, useState } from "react";
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
}

export function DataTable<T extends object>({ label, columns, rows, rowId, onOpen }: DataTableProps<T>) {
  const table = useTable({
    features,
    columns: columns.map(
      (column): ColumnDef<typeof features, T> => ({
        id: column.id,
        header: () => column.header,
        cell: ({ row }) => column.cell(row.original),
        ...(column.value ? { accessorFn: (row: T) => column.value?.(row) } : {}),
        enableSorting: column.value !== undefined,
        sortDescFirst: column.highFirst ?? false,
        sortUndefined: "last" as const,
      }),
    ),
    data: rows as T[],
    getRowId: rowId,
  });
  const shown = table.getRowModel().rows;
  const [at, setAt] = useState<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    if (!onOpen) return;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("[role=dialog]")) return;
      const index = shown.findIndex((row) => row.id === at);
      if (event.key === "j" || event.key === "k") {
        const next = shown[Math.min(shown.length - 1, Math.max(0, index + (event.key === "j" ? 1 : -1)))];
        if (!next) return;
        setAt(next.id);
        body.current?.querySelector(`[data-row="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter" && index >= 0 && (event.target === document.body || event.target instanceof HTMLElement && event.target.id === "content")) {
        const row = shown[index];
        if (row) onOpen(row.original);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [at, onOpen, shown]);
  const classes = new Map(columns.map((column) => [column.id, column.className]));
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table className="dense">
        <caption className="hidden-text">{label}</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const sorted = header.column.getIsSorted();
                return (
                  <th key={header.id} scope="col" className={classes.get(header.column.id)} aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : undefined}>
                    {header.column.getCanSort() ? (
                      <button type="button" className="sort" onClick={header.column.getToggleSortingHandler()}>
                        <table.FlexRender header={header} />
                        <span aria-hidden="true">{sorted === "asc" ? " ↑" : sorted === "desc" ? " ↓" : ""}</span>
                      </button>
                    ) : (
                      <table.FlexRender header={header} />
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body}>
          {shown.map((row) => (
            <tr key={row.id} data-row={row.id} data-selected={row.id === at} onDoubleClick={onOpen ? () => onOpen(row.original) : undefined}>
              {row.getAllCells().map((cell) => (
                <td key={cell.id} className={classes.get(cell.column.id)}>
                  <table.FlexRender cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
