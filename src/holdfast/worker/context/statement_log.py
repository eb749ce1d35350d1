"""Log of a transaction's results, encoded without loss so that later attempts replay them."""

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
"""Largest total size of the results of one transaction."""

_ENCODE = msgspec.json.Encoder().encode
_JSON_SAFE_INTEGERS = range(-(2**53), 2**53)


class StatementRecord(NamedTuple):
    """Digest of a statement's text, and its result."""

    digest: str
    result: Any


class StatementLog:
    """Results of the statements of one transaction, in order."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._size = 0

    def add(self, sql: str, result: Any) -> None:
        """Append the result of a statement.

        Raises:
            Invalid: The result cannot be encoded, or all results together are too large.
        """
        entry = _ENCODE([digest(sql), pack(result)])
        self._size += len(entry)
        if self._size > MAX_RESULTS_BYTES:
            raise Invalid(
                f"the results of this transaction exceed the limit of {MAX_RESULTS_BYTES:,} bytes: select fewer rows "
                "or columns, or read rows that only this attempt needs outside of the transaction",
                pointer="/step",
            )
        self._entries.append(entry)

    def to_bytes(self) -> bytes:
        """Encode the whole log."""
        return TRANSACTION_MARK + b"[" + b",".join(self._entries) + b"]"


def read(stored: bytes) -> list[StatementRecord]:
    """Decode a log; raise `NonDeterministic` if the record is not a transaction's."""
    if not stored.startswith(TRANSACTION_MARK):
        raise NonDeterministic("an earlier attempt used this key for a step, not for a transaction")
    return [StatementRecord(sql_digest, unpack(result)) for sql_digest, result in msgspec.json.decode(stored[1:])]


def digest(sql: str) -> str:
    """Return a digest of a statement that ignores white space."""
    return hashlib.sha256(" ".join(sql.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def pack(value: Any) -> Any:
    """Convert a value to JSON that preserves its type."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        if isinstance(value, UUID):  # drivers have subclasses of their own
            return ["u", value.hex]
        raise Invalid(
            f"a transaction returned a {type(value).__name__}, which cannot be stored for the next attempt: "
            "convert it to text or a number in the statement",
            pointer="/step",
        )
    return writer(value)


def unpack(packed: Any) -> Any:
    """Convert the JSON of `pack` back to the value."""
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
    int: lambda value: value if value in _JSON_SAFE_INTEGERS else ["i", str(value)],
    float: lambda value: ["f", repr(value)],
    str: _text,
    bytes: lambda value: ["b", base64.b64encode(value).decode()],
    Decimal: lambda value: ["n", str(value)],
    UUID: lambda value: ["u", value.hex],
    # A time zone is reduced to its UTC offset.
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
