"""Descriptions of the values that a field of a request may have, for error messages."""

from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from holdfast.model import bounds

_FORMS = {
    f"^{bounds.NAME_PATTERN}$": "use letters, digits and _ . : / @ + -, starting with a letter, a digit or _",
    r"^[^\x00-\x1f\x7f]*$": "use printable characters in one line",
    r"^https?://[!-~]{1,290}$": "write a URL such as https://example.com",
    r"^[0-9a-fA-F]{8}(-?[0-9a-fA-F]){0,24}-?$": "write at least the first 8 digits of a job id, such as 01981f5e",
    r"^w-[0-3][0-9a-f]{15}$": "write the id of a worker, such as w-019a8c5e7f3b2d40",
    r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$": "write the id of a job, such as "
    "01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11",
}
"""Texts of error messages, by regular expression of a field."""


def expected_text(kind: Any, pointer: str) -> str:
    """Return what to write into the field of `kind` that a JSON pointer names."""
    found = [inspect.type_info(kind)]
    for name in pointer.split("/")[1:]:
        found = [inner for outer in found for inner in _field(outer, name)]
    values = [value for node in found for value in _allowed(node)]
    if values:
        return f"use {', '.join(map(str, values))}"
    forms = [
        _FORMS[node.pattern] for node in _flat(found) if isinstance(node, inspect.StrType) and node.pattern in _FORMS
    ]
    return forms[0] if forms else "see the API reference"


def _flat(nodes: list[Any]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, inspect.Metadata):
            yield from _flat([node.type])
        elif isinstance(node, inspect.UnionType):
            yield from _flat(list(node.types))
        else:
            yield node


def _field(outer: Any, name: str) -> Iterator[Any]:
    for node in _flat([outer]):
        if isinstance(node, inspect.StructType):
            yield from (field.type for field in node.fields if field.encode_name == name)
        elif isinstance(node, inspect.ListType | inspect.VarTupleType | inspect.SetType):
            yield node.item_type


def _allowed(node: Any) -> Iterator[Any]:
    for plain in _flat([node]):
        if isinstance(plain, inspect.LiteralType):
            yield from plain.values
        elif isinstance(plain, inspect.EnumType):
            yield from (member.value for member in plain.cls)
