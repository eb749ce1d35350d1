"""Keys that tell a repetition from something new."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import Invalid

MAX_PARTS = 20

_CANONICAL = msgspec.json.Encoder(order="deterministic")


def body_fingerprint(asked: object) -> bytes:
    """Equal for two submissions that ask for the same, whatever the order of their keys."""
    return hashlib.sha256(_CANONICAL.encode(asked)).digest()[:16]


def unique_key(job_type: str, queue: str, payload: bytes, by: Sequence[str]) -> str:
    """The key under which a unique job is one: its type, and of what it was asked the parts named in `by`.

    `by` may name `type`, `queue`, `payload`, or `payload.<field>` for one field of an object payload.
    """
    if len(by) > MAX_PARTS:
        raise Invalid(f"unique.by has {len(by)} entries; at most {MAX_PARTS} are allowed", pointer="/unique/by")
    value = msgspec.json.decode(payload)
    parts: dict[str, Any] = {"type": job_type}
    for name in by:
        match str(name).split(".", 1):
            case ["type"]:
                pass
            case ["queue"]:
                parts["queue"] = queue
            case ["payload"]:
                parts["payload"] = value
            case ["payload", field]:
                if not isinstance(value, dict) or field not in value:
                    raise Invalid(
                        f"unique.by names 'payload.{field}', but the payload has no such field", pointer="/unique/by"
                    )
                parts[f"payload.{field}"] = value[field]
            case _:
                raise Invalid(
                    f"unique.by names {name!r}; it may name 'type', 'queue', 'payload' or 'payload.<field>'",
                    pointer="/unique/by",
                )
    return hashlib.sha256(_CANONICAL.encode(parts)).hexdigest()[:40]
