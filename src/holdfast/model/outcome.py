"""Outcomes of an attempt."""

from typing import NamedTuple

from msgspec import Struct

from holdfast.model.job import Job
from holdfast.model.time import Duration


class Failure(Struct, frozen=True, omit_defaults=True):
    """Stored error, without live objects or locals."""

    kind: str
    message: str
    traceback: str = ""
    fingerprint: str = ""


class Succeeded(Struct, frozen=True, tag=True):
    """The handler returned; `result` is JSON."""

    result: bytes | None = None


class Failed(Struct, frozen=True, tag=True):
    """The handler raised. `retry_in` overrides the retry rule; not `retryable`: dead at once."""

    failure: Failure
    retryable: bool = True
    retry_in: Duration | None = None


class TimedOut(Struct, frozen=True, tag=True):
    """The attempt took longer than the job's timeout."""

    after: Duration


class Crashed(Struct, frozen=True, tag=True):
    """The process that ran the attempt exited or was killed by a signal."""

    how: str


class Snoozed(Struct, frozen=True, tag=True):
    """The handler asked to run again later; no attempt is consumed."""

    delay: Duration
    held: bool = False
    """An external condition holds the job back; such snoozes are unlimited."""


class Interrupted(Struct, frozen=True, tag=True):
    """The worker stopped and released the job; no attempt is consumed."""

    started: bool = True
    """False if the handler had not started; such releases are unlimited."""


class BackendUnavailable(Struct, frozen=True, tag=True):
    """A call to holdfast failed inside the handler because its database or node is unavailable.

    The job runs again after a pause and consumes no attempt, unless this goes on for too long.
    """

    failure: Failure


REPORT_LOST = BackendUnavailable(
    Failure(
        "ReportLost",
        "its worker does not run it: the database lost the report of its attempt, as after a failover to a standby "
        "that lagged behind",
    )
)
"""Outcome of an attempt that only the database believes to run; it consumes no attempt."""


class CancelledByHandler(Struct, frozen=True, tag=True):
    """The handler cancelled the job."""

    reason: str


Outcome = Succeeded | Failed | TimedOut | Crashed | Snoozed | Interrupted | BackendUnavailable | CancelledByHandler


class LogLine(Struct, frozen=True, gc=False):
    """Log line written by a handler. The time is from the clock of the worker node."""

    at: str
    level: str
    message: str


class Logs(Struct, frozen=True, omit_defaults=True):
    """Newest log lines of an attempt, oldest first, and the number of dropped ones."""

    lines: tuple[LogLine, ...]
    dropped: int = 0


class Report(NamedTuple):
    """Report on an attempt: the claimed job, its outcome and its logs."""

    job: Job
    outcome: Outcome
    logs: Logs | None = None
