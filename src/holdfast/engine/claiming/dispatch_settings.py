"""Cached dispatch settings of one worker: pauses, limits and tenant weights."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.model.job import Job
from holdfast.model.limit import DispatchSettings, LimitName, PauseKind
from holdfast.model.time import Instant
from holdfast.store.port.store import Store

REFRESH_INTERVAL_S = 0.5
"""Longest time for which a worker uses outdated settings."""


class EffectiveSettings(NamedTuple):
    """Dispatch settings that are in effect at one moment."""

    queues: frozenset[str] = frozenset()
    """Paused queues."""
    types: frozenset[str] = frozenset()
    """Paused job types."""
    tenants: frozenset[str] = frozenset()
    """Paused tenants."""
    limited: frozenset[LimitName] = frozenset()
    """Queues and tenants that have limits."""
    weights: dict[str, int] = {}  # noqa: RUF012 - a value, never changed

    @property
    def paused(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Return the paused queues, types and tenants."""
        return self.queues, self.types, self.tenants

    def pauses(self, job: Job) -> bool:
        """Return True if the queue, the tenant or the type of this job is paused."""
        return job.type in self.types or self.is_paused(job.queue, job.tenant)

    def is_paused(self, queue: str, tenant: str) -> bool:
        """Return True if this queue or this tenant is paused."""
        return queue in self.queues or tenant in self.tenants


def effective_at(settings: DispatchSettings, now: Instant) -> EffectiveSettings:
    """Return the settings that are in effect at `now`."""
    pauses = [pause for pause in settings.pauses if pause.holds_at(now)]
    return EffectiveSettings(
        frozenset(queue.name for queue in settings.queues if not queue.open_at(now)),
        frozenset(pause.name for pause in pauses if pause.kind is PauseKind.TYPE),
        frozenset(pause.name for pause in pauses if pause.kind is PauseKind.TENANT),
        settings.limited,
        settings.weights,
    )


class DispatchSettingsCache:
    """Dispatch settings as one worker knows them, refreshed every half second while it claims."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._read_at = float("-inf")
        self._refreshing = asyncio.Lock()
        self._settings = DispatchSettings(-1)
        self.view = EffectiveSettings()
        """Settings in effect at the last refresh."""

    async def refresh(self) -> bool:
        """Read the settings again unless they are recent; return True if they changed."""
        if self._is_recent():
            return False
        async with self._refreshing:  # a worker that was busy may have old settings, so wait for a concurrent refresh
            if self._is_recent():
                return False
            read_at = self._monotonic()
            version, at = await self._store.single(lambda tx: tx.dispatch_settings_version())
            if version != self._settings.version:
                self._settings = await self._store.read(lambda tx: tx.dispatch_settings())
            self._read_at = read_at
            before, self.view = self.view, effective_at(self._settings, at)
            return before != self.view

    def _is_recent(self) -> bool:
        return self._monotonic() - self._read_at < REFRESH_INTERVAL_S

    def open(self, queues: Sequence[str]) -> list[str]:
        """Return the queues that are not paused."""
        return [queue for queue in queues if queue not in self.view.queues]
