"""Syntax trees of the source, for rules that no linter has."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
DIALECTS = ("postgres", "mysql", "sqlite")


class Module(NamedTuple):
    """Source file of the package."""

    path: str
    """Relative to the package."""
    text: str
    tree: ast.Module


def modules(under: str = "") -> list[Module]:
    """Return all modules of the package, or those below one folder."""
    return [_read(file) for file in sorted((PACKAGE / under).rglob("*.py"))]


@cache
def _read(file: Path) -> Module:
    text = file.read_text()
    return Module(file.relative_to(PACKAGE).as_posix(), text, ast.parse(text))


def dotted(node: ast.expr) -> str:
    """Return the dotted name of an expression, such as `time.time`; empty if it is not a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def scopes(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the dotted name of the function or class that contains it."""
    for child in ast.iter_child_nodes(tree):
        yield inside, child
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from scopes(child, f"{inside}.{child.name}".lstrip(".") if named else inside)  # type: ignore[attr-defined]
