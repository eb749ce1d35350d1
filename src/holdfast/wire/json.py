"""Strict parsing of JSON from clients: rejects ambiguous and excessive input."""

import re
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Invalid, forget_frames
from holdfast.model import bounds
from holdfast.wire.expected import expected_text
from holdfast.wire.integers import with_integers

T = TypeVar("T")

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ERROR_WITH_PATH = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_PATH_SEGMENT = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_FLOAT_FOR_INTEGER = re.compile(r"Expected `int\b[^`]*`, got `float`")
_DECODE = msgspec.json.Decoder().decode
_ENCODE = msgspec.json.Encoder().encode

MAX_SMALL_BODY_BYTES = 1024 * 1024
"""Routes that take no batch accept no larger body."""
MAX_PARTS = 60_000
"""Maximum number of names, lists and objects in a body that is not a batch."""
MAX_BATCH_PARTS = 600_000
"""Maximum number of names, lists and objects in a batch: 60 for each of 10,000 jobs."""
MAX_QUOTES = 200_000
"""Maximum number of quotation marks in a body that is not a batch."""
MAX_NAME_CHARS = 100


class Malformed(Invalid):
    """The body is not JSON, or is ambiguous."""

    code = "malformed"


def read(body: bytes, kind: type[T]) -> T:
    """Parse a request body as the route's type.

    An empty body and `null` count as an empty object, because some clients write one of them if there is nothing to
    send. An invalid batch is parsed item by item, so that the response can list every invalid item. A batch with an
    item that is too large is not parsed at all.

    Raises:
        Invalid: With a pointer to the invalid field.
    """
    check_items, parse_items = getattr(kind, "check_items", None), getattr(kind, "parse_items", None)
    is_batch = parse_items is not None or len(body) > MAX_SMALL_BODY_BYTES
    if check_items is not None and len(body) > bounds.MAX_JOB_BYTES:
        _check_parts(body, is_batch=is_batch)
        check_items(body)
    value = parse(body, is_batch=is_batch) if body.strip() else None
    if value is None:
        value = {}
    try:
        return convert(value, kind)
    except Invalid:
        batch: T | None = None if parse_items is None else parse_items(value, _item)
        if batch is None:
            raise
        return batch


def _item(value: Any, kind: type[T]) -> T | Invalid:
    try:
        return convert(value, kind)
    except Invalid as fault:
        forget_frames(fault)
        return fault


def parse(body: bytes, *, is_batch: bool = False) -> Any:
    """Parse JSON; reject duplicate names in one object, because parsers disagree about them.

    Bodies that would use far more memory than their size are rejected before they are parsed. A batch may have more
    parts than another body, because it has those of all its items.
    """
    if len(body) > MAX_PARTS:  # a shorter body cannot have more parts
        _check_parts(body, is_batch=is_batch)
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise Malformed("the body is nested too deeply: use at most 32 levels") from None
    if not _has_unique_names(body, value):
        raise Malformed("a name occurs twice in one object: keep one of the two")
    return value


def _has_unique_names(body: bytes, value: Any) -> bool:
    """Return whether the parsed value has all names of the body, so that none occurred twice."""
    if b"\\" not in body:
        # Without escapes, encoding reproduces the strings, so a missing colon means a dropped name.
        try:
            return body.count(b":") == _ENCODE(value).count(b":")
        except (RecursionError, OverflowError, ValueError):
            pass  # the value cannot be encoded: count names instead
    return _STRINGS.sub(b"", body).count(b":") == _count_names(value)


def _check_parts(body: bytes, *, is_batch: bool) -> None:
    maximum = MAX_BATCH_PARTS if is_batch else MAX_PARTS
    if (
        _count_parts(body) > maximum
        and _count_parts(body) - sum(_count_parts(text[0]) for text in _STRINGS.finditer(body)) > maximum
    ):
        raise Malformed(f"the body has more than {maximum:,} names, lists and objects: split it into several requests")
    if not is_batch and body.count(b'"') > MAX_QUOTES:
        raise Malformed("the body has too many strings: split it into several requests")


def _count_parts(text: bytes) -> int:
    return text.count(b":") + text.count(b"[") + text.count(b"{")


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """Convert a JSON value to this type; not `strict` accepts numbers as text, as in a query."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        if not _FLOAT_FOR_INTEGER.match(str(error)):
            raise _invalid(error, kind) from None
    try:
        return msgspec.convert(with_integers(value, kind), kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind) from None


def _invalid(error: msgspec.ValidationError, kind: Any) -> Invalid:
    """Convert an error of msgspec, with the location as a JSON pointer."""
    text = str(error)
    pointer = ""
    if with_path := _ERROR_WITH_PATH.fullmatch(text):
        text = with_path[1]
        pointer = "".join(f"/{_escape(name or index)}" for name, index in _PATH_SEGMENT.findall(with_path[2]))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        pointer += f"/{_escape(unknown[1])}"
        text = "there is no such field: remove it"
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", text, re.DOTALL):
        pointer += f"/{_escape(missing[1])}"
        text = "this field is missing: add it"
    elif text.startswith(("Invalid enum value ", "Expected `str` matching regex ")):
        text = (
            f"{text.removeprefix('Invalid enum value ')} is not allowed" if text.startswith("Invalid") else "wrong form"
        )
        text += f": {expected_text(kind, pointer)}"
    return Invalid(f"{pointer.removeprefix('/').replace('/', '.') or 'the body'}: {text}", pointer=pointer)


def _escape(name: str) -> str:
    """Escape a name for a JSON pointer (RFC 6901), shortened."""
    return name[:MAX_NAME_CHARS].replace("~", "~0").replace("/", "~1")


def _count_names(value: Any) -> int:
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
