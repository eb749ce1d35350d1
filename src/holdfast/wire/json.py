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


class Malformed(Invalid):
    """The body is not JSON, or not JSON that means one thing only."""

    code = "malformed"


def read(body: bytes, kind: type[T]) -> T:
    """A request's body as the type its route takes; `Invalid` with a pointer to what is at fault."""
    return convert(parse(body), kind)


def parse(body: bytes) -> Any:
    """Any JSON value; refuses names that stand twice in one object, where readers would disagree."""
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Malformed("the body is nested too deeply: at most 32 levels are allowed") from None
    if _STRINGS.sub(b"", body).count(b":") != _names(value):
        raise Malformed("a name stands twice in one object: keep one of the two")
    return value


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
        pointer = "".join(f"/{name or index}" for name, index in _PARTS.findall(where[2]))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        pointer += f"/{unknown[1]}"
        text = "there is no such field: leave it out"
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", text, re.DOTALL):
        pointer += f"/{missing[1]}"
        text = "this field is missing: add it"
    return Invalid(f"{pointer.removeprefix('/').replace('/', '.') or 'the body'}: {text}", pointer=pointer)


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
