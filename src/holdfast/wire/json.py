"""JSON from outside, read strictly: what is ambiguous or cannot be kept as it is, is refused."""

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
"""Names, lists and objects in a body of up to `SMALL_BODY_BYTES` bytes, and in a larger one."""
MAX_BATCH_PARTS = 600_000
MAX_QUOTES = 200_000
MAX_NAME_CHARS = 100


class Malformed(Invalid):
    """The body is not JSON, or not JSON that means one thing only."""

    code = "malformed"


def read(body: bytes, kind: type[T]) -> T:
    """A request's body as the type its route takes; `Invalid` with a pointer to what is at fault.

    A type that is a batch is read item by item when it is at fault, so that every item at fault can be named.
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
    """Any JSON value; refuses names that stand twice in one object, where readers would disagree.

    What takes many times as much memory once it is read as it takes to write is refused before it is read.
    """
    if len(body) > MAX_PARTS:  # one that is shorter cannot have more
        _check_parts(body)
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Malformed("the body is nested too deeply: at most 32 levels are allowed") from None
    if not _names_once(body, value):
        raise Malformed("a name stands twice in one object: keep one of the two")
    return value


def _names_once(body: bytes, value: Any) -> bool:
    """Whether nothing was dropped from a body when this value was read from it, for a name stood twice."""
    if b"\\" not in body:
        # Texts are written as they were read, so that a colon is missing only where a name is.
        try:
            return body.count(b":") == _ENCODE(value).count(b":")
        except (RecursionError, OverflowError, ValueError):
            pass  # what cannot be written is counted
    return _STRINGS.sub(b"", body).count(b":") == _names(value)


def _check_parts(body: bytes) -> None:
    most = MAX_PARTS if len(body) <= SMALL_BODY_BYTES else MAX_BATCH_PARTS
    if _parts(body) > most and _parts(body) - sum(_parts(text[0]) for text in _STRINGS.finditer(body)) > most:
        raise Malformed("the body has too many names, lists and objects: send less at once")
    if len(body) <= SMALL_BODY_BYTES and body.count(b'"') > MAX_QUOTES:
        raise Malformed("the body has too many texts: send less at once")


def _parts(text: bytes) -> int:
    return text.count(b":") + text.count(b"[") + text.count(b"{")


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """A JSON value as this type; not `strict` where numbers come as text, as in a query."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise fault(error) from None


def fault(error: msgspec.ValidationError) -> Invalid:
    """What msgspec found, with the place as a JSON pointer."""
    text = str(error)
    pointer = ""
    if where := _WHERE.fullmatch(text):
        text = where[1]
        pointer = "".join(f"/{_step(name or index)}" for name, index in _PARTS.findall(where[2]))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        pointer += f"/{_step(unknown[1])}"
        text = "there is no such field: leave it out"
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", text, re.DOTALL):
        pointer += f"/{_step(missing[1])}"
        text = "this field is missing: add it"
    return Invalid(f"{pointer.removeprefix('/').replace('/', '.') or 'the body'}: {text}", pointer=pointer)


def _step(name: str) -> str:
    return name[:MAX_NAME_CHARS].replace("~", "~0").replace("/", "~1")


def _names(value: Any) -> int:
    """How many names the objects in a value have. Not recursive: depth is the sender's choice."""
    count = 0
    left = [value]
    while left:
        each = left.pop()
        if type(each) is dict:
            count += len(each)
            left += [child for child in each.values() if type(child) in _NESTED]
        elif type(each) is list:
            left += [child for child in each if type(child) in _NESTED]
    return count


_NESTED = frozenset({dict, list})
