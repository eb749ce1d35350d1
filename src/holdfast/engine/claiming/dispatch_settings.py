"""Cached dispatch settings of one worker: pauses, limits and tenant weights."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.model.limit import DispatchSettings, LimitName, PauseKind
from holdfast.model.time import Instant
from holdfast.store.port.store import Store

REFRESH_INTERVAL_S = 0.5
"""Longest time for which a worker uses outdated settings."""


class EffectiveSettings(NamedTuple):
    """Dispatch settings that are in effect at one moment."""

    queues: frozenset[str] = frozenset()
    """Paused queues; the types and tenants below are paused too."""
    types: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    limited: frozenset[LimitName] = frozenset()
    weights: dict[str, int] = {}  # noqa: RUF012 - a value, never changed

    @property
    def paused(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Return the paused queues, types and tenants."""
        return self.queues, self.types, self.tenants

    def is_paused(self, queue: str, tenant: str) -> bool:
        """Return True if this queue or this tenant is paused."""
        return queue in self.queues or tenant in self.tenants


def view(terms: DispatchSettings, now: Instant) -> EffectiveSettings:
    """Return the settings that are in effect at `now`."""
    resting = [pause for pause in terms.pauses if pause.holds_at(now)]
    return EffectiveSettings(
        frozenset(queue.name for queue in terms.queues if not queue.open_at(now)),
        frozenset(pause.name for pause in resting if pause.kind is PauseKind.TYPE),
        frozenset(pause.name for pause in resting if pause.kind is PauseKind.TENANT),
        terms.limited,
        terms.weights,
    )


class DispatchSettingsCache:
    """Dispatch settings as one worker knows them, refreshed every half second while it claims."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._asked = float("-inf")
        self._terms = DispatchSettings(-1)
        self.view = EffectiveSettings()

    async def refresh(self) -> bool:
        """Read the settings again unless they are recent; return True if they changed."""
        now = self._monotonic()
        if now - self._asked < REFRESH_INTERVAL_S:
            return False
        self._asked = now  # concurrent claims use the cached settings
        try:
            version, at = await self._store.single(lambda tx: tx.dispatch_settings_version())
            if version != self._terms.version:
                self._terms = await self._store.read(lambda tx: tx.dispatch_settings())
        except BaseException:
            self._asked = float("-inf")
            raise
        before, self.view = self.view, view(self._terms, at)
        return before != self.view

    def open(self, queues: Sequence[str]) -> list[str]:
        """Return the queues that are not paused."""
        return [queue for queue in queues if queue not in self.view.queues]
