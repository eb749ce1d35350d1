"""Circuit breaker of a delivery destination."""

import enum
from typing import NamedTuple

from holdfast.model.time import Duration, Instant


class BreakerState(enum.StrEnum):
    """State of a breaker: closed admits all deliveries, open none, half-open one probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"

    @property
    def code(self) -> int:
        """Stored code of the state."""
        return _CODES.index(self)

    @classmethod
    def of_code(cls, code: int) -> "BreakerState":
        """Return the state for a stored code."""
        return _CODES[code]


_CODES = (BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN)


class Breaker(NamedTuple):
    """Breaker of a destination that has failed. Destinations without a row are closed."""

    tenant: str
    destination: str
    """Scheme, host and port: `https://example.com:443`."""
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    """Consecutive failures."""
    openings: int = 0
    """Consecutive openings; each failed probe adds one."""
    until: Instant | None = None
    """Open: when a probe is due. Half-open: when a probe without a result times out."""
    error: str = ""
    """Last error."""
    changed_at: Instant = Instant(0)


class Permit(NamedTuple):
    """Decision on whether a delivery may be sent."""

    probe: bool = False
    """The delivery is the probe of a half-open breaker."""
    wait: Duration | None = None
    """Set if the delivery must wait this long."""


class DeliveryPermit(NamedTuple):
    """Permission to send a delivery, with its signature."""

    permit: Permit
    signature: str = ""
    """Empty if the tenant has no signing key or the delivery may not be sent."""


class SigningKeys(NamedTuple):
    """Signing keys of a tenant's webhooks; during a rotation the previous key signs too."""

    current: bytes
    previous: bytes | None
    """None if there is none or it has expired."""
    created_at: Instant
    previous_until: Instant | None
