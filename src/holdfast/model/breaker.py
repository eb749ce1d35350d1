"""The breaker of a destination: whether deliveries to it are let through."""

import enum
from typing import NamedTuple

from holdfast.model.time import Duration, Instant


class BreakerState(enum.StrEnum):
    """Closed lets all through, open none, half-open one: a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"

    @property
    def code(self) -> int:
        """How it is stored."""
        return _CODES.index(self)

    @classmethod
    def of_code(cls, code: int) -> "BreakerState":
        """The state that is stored so."""
        return _CODES[code]


_CODES = (BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN)


class Breaker(NamedTuple):
    """What is known of a destination that gave trouble. Others are closed, and nothing is kept of them."""

    tenant: str
    destination: str
    """Scheme, host and port: `https://example.com:443`."""
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    """In a row."""
    openings: int = 0
    """How often in a row it opened: a probe that fails makes it one more."""
    until: Instant | None = None
    """Open: when a probe is due. Half-open: when the probe is given up, should nobody hear of it."""
    error: str = ""
    """What went wrong last."""
    changed_at: Instant = Instant(0)


class Permit(NamedTuple):
    """Whether a delivery may go out."""

    probe: bool = False
    """It goes out alone, to see whether the destination is back."""
    wait: Duration | None = None
    """It may not: come back after this time."""


class DeliveryPermit(NamedTuple):
    """Whether a delivery may go out, and with which signature."""

    permit: Permit
    signature: str = ""
    """Empty when its tenant has no secret, or it may not go out."""


class SigningKeys(NamedTuple):
    """What a tenant's webhooks are signed with: during a rotation with the key before it, too."""

    current: bytes
    previous: bytes | None
    """None when there is none, or its time is over."""
    created_at: Instant
    previous_until: Instant | None
