"""Generate docs/reference/python.md from the docstrings of the public names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cached_property
from typing import TYPE_CHECKING, Any

import holdfast
import holdfast.client

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROUPS = {
    "The application": ("Holdfast", "JobType", "Unique"),
    "Handles": ("JobHandle", "AsyncJobHandle", "Job", "Status"),
    "Inside a job": ("CONTEXT", "Context", "SyncContext"),
    "Control flow of a job": ("Retry", "Snooze", "Hold", "Cancel", "Discard"),
    "Settings": ("Settings",),
}
"""Public names by subject; the remaining ones are errors."""

_FIELDS_ONLY = ("Settings",)
"""Classes whose fields have their own page."""

_USER_CONSTRUCTED = ("Holdfast", "Client")
_INTERNAL = {
    "Context": {"cancel", "finish", "begin_step", "end_step"},
    "Unique": {"spec"},
    "Retry": {"rule"},
    "Status": {"code"},
    "Client": {"ask", "pages"},
}
"""Members that only other parts of holdfast call."""


def parts() -> Iterator[str]:
    """Yield the sections of the page in order."""
    yield (
        "All names exported by `holdfast` and `holdfast.client`. See also the guides "
        "[Python](../guide/python.md), [Steps](../guide/steps.md) and [The HTTP client](../guide/client.md)."
    )
    for group, names in _GROUPS.items():
        yield f"## {group}"
        for name in names:
            yield from _name(name, getattr(holdfast, name))
    yield "## Errors"
    yield "All errors derive from `HoldfastError`. `code` is the error code in HTTP responses."
    listed = {name for names in _GROUPS.values() for name in names}
    rows = [
        f"| `{name}` | `{getattr(holdfast, name).code}` | {_first(getattr(holdfast, name))} |"
        for name in holdfast.__all__
        if name not in listed
    ]
    yield "\n".join(["| error | code | |", "|---|---|---|", *rows])
    yield "## holdfast.client"
    yield "`AsyncClient` has the same methods as coroutines; iterate over lists and events with `async for`."
    yield from _name("Client", holdfast.client.Client)


def _name(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}"
    if not inspect.isclass(thing):
        yield _doc(type(thing))
        return
    if name in _USER_CONSTRUCTED:
        yield f"`{name}{_signature(thing.__init__)}`"
    yield _doc(thing)
    if name in _FIELDS_ONLY:
        yield "The fields are in [Settings](settings.md)."
        return
    shown = [(each, member) for each, member in _members(thing) if each not in _INTERNAL.get(name, ())]
    rows = [row for each, member in shown if (row := _row(each, member))]
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows])


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members, including those inherited from holdfast classes, in source order."""
    seen: set[str] = set()
    for each in thing.__mro__:
        if each.__module__.partition(".")[0] != "holdfast":
            continue
        for name, member in vars(each).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


def _row(name: str, member: Any) -> str | None:
    if isinstance(member, (property, cached_property)):
        return f"| `{name}` | {_first(member)} |"
    function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    if inspect.isfunction(function):
        signature = _signature(function).replace("|", "\\|")
        return f"| `{name}{signature}` | {_first(function)} |"
    return None


def _signature(function: Any) -> str:
    """Return the signature as written in the source, which does not depend on the Python version."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise TypeError(f"{function} is not a function")
    arguments = node.args.posonlyargs or node.args.args
    if arguments and arguments[0].arg in ("self", "cls"):
        del arguments[0]
    result = "" if node.returns is None else ast.unparse(node.returns)
    return f"({ast.unparse(node.args)})" + ("" if result in ("", "None") else f" -> {result}")


def _doc(thing: Any) -> str:
    text = inspect.cleandoc(thing.__doc__ or "")
    return re.sub(r"\n\n(    .+(?:\n(?:    .+)?)*)", lambda match: f"\n\n{inspect.cleandoc(match[1])}", text)


def _first(thing: Any) -> str:
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return text.replace("|", "\\|")
