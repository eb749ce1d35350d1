"""Strict parsing of JSON from clients: rejects ambiguous and excessive input."""

import re
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Invalid

T = TypeVar("T")

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_WHERE = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_PARTS = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_DECODE = msgspec.json.Decoder().decode
_ENCODE = msgspec.json.Encoder().encode

SMALL_BODY_BYTES = 1024 * 1024
MAX_PARTS = 60_000
"""Maximum number of names, lists and objects in a body of up to `SMALL_BODY_BYTES`."""
MAX_BATCH_PARTS = 600_000
"""Maximum number of names, lists and objects in a larger body."""
MAX_QUOTES = 200_000
MAX_NAME_CHARS = 100


class Malformed(Invalid):
    """The body is not JSON, or is ambiguous."""

    code = "malformed"


def read(body: bytes, kind: type[T]) -> T:
    """Parse a request body as the route's type.

    An invalid batch is parsed item by item, so that the response can list every invalid item.

    Raises:
        Invalid: With a pointer to the invalid field.
    """
    value = parse(body)
    try:
        return convert(value, kind)
    except Invalid:
        sort_out = getattr(kind, "sort_out", None)
        sorted_out: T | None = None if sort_out is None else sort_out(value, _item)
        if sorted_out is None:
            raise
        return sorted_out


def _item(value: Any, kind: type[T]) -> T | Invalid:
    try:
        return convert(value, kind)
    except Invalid as fault:
        return fault


def parse(body: bytes) -> Any:
    """Parse JSON; reject duplicate names in one object, because parsers disagree about them.

    Bodies that would use far more memory than their size are rejected before they are parsed.
    """
    if len(body) > MAX_PARTS:  # a shorter body cannot have more parts
        _check_parts(body)
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Malformed("the body is nested too deeply: use at most 32 levels") from None
    if not _names_once(body, value):
        raise Malformed("a name occurs twice in one object: keep one of the two")
    return value


def _names_once(body: bytes, value: Any) -> bool:
    """Return whether the parsed value has all names of the body, so that none occurred twice."""
    if b"\\" not in body:
        # Without escapes, encoding reproduces the strings, so a missing colon means a dropped name.
        try:
            return body.count(b":") == _ENCODE(value).count(b":")
        except (RecursionError, OverflowError, ValueError):
            pass  # the value cannot be encoded: count names instead
    return _STRINGS.sub(b"", body).count(b":") == _names(value)


def _check_parts(body: bytes) -> None:
    maximum = MAX_PARTS if len(body) <= SMALL_BODY_BYTES else MAX_BATCH_PARTS
    if _parts(body) > maximum and _parts(body) - sum(_parts(text[0]) for text in _STRINGS.finditer(body)) > maximum:
        raise Malformed("the body has too many names, lists and objects: split it into several requests")
    if len(body) <= SMALL_BODY_BYTES and body.count(b'"') > MAX_QUOTES:
        raise Malformed("the body has too many strings: split it into several requests")


def _parts(text: bytes) -> int:
    return text.count(b":") + text.count(b"[") + text.count(b"{")


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """Convert a JSON value to this type; not `strict` accepts numbers as text, as in a query."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise fault(error) from None


def fault(error: msgspec.ValidationError) -> Invalid:
    """Convert an error of msgspec, with the location as a JSON pointer."""
    text = str(error)
    pointer = ""
    if where := _WHERE.fullmatch(text):
        text = where[1]
        pointer = "".join(f"/{_step(name or index)}" for name, index in _PARTS.findall(where[2]))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        pointer += f"/{_step(unknown[1])}"
        text = "there is no such field: remove it"
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", text, re.DOTALL):
        pointer += f"/{_step(missing[1])}"
        text = "this field is missing: add it"
    return Invalid(f"{pointer.removeprefix('/').replace('/', '.') or 'the body'}: {text}", pointer=pointer)


def _step(name: str) -> str:
    return name[:MAX_NAME_CHARS].replace("~", "~0").replace("/", "~1")


def _names(value: Any) -> int:
    """Count the names of all objects in a value; iterative, because clients choose the depth."""
    count = 0
    pending = [value]
    while pending:
        node = pending.pop()
        if type(node) is dict:
            count += len(node)
            pending += [child for child in node.values() if type(child) in _NESTED]
        elif type(node) is list:
            pending += [child for child in node if type(child) in _NESTED]
    return count


_NESTED = frozenset({dict, list})
