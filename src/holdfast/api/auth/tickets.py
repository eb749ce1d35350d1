"""Tickets: what `holdfast up` puts into its link, so that no key stands in a terminal, a log or a browser's history."""

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from holdfast.errors import Unauthorized

TICKET_LIFETIME_S = 3_600.0
"""Seconds in which a ticket can be used, once."""


class Tickets:
    """The tickets of one node, in its memory: they end with it. Only the digest of each is kept."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[bytes, float] = {}

    def issue(self) -> str:
        """A new ticket."""
        ticket = secrets.token_urlsafe(32)
        self._until[_digest(ticket)] = self._monotonic() + TICKET_LIFETIME_S
        return ticket

    def redeem(self, ticket: str) -> None:
        """Use it up; `Unauthorized`, in the same words whatever is wrong, if it is not good."""
        given = _digest(ticket)
        found = next((each for each in self._until if hmac.compare_digest(each, given)), None)
        if found is None or self._until.pop(found) < self._monotonic():
            raise Unauthorized("this link was used already, or is too old: start again for another, or send a key")


def _digest(ticket: str) -> bytes:
    return sha256(ticket.encode("utf-8", "surrogatepass")).digest()
