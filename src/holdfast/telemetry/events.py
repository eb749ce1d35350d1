"""Events of the engine and its nodes, as values."""

from msgspec import Struct


class LoopFailed(Struct, frozen=True):
    """A round of a maintenance loop failed; the loop continues."""

    loop: str
    error: str
    failures: int


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


Event = LoopFailed | JobsReaped | RedisChanged | BreakerChanged
"""Any event."""
