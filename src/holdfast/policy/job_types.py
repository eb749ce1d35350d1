"""Storage of the job types that workers declare, with a write only when something changed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from holdfast.model.job_type import MAX_DESCRIBED_TYPES, MAX_SCHEMA_BYTES, JobType, TypeMark
from holdfast.model.time import Instant, days, seconds

SEEN_INTERVAL = seconds(600)
"""Minimum time between two writes of a type's last-seen time, and so its precision."""

RETENTION = days(30)
"""Time for which a type is kept after the last worker that handled it is gone."""

MAX_QUEUES = 50

_ENCODE = msgspec.json.Encoder().encode


class TypeUpdate(NamedTuple):
    """Write of one type; if `about` is None, only its last-seen time changes."""

    type: str
    digest: str
    about: bytes | None


class TypeChanges(NamedTuple):
    """Writes that a registration causes, both sorted by type."""

    updates: list[TypeUpdate]
    evicted: list[str]
    """Types to delete so that the number of stored types stays within `MAX_DESCRIBED_TYPES`."""


def plan_changes(stored: Collection[TypeMark], at: Instant, declared: Iterable[JobType]) -> TypeChanges:
    """Return the writes for declared types: new, changed, or not marked as seen recently.

    Types that were seen longest ago are evicted first.
    """
    marks = {mark.type: mark for mark in stored}
    by_name = {job_type.type: job_type for job_type in declared}
    kept = dict(sorted(by_name.items())[:MAX_DESCRIBED_TYPES])
    updates = [
        update for name, job_type in kept.items() if (update := _update(marks.get(name), job_type, at)) is not None
    ]
    excess = len(marks.keys() | kept.keys()) - MAX_DESCRIBED_TYPES
    idle = sorted((mark.seen_at, mark.type) for mark in stored if mark.type not in kept)
    return TypeChanges(updates, sorted(name for _, name in idle[: max(0, excess)]))


def due_marks(stored: Iterable[TypeMark], handled: Collection[str], at: Instant) -> list[str]:
    """Return the types handled by live workers whose last-seen time is due for an update."""
    return sorted(mark.type for mark in stored if mark.type in handled and mark.seen_at + SEEN_INTERVAL <= at)


def bounded(job_type: JobType) -> JobType:
    """Return the type without a schema that is too large and with a bounded list of queues."""
    schema = job_type.schema
    if schema is not None and len(schema.encode()) > MAX_SCHEMA_BYTES:
        schema = None
    return msgspec.structs.replace(job_type, schema=schema, queues=job_type.queues[:MAX_QUEUES])


def encode(job_type: JobType) -> bytes:
    """Encode a type for storage, within the bounds."""
    return _ENCODE(bounded(job_type))


def _update(mark: TypeMark | None, job_type: JobType, at: Instant) -> TypeUpdate | None:
    about = encode(job_type)
    digest = blake2b(about, digest_size=16).hexdigest() if job_type.described else ""
    if mark is None or (job_type.described and mark.digest != digest):
        return TypeUpdate(job_type.type, digest, about)
    return TypeUpdate(job_type.type, mark.digest, None) if mark.seen_at + SEEN_INTERVAL <= at else None


def declared_types(names: Iterable[str], described: Mapping[str, JobType], queues: Sequence[str]) -> list[JobType]:
    """Return all types of a worker: described ones, and just the names of the rest."""
    return [
        msgspec.structs.replace(described.get(name) or JobType(name, described=False), queues=tuple(queues))
        for name in names
    ]
