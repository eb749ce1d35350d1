"""Protocol between supervisor, worker and job processes: messages, exit codes and timing.

Messages are JSON values, one per line, over a socket pair.
"""

import msgspec
from msgspec import Struct

from holdfast.model.job import Job
from holdfast.model.job_type import JobType
from holdfast.model.outcome import LogLine, Outcome

EXIT_LEASE_LOST = 75
"""Exit code of a worker process that stopped because it lost its lease."""

EXIT_NO_DATABASE = 69
"""Exit code of a worker process that could not connect to the database."""

LEASE_MARGIN = 1 / 6
"""Share of a lease, at its end, in which the worker no longer relies on it."""


UNLIMITED_DRAIN_S = 365 * 86_400.0
"""Drain period of a worker that may finish its jobs however long they run."""


def stop_timeout(lease: float) -> float:
    """Return the seconds that handlers have to stop after a lost lease: at most half the margin."""
    return min(1.0, lease * LEASE_MARGIN / 2)


class Hello(Struct, frozen=True, tag="hello"):
    """Child: the application is loaded; this is its database and what it handles."""

    url: str
    queues: dict[str, int]
    types: list[str]
    described: list[JobType] = []


class StartFailed(Struct, frozen=True, tag="start_failed"):
    """Child: the application cannot be run, and a retry will not help."""

    message: str


class SlotLost(Struct, frozen=True, tag="slot_lost"):
    """Child: a handler that does not stop occupies a slot; replace this process."""

    reason: str


class Load(Struct, frozen=True, tag="load"):
    """Child: running and waiting jobs, and finished attempts.

    Its memory is set where the supervisor cannot read it.
    """

    running: int
    waiting: int
    memory: int | None = None
    finished: int = 0


class Start(Struct, frozen=True, tag="start"):
    """Supervisor: start as this worker with a lease of this many seconds."""

    worker: int
    lease: float


class Lost(Struct, frozen=True, tag="lost"):
    """Supervisor: the lease is gone; stop all handlers and end."""


class Drain(Struct, frozen=True, tag="drain"):
    """Supervisor: stop claiming, finish within this many seconds, release the rest, exit."""

    seconds: float


class RunJob(Struct, frozen=True, tag="run_job"):
    """Worker to job process: run this job under this number; record its start in this entry."""

    run: int
    job: Job
    entry: int | None


class StopHandler(Struct, frozen=True, tag="stop_handler"):
    """Worker to job process: cancel the handler of this run."""

    run: int


class HandlerStarted(Struct, frozen=True, tag="handler_started"):
    """Job process: the application is loaded and the handler of this run starts."""

    run: int


class HandlerLogged(Struct, frozen=True, tag="handler_logged"):
    """Job process: the handler of this run logged this line."""

    run: int
    line: LogLine


class HandlerFinished(Struct, frozen=True, tag="handler_finished"):
    """Job process: the handler of this run finished with this outcome."""

    run: int
    outcome: Outcome


class ForkServerReady(Struct, frozen=True, tag="ready"):
    """Fork server: the application is loaded and can be forked."""


class CannotFork(Struct, frozen=True, tag="cannot_fork"):
    """Fork server: the application is loaded but forking it is unsafe, for this reason."""

    reason: str


FromChild = Hello | StartFailed | SlotLost | Load
ToChild = Start | Lost | Drain
ToJob = RunJob | StopHandler
FromJob = HandlerStarted | HandlerLogged | HandlerFinished | StartFailed
FromForkServer = ForkServerReady | CannotFork | StartFailed

_ENCODE = msgspec.json.Encoder().encode
_FROM_CHILD: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)
_TO_CHILD: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
_TO_JOB: msgspec.json.Decoder[ToJob] = msgspec.json.Decoder(ToJob)
_FROM_JOB: msgspec.json.Decoder[FromJob] = msgspec.json.Decoder(FromJob)
_FROM_FORKSERVER: msgspec.json.Decoder[FromForkServer] = msgspec.json.Decoder(FromForkServer)


def encode_line(message: FromChild | ToChild | ToJob | FromJob | FromForkServer) -> bytes:
    """Encode a message as a line."""
    return _ENCODE(message) + b"\n"


def read_from_child(text: bytes) -> FromChild:
    """Decode a message from a worker process."""
    return _FROM_CHILD.decode(text)


def read_to_child(text: bytes) -> ToChild:
    """Decode a message from the supervisor."""
    return _TO_CHILD.decode(text)


def read_to_job(text: bytes) -> ToJob:
    """Decode a message from a worker to a job process."""
    return _TO_JOB.decode(text)


def read_from_job(text: bytes) -> FromJob:
    """Decode a message from a job process."""
    return _FROM_JOB.decode(text)


def read_from_forkserver(text: bytes) -> FromForkServer:
    """Decode the message of a fork server after it tried to load the application."""
    return _FROM_FORKSERVER.decode(text)
