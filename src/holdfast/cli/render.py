"""Output formats: tables for people, JSON for programs."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

COLOURS = {
    "ready": "cyan",
    "running": "blue",
    "succeeded": "green",
    "scheduled": "magenta",
    "retrying": "yellow",
    "blocked": "magenta",
    "dead": "red",
    "cancelled": "bright_black",
}
"""Colour of each job state."""

_GAP = 3
"""Characters between columns."""
_MIN_TEXT_WIDTH = 12
"""Width below which a text column is dropped rather than shortened further."""

json_option = click.option("--json", "json", is_flag=True, help="print JSON")


class Column(NamedTuple, Generic[T]):
    """Column of a list: header, value of an item, and what happens to it on a narrow terminal."""

    head: str
    value_of: Callable[[T], object]
    drop_order: int = 0
    """Columns with the highest number are dropped first; 0 is never dropped."""
    text: bool = False
    """Shorten the value on a narrow terminal."""


def as_json(value: Any) -> str:
    """Return indented JSON, with fields in the given order."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def console() -> "Console":
    """Return a console for standard output; without a terminal it does not wrap lines."""
    from rich.console import Console

    terminal = Console(highlight=False, emoji=False)
    if terminal.is_terminal:
        return terminal
    return Console(width=1_000, highlight=False, emoji=False)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table with numbers aligned right."""
    rendered = grid(heads, rows)
    out = console()
    if title:
        out.print(title, markup=False, style="bold")
    out.print(rendered)


def print_list(
    items: Iterable[T], columns: Sequence[Column[T]], *, none: str, title: str | None = None, out: Any = None
) -> None:
    """Print items as a table that fits the terminal, or the text `none` if there are no items."""
    out = out or console()
    rendered = fit_table(list(items), columns, out.width)
    if rendered is None:
        out.print(none, style="dim")
        return
    if title:
        out.print(title, markup=False, style="bold")
    from rich.measure import Measurement

    # Ids stay whole so that they can be copied: if the narrowest table is too wide, the terminal wraps it.
    needed_width = Measurement.get(out, out.options.update(width=1_000), rendered).maximum
    out.width = max(out.width, needed_width)
    out.print(rendered)


def fit_table(items: Sequence[T], columns: Sequence[Column[T]], width: int) -> Any:
    """Build a table that fits the width: shorten texts, drop columns. None without items."""
    if not items:
        return None
    kept = list(columns)
    values = {column.head: [column.value_of(item) for item in items] for column in kept}
    natural = {head: max(len(head), *(len(cell(value)) for value in column)) for head, column in values.items()}
    while (widths := _widths(kept, natural, width)) is None:
        kept.remove(max(kept, key=lambda column: column.drop_order))
    rows = [[_shorten(values[column.head][n], widths[column.head]) for column in kept] for n in range(len(items))]
    return grid([column.head for column in kept], rows, no_wrap=True)


def _widths(columns: Sequence[Column[T]], natural: Mapping[str, int], width: int) -> Mapping[str, int] | None:
    """Return the width of each column; None if a column must be dropped first."""
    widths = {column.head: natural[column.head] for column in columns}
    available = width - _GAP * (len(columns) - 1)
    texts = [column.head for column in columns if column.text]
    can_drop = any(column.drop_order for column in columns)
    min_widths = {head: min(natural[head], _MIN_TEXT_WIDTH if can_drop else len(head)) for head in texts}
    while sum(widths.values()) > available:
        widest = max(texts, key=lambda head: widths[head] - min_widths[head], default=None)
        if widest is None or widths[widest] <= min_widths[widest]:
            return None if can_drop else widths  # cannot get narrower: the terminal wraps
        widths[widest] -= 1
    return widths


def _shorten(value: object, width: int) -> object:
    text = cell(value)
    return value if len(text) <= width else f"{text[: width - 1]}…"


def grid(heads: Sequence[str], rows: Sequence[Sequence[object]], *, no_wrap: bool = False) -> Any:
    """Build a table. `no_wrap`: neither wrap nor shorten its values."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rendered = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, head in enumerate(heads):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        rendered.add_column(head, justify="right" if numeric else "left", no_wrap=no_wrap)
    for row in rows:
        rendered.add_row(*(Text(cell(value), style=COLOURS.get(str(value), "")) for value in row))
    return rendered


def cell(value: object) -> str:
    """Format a value for a table cell: one line, without control characters."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case datetime():
            return ago(value)
        case _:
            return safe(str(value))


def safe(text: str) -> str:
    """Return untrusted text in one line, without control characters."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def ago(at: datetime | None) -> str:
    """Format the distance of a time from now, such as `3m ago` or `in 2h`."""
    if at is None:
        return "–"
    distance = (datetime.now(UTC) - at).total_seconds()
    return f"{span(distance)} ago" if distance >= 0 else f"in {span(-distance)}"


def is_past(at: datetime) -> bool:
    """Return whether a time is in the past, by this machine's clock."""
    return at <= datetime.now(UTC)


def span(seconds: float | None) -> str:
    """Format a duration in its two largest units."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f}s"
    remaining = int(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if remaining >= length:
            parts.append(f"{remaining // length}{unit}")
            remaining %= length
    return " ".join(parts[:2])


def size(byte_count: int | None) -> str:
    """Format a number of bytes."""
    if byte_count is None:
        return "–"
    mebibytes = byte_count / 2**20
    return f"{mebibytes:,.0f} MiB" if mebibytes < 10_240 else f"{mebibytes / 1_024:,.1f} GiB"


def local(at: datetime | None) -> str:
    """Format a time in the local time zone, with its distance from now."""
    return "–" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def note(text: str) -> None:
    """Print a message to standard error."""
    print(text, file=sys.stderr, flush=True)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
