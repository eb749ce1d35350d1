"""Fingerprints for idempotency, and unique keys."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import Invalid

MAX_PARTS = 20

_CANONICAL = msgspec.json.Encoder(order="deterministic")


def body_fingerprint(submission: object) -> bytes:
    """Return a hash of a submission that does not depend on the order of its JSON keys."""
    return hashlib.sha256(_CANONICAL.encode(submission)).digest()[:16]


def unique_key(job_type: str, queue: str, payload: bytes, by: Sequence[str]) -> str:
    """Return the unique key of a job: a hash of its type and of the parts named in `by`.

    `by` may name `type`, `queue`, `payload`, or `payload.<field>` for one field of an object payload.

    Raises:
        Invalid: `by` has too many entries, names an unknown part, or a field that the payload does not have.
    """
    if len(by) > MAX_PARTS:
        raise Invalid(f"unique.by has {len(by)} entries; at most {MAX_PARTS} are allowed", pointer="/unique/by")
    value = msgspec.json.decode(payload)
    parts: dict[str, Any] = {"type": job_type}
    for name in by:
        match str(name).split(".", 1):
            case ["type"]:
                pass  # always part of the key
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
