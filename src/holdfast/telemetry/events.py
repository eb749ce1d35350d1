"""Every event, as a value."""

from msgspec import Struct


class LoopFailed(Struct, frozen=True):
    """One round of a housekeeping loop failed; it goes on."""

    loop: str
    error: str
    failures: int


class JobsReaped(Struct, frozen=True):
    """Jobs were taken back from workers whose lease ran out."""

    jobs: int


class RedisChanged(Struct, frozen=True):
    """Redis answers (again), or does not and is done without."""

    up: bool
    reason: str


class BreakerChanged(Struct, frozen=True):
    """A destination of webhooks is given a rest, or is back."""

    tenant: str
    destination: str
    open: bool
    error: str


Event = LoopFailed | JobsReaped | RedisChanged | BreakerChanged
"""Whatever can be told."""
