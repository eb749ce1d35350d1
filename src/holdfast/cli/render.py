"""How answers look: tables for people, JSON for programs."""

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
"""Of states."""

_GAP = 3
_LEAST = 12
"""Characters between columns, and those of a text that are worth showing."""

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
    from rich.measure import Measurement

    # What somebody may want to copy stays whole: if even the least does not fit, the terminal wraps it.
    needs = Measurement.get(out, out.options.update(width=1_000), drawn).maximum
    out.width = max(out.width, needs)
    out.print(drawn)


def fitted(items: Sequence[T], columns: Sequence[Column[T]], width: int) -> Any:
    """The table, texts shortened and columns left out as far as there is no room; None of nothing."""
    if not items:
        return None
    kept = list(columns)
    values = {column.head: [column.shows(item) for item in items] for column in kept}
    natural = {head: max(len(head), *(len(cell(each)) for each in found)) for head, found in values.items()}
    while (widths := _widths(kept, natural, width)) is None:
        kept.remove(max(kept, key=lambda column: column.spare))
    rows = [[_short(values[each.head][n], widths[each.head]) for each in kept] for n in range(len(items))]
    return grid([column.head for column in kept], rows, whole=True)


def _widths(columns: Sequence[Column[T]], natural: Mapping[str, int], width: int) -> Mapping[str, int] | None:
    """How wide each column is; None if one should be left out for the sake of the others."""
    widths = {column.head: natural[column.head] for column in columns}
    room = width - _GAP * (len(columns) - 1)
    texts = [column.head for column in columns if column.text]
    can_drop = any(column.spare for column in columns)
    least = {head: min(natural[head], _LEAST if can_drop else len(head)) for head in texts}
    while sum(widths.values()) > room:
        widest = max(texts, key=lambda head: widths[head] - least[head], default=None)
        if widest is None or widths[widest] <= least[widest]:
            return None if can_drop else widths  # as narrow as it gets: the terminal wraps
        widths[widest] -= 1
    return widths


def _short(value: object, width: int) -> object:
    text = cell(value)
    return value if len(text) <= width else f"{text[: width - 1]}…"


def grid(heads: Sequence[str], rows: Sequence[Sequence[object]], *, whole: bool = False) -> Any:
    """A table, to be printed or put somewhere; `whole`: nothing in it is to be wrapped or shortened."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, head in enumerate(heads):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        drawn.add_column(head, justify="right" if numeric else "left", no_wrap=whole)
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


def size(octets: int | None) -> str:
    """An amount of memory."""
    if octets is None:
        return "–"
    mebi = octets / 2**20
    return f"{mebi:,.0f} MiB" if mebi < 10_240 else f"{mebi / 1_024:,.1f} GiB"


def local(at: datetime | None) -> str:
    """A moment on the reader's clock, with its distance."""
    return "–" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def note(text: str) -> None:
    """Tell the person at the terminal, beside what the command prints."""
    print(text, file=sys.stderr, flush=True)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
