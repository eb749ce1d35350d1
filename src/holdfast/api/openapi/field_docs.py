"""Docstrings of the fields of wire types, read from their source."""

import ast
import sys
from functools import lru_cache
from pathlib import Path


def field_docs(struct: type) -> dict[str, str]:
    """Return the docstring of each field of a struct that has one, inherited ones included.

    Returns nothing for a field whose source is not installed.
    """
    found: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        found |= _docs_of_module(kind.__module__).get(kind.__qualname__, {})
    return found


@lru_cache(64)
def _docs_of_module(name: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields by class and field."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if not name.startswith("holdfast.") or path is None:
        return {}
    try:
        tree = ast.parse(Path(path).with_suffix(".py").read_text())
    except (OSError, ValueError, SyntaxError):
        return {}
    return {node.name: _docs_of_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docs_of_class(node: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                docs[name] = " ".join(doc.split())
            case _:
                pass
    return docs
