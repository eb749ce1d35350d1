"""How answers look: tables for people, JSON for programs."""

from collections.abc import Sequence
from typing import Any

import msgspec


def as_json(value: Any) -> str:
    """Indented, in the order given."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; numbers to the right. Wide as it needs to be when nobody looks at it on a screen."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=1_000)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, head in enumerate(heads):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        drawn.add_column(head, justify="right" if numeric else "left")
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    if title:
        console.print(title, highlight=False, markup=False, style="bold")
    console.print(drawn)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _cell(value: object) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
