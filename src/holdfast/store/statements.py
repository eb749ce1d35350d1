"""Named SQL statements, loaded from `.sql` files and adapted to a driver.

Files in `common/` are read first; a dialect's own files override them. A statement begins with `-- name: …`. Within it,
`:name` is a parameter, `clock()` the database clock, `{READY}` the code of a status or another stored code (see
`holdfast.store.codes`), and `{job}` a list of columns or an expression that is defined once under `-- columns: job`.
All of this is substituted once, when the files are loaded; the text never depends on values.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

from holdfast.store.codes import substitute_codes

_HEADER = re.compile(r"^-- (name|columns): *(\w+) *$", re.MULTILINE)
_COLUMNS = re.compile(r"\{([a-z]\w*)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


class Statement(NamedTuple):
    """Statement text in the driver's syntax, and its parameter names in positional order."""

    name: str
    text: str
    parameters: tuple[str, ...]


Placeholder = Callable[[str, int], str]
"""Function that returns the placeholder for a parameter name and its position, from 1."""


class Statements:
    """All statements of one dialect."""

    def __init__(self, dialect: str, *, placeholder: Placeholder, clock: str, repeat_positions: bool = False) -> None:
        columns, bodies = _read(dialect)
        self._all: dict[str, Statement] = {}
        for name, body in bodies.items():
            text = _COLUMNS.sub(lambda match: columns[match.group(1)], body).replace("clock()", clock)
            self._all[name] = _adapt(name, substitute_codes(text), placeholder, repeat_positions=repeat_positions)

    def __getitem__(self, name: str) -> Statement:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def names(self) -> Mapping[str, frozenset[str]]:
        """Return the parameters of each statement by its name."""
        return {name: frozenset(statement.parameters) for name, statement in self._all.items()}


def _read(dialect: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the shared column lists and the statements of a dialect, by name."""
    folder = files("holdfast.store")
    sections: dict[str, dict[str, str]] = {"columns": {}, "name": {}}
    for source in (folder / "common", folder / dialect / "sql"):
        for file in sorted(source.iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".sql"):
                pieces = _HEADER.split(file.read_text())
                for kind, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
                    sections[kind][name] = _COMMENT.sub("", text).strip().rstrip(";")
    return sections["columns"], sections["name"]


def _adapt(name: str, text: str, placeholder: Placeholder, *, repeat_positions: bool) -> Statement:
    """Replace parameters by placeholders.

    With `repeat_positions`, each occurrence of a parameter takes its own value.
    """
    order: list[str] = []

    def place(match: re.Match[str]) -> str:
        parameter = match.group(1)
        if repeat_positions or parameter not in order:
            order.append(parameter)
        return placeholder(parameter, order.index(parameter) + 1)

    body = _PARAMETER.sub(place, text)
    return Statement(name, body, tuple(order))
