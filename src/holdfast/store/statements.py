"""Statements are constants, kept in `.sql` files under `-- name:`; here they are read and fitted to a driver.

`common/` is read first, a dialect's own files overlay it. In the files a parameter is written `:name`, the
database's clock `clock()`, and a list of columns that many statements share `{name}`, given once under `-- columns:`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

_HEAD = re.compile(r"^-- (name|columns): *(\w+) *$", re.MULTILINE)
_COLUMNS = re.compile(r"\{(\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


class Statement(NamedTuple):
    """A statement as the driver takes it, and the names of its parameters in the order it takes them."""

    name: str
    text: str
    parameters: tuple[str, ...]


Placeholder = Callable[[str, int], str]
"""From a parameter's name and its position (from 1) to what the driver wants in the text."""


class Statements:
    """All statements of one dialect."""

    def __init__(self, dialect: str, *, placeholder: Placeholder, clock: str, repeat_positions: bool = False) -> None:
        columns, bodies = _read(dialect)
        self._all: dict[str, Statement] = {}
        for name, body in bodies.items():
            text = _COLUMNS.sub(lambda match: columns[match.group(1)], body).replace("clock()", clock)
            self._all[name] = _fit(name, text, placeholder, repeat_positions=repeat_positions)

    def __getitem__(self, name: str) -> Statement:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def names(self) -> Mapping[str, frozenset[str]]:
        """Each statement's name with its parameters."""
        return {name: frozenset(statement.parameters) for name, statement in self._all.items()}


def _read(dialect: str) -> tuple[dict[str, str], dict[str, str]]:
    here = files("holdfast.store")
    found: dict[str, dict[str, str]] = {"columns": {}, "name": {}}
    for folder in (here / "common", here / dialect / "sql"):
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".sql"):
                pieces = _HEAD.split(file.read_text())
                for kind, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
                    found[kind][name] = _COMMENT.sub("", text).strip().rstrip(";")
    return found["columns"], found["name"]


def _fit(name: str, text: str, placeholder: Placeholder, *, repeat_positions: bool) -> Statement:
    order: list[str] = []

    def place(match: re.Match[str]) -> str:
        parameter = match.group(1)
        if repeat_positions or parameter not in order:
            order.append(parameter)
        return placeholder(parameter, order.index(parameter) + 1)

    body = _PARAMETER.sub(place, text)
    return Statement(name, body, tuple(order))
