"""What to write down of the types that workers tell of: little, and not at every start of a process."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from holdfast.model.job_type import MAX_DESCRIBED_TYPES, MAX_SCHEMA_BYTES, JobType, TypeMark
from holdfast.model.time import Instant, days, seconds

SEEN_INTERVAL = seconds(600)
"""How exact it is when a type was last seen whose workers are gone."""

RETENTION = days(30)
"""For how long a type is remembered that nobody handles any more."""

MAX_QUEUES = 50

_ENCODE = msgspec.json.Encoder().encode


class TypeUpdate(NamedTuple):
    """A type as it is written down; `about` None: only that it was seen."""

    type: str
    digest: str
    about: bytes | None


class Changes(NamedTuple):
    """What to write, in the order of the names, and what to forget for it."""

    noted: list[TypeUpdate]
    forgotten: list[str]


def changes(known: Collection[TypeMark], at: Instant, told: Iterable[JobType]) -> Changes:
    """What a worker that registers tells that is not known yet, or not known lately.

    Never more than `MAX_DESCRIBED_TYPES` are remembered: those that were seen longest ago make room.
    """
    marks = {mark.type: mark for mark in known}
    named = {each.type: each for each in told}
    wanted = dict(sorted(named.items())[:MAX_DESCRIBED_TYPES])
    noted = [news for each in wanted.values() if (news := _news(marks.get(each.type), each, at)) is not None]
    spare = len(marks.keys() | wanted.keys()) - MAX_DESCRIBED_TYPES
    idle = sorted((mark.seen_at, mark.type) for mark in known if mark.type not in wanted)
    return Changes(noted, sorted(name for _, name in idle[: max(0, spare)]))


def overdue(known: Iterable[TypeMark], handled: Collection[str], at: Instant) -> list[str]:
    """Which of the types that workers handle now are to be noted as seen."""
    return sorted(mark.type for mark in known if mark.type in handled and mark.seen_at + SEEN_INTERVAL <= at)


def bounded(told: JobType) -> JobType:
    """The same without what is too large to be kept."""
    schema = told.schema
    if schema is not None and len(schema.encode()) > MAX_SCHEMA_BYTES:
        schema = None
    return msgspec.structs.replace(told, schema=schema, queues=told.queues[:MAX_QUEUES])


def written(told: JobType) -> bytes:
    """What is kept of a type."""
    return _ENCODE(bounded(told))


def _news(mark: TypeMark | None, told: JobType, at: Instant) -> TypeUpdate | None:
    about = written(told)
    digest = blake2b(about, digest_size=16).hexdigest() if told.described else ""
    if mark is None or (told.described and mark.digest != digest):
        return TypeUpdate(told.type, digest, about)
    return TypeUpdate(told.type, mark.digest, None) if mark.seen_at + SEEN_INTERVAL <= at else None


def of_names(names: Iterable[str], described: Mapping[str, JobType], queues: Sequence[str]) -> list[JobType]:
    """All types of a worker: as it described them, or their names alone."""
    return [
        msgspec.structs.replace(described.get(name) or JobType(name, described=False), queues=tuple(queues))
        for name in names
    ]
