"""Single-use tickets in the link that `holdfast up` prints.

A ticket instead of the admin key keeps the key out of terminals, logs and browser histories.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from holdfast.errors import Unauthorized

TICKET_LIFETIME_S = 3_600.0
"""Time in which a ticket can be redeemed, once."""


class Tickets:
    """Tickets of one node, kept in memory as digests; they are lost when the node stops."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[bytes, float] = {}

    def issue(self) -> str:
        """Return a new ticket."""
        ticket = secrets.token_urlsafe(32)
        self._until[_digest(ticket)] = self._monotonic() + TICKET_LIFETIME_S
        return ticket

    def redeem(self, ticket: str) -> None:
        """Use up a ticket. Raises `Unauthorized`, with the same message for every cause."""
        digest = _digest(ticket)
        match = next((known for known in self._until if hmac.compare_digest(known, digest)), None)
        if match is None or self._until.pop(match) < self._monotonic():
            raise Unauthorized("this link was already used or has expired: restart for a new one, or send an API key")


def _digest(ticket: str) -> bytes:
    return sha256(ticket.encode("utf-8", "surrogatepass")).digest()
