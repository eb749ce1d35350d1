"""Events of the engine and its nodes, as values."""

from msgspec import Struct


class AttemptFinished(Struct, frozen=True):
    """An attempt of a job ended, and its outcome was recorded."""

    job_id: str
    job_type: str
    queue: str
    tenant: str
    attempt: int
    max_attempts: int
    outcome: str
    """succeeded, failed, timed_out, crashed, snoozed, released, unavailable or cancelled."""
    status: str
    """State of the job after the attempt."""
    seconds: float
    retry_in: float
    """Seconds until the job may run again, if it does."""
    error: str = ""
    fingerprint: str = ""
    traceback: str = ""


class DatabaseChanged(Struct, frozen=True):
    """The database became unavailable for this process, or available again."""

    up: bool
    reason: str = ""
    seconds: float = 0.0
    """Length of the outage that ended."""


class LoopFailed(Struct, frozen=True):
    """A round of a maintenance loop failed; the loop continues."""

    loop: str
    error: str
    failures: int
    unavailable: bool = False
    """The database was unavailable, which `DatabaseChanged` reports once for all loops."""


class JobsReaped(Struct, frozen=True):
    """Jobs were reclaimed from workers whose lease expired."""

    jobs: int


class RedisChanged(Struct, frozen=True):
    """Redis became available, or unavailable."""

    up: bool
    reason: str


class BreakerChanged(Struct, frozen=True):
    """The circuit breaker of a webhook destination opened or closed."""

    tenant: str
    destination: str
    open: bool
    error: str


Event = AttemptFinished | DatabaseChanged | LoopFailed | JobsReaped | RedisChanged | BreakerChanged
"""Any event."""
