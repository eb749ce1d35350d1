"""What claims go by, as a worker knows it: what rests, what is limited, whose turns weigh how much."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.model.limit import LimitName, PauseKind, Terms
from holdfast.model.time import Instant
from holdfast.store.port.store import Store

LOOK_EVERY = 0.5
"""Seconds between looks: for so long a worker may go by what held before."""


class View(NamedTuple):
    """What holds at one moment."""

    queues: frozenset[str] = frozenset()
    """That rest, as do the types and tenants below."""
    types: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    limited: frozenset[LimitName] = frozenset()
    weights: dict[str, int] = {}  # noqa: RUF012 - a value, never changed

    @property
    def resting(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """All that rests."""
        return self.queues, self.types, self.tenants

    def rests(self, queue: str, tenant: str) -> bool:
        """Whether nothing of this queue and tenant is to be claimed."""
        return queue in self.queues or tenant in self.tenants


def view(terms: Terms, now: Instant) -> View:
    """What of the terms holds at a moment."""
    resting = [pause for pause in terms.pauses if pause.holds_at(now)]
    return View(
        frozenset(queue.name for queue in terms.queues if not queue.open_at(now)),
        frozenset(pause.name for pause in resting if pause.kind is PauseKind.TYPE),
        frozenset(pause.name for pause in resting if pause.kind is PauseKind.TENANT),
        terms.limited,
        terms.weights,
    )


class KnownTerms:
    """The terms as one worker knows them: never older than half a second when it claims."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._asked = float("-inf")
        self._terms = Terms(-1)
        self.view = View()

    async def look(self) -> bool:
        """Ask, if it was not just asked; whether something changed."""
        now = self._monotonic()
        if now - self._asked < LOOK_EVERY:
            return False
        self._asked = now  # others that claim meanwhile go by what is known
        try:
            version, at = await self._store.single(lambda tx: tx.terms_version())
            if version != self._terms.version:
                self._terms = await self._store.read(lambda tx: tx.terms())
        except BaseException:
            self._asked = float("-inf")
            raise
        before, self.view = self.view, view(self._terms, at)
        return before != self.view

    def open(self, queues: Sequence[str]) -> list[str]:
        """Those that do not rest."""
        return [queue for queue in queues if queue not in self.view.queues]
