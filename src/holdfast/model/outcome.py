"""What came of an attempt."""

from typing import NamedTuple

from msgspec import Struct

from holdfast.model.job import Job
from holdfast.model.time import Duration


class Failure(Struct, frozen=True, omit_defaults=True):
    """An error as it is stored: no live objects, no locals."""

    kind: str
    message: str
    traceback: str = ""
    fingerprint: str = ""


class Succeeded(Struct, frozen=True, tag=True):
    """The handler returned; `result` is JSON."""

    result: bytes | None = None


class Failed(Struct, frozen=True, tag=True):
    """The handler raised. `retry_in` overrides the rule; not `retryable` means dead at once."""

    failure: Failure
    retryable: bool = True
    retry_in: Duration | None = None


class TimedOut(Struct, frozen=True, tag=True):
    """The attempt took longer than the job's timeout."""

    after: Duration


class Crashed(Struct, frozen=True, tag=True):
    """The process that ran it ended: by an exit code, or by a signal."""

    how: str


class Snoozed(Struct, frozen=True, tag=True):
    """The handler asked to be run again later; no attempt is spent."""

    delay: Duration
    held: bool = False
    """Something outside holds it back, for as long as it takes: it is not counted how often."""


class Interrupted(Struct, frozen=True, tag=True):
    """Handed back before it ended, because the worker stops; no attempt is spent."""


class CancelledByHandler(Struct, frozen=True, tag=True):
    """The handler decided that the job is pointless."""

    reason: str


Outcome = Succeeded | Failed | TimedOut | Crashed | Snoozed | Interrupted | CancelledByHandler


class LogLine(Struct, frozen=True, gc=False):
    """What a handler wrote into the log of its job. The time is by the clock of the node it ran on."""

    at: str
    level: str
    message: str


class Logs(Struct, frozen=True, omit_defaults=True):
    """The newest lines that an attempt logged, oldest first, and how many came before them."""

    lines: tuple[LogLine, ...]
    dropped: int = 0


class Report(NamedTuple):
    """A job as it was claimed, what came of the attempt, and what the attempt logged, if anything."""

    job: Job
    outcome: Outcome
    logs: Logs | None = None
