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
"""Last part of a lease, as a share of it, during which the worker no longer relies on it."""


UNLIMITED_DRAIN_S = 365 * 86_400.0
"""Drain period of a worker that may finish its jobs however long they run."""


def stop_timeout(lease: float) -> float:
    """Return the seconds that handlers have to stop after a lost lease: at most half the margin."""
    return min(1.0, lease * LEASE_MARGIN / 2)


class Hello(Struct, frozen=True, tag="hello"):
    """Worker to supervisor: the application is loaded; it uses this database and these queues."""

    url: str
    queues: dict[str, int]
    types: list[str]
    described: list[JobType] = []


class StartFailed(Struct, frozen=True, tag="start_failed"):
    """From any process to its parent: the application cannot be run; a retry will not help."""

    message: str


class SlotLost(Struct, frozen=True, tag="slot_lost"):
    """Worker to supervisor: a handler that does not stop occupies a slot; replace this process."""

    reason: str


class Load(Struct, frozen=True, tag="load"):
    """Worker to supervisor: its running jobs, waiting jobs and finished attempts.

    `memory` is set only on systems where the supervisor cannot read the memory of another process.
    """

    running: int
    waiting: int
    memory: int | None = None
    finished: int = 0


class Start(Struct, frozen=True, tag="start"):
    """Supervisor to worker: start under this worker id, with a lease of this many seconds."""

    worker: int
    lease: float


class Lost(Struct, frozen=True, tag="lost"):
    """Supervisor to worker: the lease is lost; stop all handlers and exit."""


class Drain(Struct, frozen=True, tag="drain"):
    """Supervisor to worker: stop claiming, finish within these seconds, release the rest, exit."""

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
    """Job process to worker: the application is loaded and the handler of this run starts."""

    run: int


class HandlerLogged(Struct, frozen=True, tag="handler_logged"):
    """Job process to worker: the handler of this run logged this line."""

    run: int
    line: LogLine


class HandlerFinished(Struct, frozen=True, tag="handler_finished"):
    """Job process to worker: the handler of this run finished with this outcome."""

    run: int
    outcome: Outcome


class ForkServerReady(Struct, frozen=True, tag="ready"):
    """Fork server to launcher: the application is loaded and can be forked."""


class CannotFork(Struct, frozen=True, tag="cannot_fork"):
    """Fork server to launcher: the application is loaded, but unsafe to fork for this reason."""

    reason: str


FromWorker = Hello | StartFailed | SlotLost | Load
ToWorker = Start | Lost | Drain
ToJob = RunJob | StopHandler
FromJob = HandlerStarted | HandlerLogged | HandlerFinished | StartFailed
FromForkServer = ForkServerReady | CannotFork | StartFailed

_ENCODE = msgspec.json.Encoder().encode
_FROM_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_TO_WORKER: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_TO_JOB: msgspec.json.Decoder[ToJob] = msgspec.json.Decoder(ToJob)
_FROM_JOB: msgspec.json.Decoder[FromJob] = msgspec.json.Decoder(FromJob)
_FROM_FORKSERVER: msgspec.json.Decoder[FromForkServer] = msgspec.json.Decoder(FromForkServer)


def encode_line(message: FromWorker | ToWorker | ToJob | FromJob | FromForkServer) -> bytes:
    """Encode a message as a line."""
    return _ENCODE(message) + b"\n"


def read_from_worker(text: bytes) -> FromWorker:
    """Decode a message from a worker process."""
    return _FROM_WORKER.decode(text)


def read_to_worker(text: bytes) -> ToWorker:
    """Decode a message from the supervisor."""
    return _TO_WORKER.decode(text)


def read_to_job(text: bytes) -> ToJob:
    """Decode a message from a worker to a job process."""
    return _TO_JOB.decode(text)


def read_from_job(text: bytes) -> FromJob:
    """Decode a message from a job process."""
    return _FROM_JOB.decode(text)


def read_from_forkserver(text: bytes) -> FromForkServer:
    """Decode the message of a fork server after it tried to load the application."""
    return _FROM_FORKSERVER.decode(text)
