"""How answers look: tables for people, JSON for programs."""

import sys
from collections.abc import Callable, Iterable, Sequence
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
"""Of states."""

json_option = click.option("--json", "json", is_flag=True, help="for programs")


class Column(NamedTuple, Generic[T]):
    """A column of a list: its head, what it shows of a thing, and how soon it is left out where there is no room."""

    head: str
    shows: Callable[[T], object]
    spare: int = 0
    """The higher, the sooner it is left out; 0 is always shown."""
    text: bool = False
    """Shortened where there is no room."""


def as_json(value: Any) -> str:
    """Indented, in the order given."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def console() -> "Console":
    """Standard output: as wide as the terminal, or as is needed when nobody looks at it on a screen."""
    from rich.console import Console

    made = Console(highlight=False, emoji=False)
    if made.is_terminal:
        return made
    return Console(width=1_000, highlight=False, emoji=False)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; numbers to the right."""
    drawn = grid(heads, rows)
    out = console()
    if title:
        out.print(title, markup=False, style="bold")
    out.print(drawn)


def listing(
    items: Iterable[T], columns: Sequence[Column[T]], *, none: str, title: str | None = None, out: Any = None
) -> None:
    """Print things as a table that fits the terminal, or say that there are none."""
    out = out or console()
    drawn = fitted(list(items), columns, out.width)
    if drawn is None:
        out.print(none, style="dim")
        return
    if title:
        out.print(title, markup=False, style="bold")
    out.print(drawn)


def fitted(items: Sequence[T], columns: Sequence[Column[T]], width: int) -> Any:
    """The table, without the columns that there is no room for; None of nothing."""
    if not items:
        return None
    kept = list(columns)
    rows = {column: [cell(column.shows(item)) for item in items] for column in kept}
    while _width(kept, rows) > width and any(column.spare for column in kept):
        kept.remove(max(kept, key=lambda column: column.spare))
    return grid(
        [column.head for column in kept],
        [[column.shows(item) for column in kept] for item in items],
        shorten=[column.head for column in kept if column.text],
    )


def grid(heads: Sequence[str], rows: Sequence[Sequence[object]], *, shorten: Sequence[str] = ()) -> Any:
    """A table, to be printed or put somewhere. Columns named in `shorten` give way; with none, all may wrap."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, head in enumerate(heads):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        whole = bool(shorten)
        drawn.add_column(
            head,
            justify="right" if numeric else "left",
            no_wrap=whole,
            overflow="ellipsis",
            min_width=None if not whole or head in shorten else max([len(head), *(len(cell(r[index])) for r in rows)]),
        )
    for row in rows:
        drawn.add_row(*(Text(cell(value), style=COLOURS.get(str(value), "")) for value in row))
    return drawn


def cell(value: object) -> str:
    """A value as a table shows it, in one line and without what could move the cursor."""
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
    """A text of somebody else's in one line, without characters that a terminal would act on."""
    return "".join(each if each.isprintable() else " " for each in text).strip()


def ago(at: datetime | None) -> str:
    """When that was, or will be, in short."""
    if at is None:
        return "–"
    distance = (datetime.now(UTC) - at).total_seconds()
    return f"{span(distance)} ago" if distance >= 0 else f"in {span(-distance)}"


def is_past(at: datetime) -> bool:
    """Whether a moment is over, by the reader's clock."""
    return at <= datetime.now(UTC)


def span(seconds: float | None) -> str:
    """A length of time in its two largest units."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f}s"
    left = int(seconds)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts[:2])


def local(at: datetime | None) -> str:
    """A moment on the reader's clock, with its distance."""
    return "–" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def note(text: str) -> None:
    """Tell the person at the terminal, beside what the command prints."""
    print(text, file=sys.stderr, flush=True)


def _width(columns: Sequence[Column[T]], rows: dict[Column[T], list[str]]) -> int:
    """What it takes: those that can be shortened count with what they are still worth."""
    needs = [max([len(column.head), *map(len, rows[column])]) for column in columns]
    least = [min(need, 16) if column.text else need for column, need in zip(columns, needs, strict=True)]
    return sum(least) + 3 * (len(least) - 1)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
