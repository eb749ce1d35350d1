"""Results of jobs that are too large to store, and what is stored instead."""

from typing import Any

import msgspec

from holdfast.model.bounds import MAX_RESULT_BYTES

HEAD_BYTES = 1_000

_ENCODE = msgspec.json.Encoder().encode


def bounded_result(encoded: bytes) -> bytes:
    """Return an encoded result, or its size and beginning if it is too large to store."""
    if len(encoded) <= MAX_RESULT_BYTES:
        return encoded
    head = encoded[:HEAD_BYTES].decode(errors="replace")
    return _ENCODE({"truncated": True, "bytes": len(encoded), "head": head})


def size_of_truncated(result: Any) -> int | None:
    """Return the size of the result if it was too large to store; None for any other."""
    match result:
        case {"truncated": True, "bytes": int(size), "head": str(), **rest} if not rest and size > MAX_RESULT_BYTES:
            return size
    return None
