"""What a supervisor, its children and theirs tell each other: one JSON value a line, over a pair of sockets."""

import msgspec
from msgspec import Struct

from holdfast.model.job import Job
from holdfast.model.job_type import JobType
from holdfast.model.outcome import LogLine, Outcome


class Hello(Struct, frozen=True, tag="hello"):
    """Child: the application is loaded; this is its database and what it handles."""

    url: str
    queues: dict[str, int]
    types: list[str]
    described: list[JobType] = []


class Failed(Struct, frozen=True, tag="failed"):
    """Child: the application cannot be run, and trying again will not help."""

    message: str


class Worn(Struct, frozen=True, tag="worn"):
    """Child: a handler cannot be stopped and keeps its slot; replace this process when the others have ended."""

    reason: str


class Load(Struct, frozen=True, tag="load"):
    """Child: how many jobs run and wait here, told while it drains; its memory, where nobody else can tell it."""

    running: int
    waiting: int
    memory: int | None = None


class Go(Struct, frozen=True, tag="go"):
    """Supervisor: you are this worker, with a lease of so many seconds, whose end is on the board."""

    worker: int
    lease: float


class Lost(Struct, frozen=True, tag="lost"):
    """Supervisor: the lease is gone; stop all handlers and end."""


class Drain(Struct, frozen=True, tag="drain"):
    """Supervisor: claim no more, finish within this many seconds, hand back the rest and end."""

    seconds: float


class Given(Struct, frozen=True, tag="given"):
    """Worker, to the process of a job: run this, and note in this cell of the board that its handler begins."""

    job: Job
    cell: int | None


class Begun(Struct, frozen=True, tag="begun"):
    """Process of a job: all is loaded, the handler begins."""


class Logged(Struct, frozen=True, tag="logged"):
    """Process of a job: its handler logged this."""

    line: LogLine


class Ended(Struct, frozen=True, tag="ended"):
    """Process of a job: this came of it."""

    outcome: Outcome


class Ready(Struct, frozen=True, tag="ready"):
    """Nursery: the application is loaded, and processes can be forked."""


class Unfit(Struct, frozen=True, tag="unfit"):
    """Nursery: the application is loaded and must not be forked, for this reason."""

    reason: str


FromChild = Hello | Failed | Worn | Load
ToChild = Go | Lost | Drain
FromJob = Begun | Logged | Ended | Failed
FromNursery = Ready | Unfit | Failed

_ENCODE = msgspec.json.Encoder().encode
_FROM_CHILD: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)
_TO_CHILD: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
_TO_JOB: msgspec.json.Decoder[Given] = msgspec.json.Decoder(Given)
_FROM_JOB: msgspec.json.Decoder[FromJob] = msgspec.json.Decoder(FromJob)

_FROM_NURSERY: msgspec.json.Decoder[FromNursery] = msgspec.json.Decoder(FromNursery)


def line(message: FromChild | ToChild | Given | FromJob | FromNursery) -> bytes:
    """A message as it travels."""
    return _ENCODE(message) + b"\n"


def read_from_child(text: bytes) -> FromChild:
    """What a child said."""
    return _FROM_CHILD.decode(text)


def read_to_child(text: bytes) -> ToChild:
    """What the supervisor said."""
    return _TO_CHILD.decode(text)


def read_to_job(text: bytes) -> Given:
    """What the worker gave the process of a job to do."""
    return _TO_JOB.decode(text)


def read_from_job(text: bytes) -> FromJob:
    """What the process of a job said."""
    return _FROM_JOB.decode(text)


def read_from_nursery(text: bytes) -> FromNursery:
    """What a nursery said when it had loaded the application, or could not."""
    return _FROM_NURSERY.decode(text)
