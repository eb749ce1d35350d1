"""Results of jobs that are too large to store, and what is stored instead."""

from typing import Any

from holdfast.model.bounds import MAX_RESULT_BYTES

HEAD_BYTES = 1_000


def truncated_result(encoded: bytes) -> dict[str, Any]:
    """Return what is stored instead of an encoded result that exceeds the maximum size."""
    return {"truncated": True, "bytes": len(encoded), "head": encoded[:HEAD_BYTES].decode(errors="replace")}


def size_of_truncated(result: Any) -> int | None:
    """Return the size of the result if it was too large to store; None for any other."""
    match result:
        case {"truncated": True, "bytes": int(size), "head": str(), **rest} if not rest and size > MAX_RESULT_BYTES:
            return size
    return None
