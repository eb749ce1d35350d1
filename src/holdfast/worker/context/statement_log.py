"""Results of statements, kept without loss, so that the next attempt is given the same."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.errors import Invalid, NonDeterministic
from holdfast.model.step import TRANSACTION_MARK

MAX_RESULTS_BYTES = 1024 * 1024
"""Bytes that the results of one transaction may take."""

_ENCODE = msgspec.json.Encoder().encode
_SMALL = range(-(2**53), 2**53)


class StatementRecord(NamedTuple):
    """A statement, by a digest of its text, and what it gave."""

    digest: str
    result: Any


class StatementLog:
    """What the statements of one transaction gave, in order."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._size = 0

    def add(self, sql: str, result: Any) -> None:
        """Keep this result; raises `Invalid` when it cannot be kept, or is too much."""
        entry = _ENCODE([digest(sql), pack(result)])
        self._size += len(entry)
        if self._size > MAX_RESULTS_BYTES:
            raise Invalid(
                f"the results of this transaction exceed {MAX_RESULTS_BYTES:,} bytes, the limit for "
                "one attempt: select fewer rows or columns, or read what only this attempt needs outside of it",
                pointer="/step",
            )
        self._entries.append(entry)

    def to_bytes(self) -> bytes:
        """All of it."""
        return TRANSACTION_MARK + b"[" + b",".join(self._entries) + b"]"


def read(stored: bytes) -> list[StatementRecord]:
    """The entries of a journal; raises `NonDeterministic` when it is none."""
    if not stored.startswith(TRANSACTION_MARK):
        raise NonDeterministic("an earlier attempt recorded something else than a transaction under this key")
    return [StatementRecord(text, unpack(result)) for text, result in msgspec.json.decode(stored[1:])]


def digest(sql: str) -> str:
    """Tells statements apart, however they are spaced."""
    return hashlib.sha256(" ".join(sql.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def pack(value: Any) -> Any:
    """A value as JSON that says its type."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        if isinstance(value, UUID):  # drivers have their own kinds
            return ["u", value.hex]
        raise Invalid(
            f"a {type(value).__name__} among the results of a transaction cannot be kept for the next attempt: "
            "turn it into text or a number in the statement",
            pointer="/step",
        )
    return writer(value)


def unpack(packed: Any) -> Any:
    """The value again, of the same type."""
    if not isinstance(packed, list):
        return packed
    tag, *rest = packed
    return _READERS[tag](*rest)


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return ["x", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()]
    return value


def _items(values: Sequence[Any]) -> list[Any]:
    return [unpack(value) for value in values]


_WRITERS: dict[type, Callable[[Any], Any]] = {
    type(None): lambda _: None,
    bool: lambda value: value,
    int: lambda value: value if value in _SMALL else ["i", str(value)],
    float: lambda value: ["f", repr(value)],
    str: _text,
    bytes: lambda value: ["b", base64.b64encode(value).decode()],
    Decimal: lambda value: ["n", str(value)],
    UUID: lambda value: ["u", value.hex],
    # A zone is kept as its offset at that moment.
    datetime: lambda value: ["a", value.isoformat(), value.fold],
    date: lambda value: ["d", value.isoformat()],
    time: lambda value: ["c", value.isoformat(), value.fold],
    timedelta: lambda value: ["s", value.days, value.seconds, value.microseconds],
    list: lambda value: ["l", [pack(item) for item in value]],
    tuple: lambda value: ["t", [pack(item) for item in value]],
    dict: lambda value: ["m", [[pack(key), pack(item)] for key, item in value.items()]],
}

_READERS: dict[str, Callable[..., Any]] = {
    "i": int,
    "f": float,
    "x": lambda text: base64.b64decode(text).decode("utf-8", "surrogatepass"),
    "b": base64.b64decode,
    "n": Decimal,
    "u": UUID,
    "a": lambda text, fold: datetime.fromisoformat(text).replace(fold=fold),
    "d": date.fromisoformat,
    "c": lambda text, fold: time.fromisoformat(text).replace(fold=fold),
    "s": timedelta,
    "l": _items,
    "t": lambda values: tuple(_items(values)),
    "m": lambda pairs: {unpack(key): unpack(item) for key, item in pairs},
}
