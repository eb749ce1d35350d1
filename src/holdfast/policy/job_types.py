"""What to write down of the types that workers tell of: little, and not at every start of a process."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from holdfast.model.job_type import LARGEST_SCHEMA, MOST_DESCRIBED, JobType, TypeMark
from holdfast.model.time import Instant, days, seconds

SEEN_EVERY = seconds(600)
"""How exact it is when a type was last seen whose workers are gone."""

KEPT = days(30)
"""For how long a type is remembered that nobody handles any more."""

MOST_QUEUES = 50

_ENCODE = msgspec.json.Encoder().encode


class Noted(NamedTuple):
    """A type as it is written down; `about` None: only that it was seen."""

    type: str
    digest: str
    about: bytes | None


class Changes(NamedTuple):
    """What to write, in the order of the names, and what to forget for it."""

    noted: list[Noted]
    forgotten: list[str]


def changes(known: Collection[TypeMark], at: Instant, told: Iterable[JobType]) -> Changes:
    """What a worker that registers tells that is not known yet, or not known lately.

    Never more than `MOST_DESCRIBED` are remembered: those that were seen longest ago make room.
    """
    marks = {mark.type: mark for mark in known}
    named = {each.type: each for each in told}
    wanted = dict(sorted(named.items())[:MOST_DESCRIBED])
    noted = [news for each in wanted.values() if (news := _news(marks.get(each.type), each, at)) is not None]
    spare = len(marks.keys() | wanted.keys()) - MOST_DESCRIBED
    idle = sorted((mark.seen_at, mark.type) for mark in known if mark.type not in wanted)
    return Changes(noted, sorted(name for _, name in idle[: max(0, spare)]))


def overdue(known: Iterable[TypeMark], handled: Collection[str], at: Instant) -> list[str]:
    """Which of the types that workers handle now are to be noted as seen."""
    return sorted(mark.type for mark in known if mark.type in handled and mark.seen_at + SEEN_EVERY <= at)


def bounded(told: JobType) -> JobType:
    """The same without what is too large to be kept."""
    schema = told.schema
    if schema is not None and len(schema.encode()) > LARGEST_SCHEMA:
        schema = None
    return msgspec.structs.replace(told, schema=schema, queues=told.queues[:MOST_QUEUES])


def written(told: JobType) -> bytes:
    """What is kept of a type."""
    return _ENCODE(bounded(told))


def _news(mark: TypeMark | None, told: JobType, at: Instant) -> Noted | None:
    about = written(told)
    digest = blake2b(about, digest_size=16).hexdigest() if told.described else ""
    if mark is None or (told.described and mark.digest != digest):
        return Noted(told.type, digest, about)
    return Noted(told.type, mark.digest, None) if mark.seen_at + SEEN_EVERY <= at else None


def of_names(names: Iterable[str], described: Mapping[str, JobType], queues: Sequence[str]) -> list[JobType]:
    """All types of a worker: as it described them, or their names alone."""
    return [
        msgspec.structs.replace(described.get(name) or JobType(name, described=False), queues=tuple(queues))
        for name in names
    ]
