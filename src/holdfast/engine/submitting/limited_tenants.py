"""Cached set of the tenants that have quotas."""

import asyncio
import time
from collections.abc import Callable

from holdfast import tasks
from holdfast.store.port.store import Store

REFRESH_INTERVAL_S = 1.0
"""Age after which the set is refreshed in the background."""

MAX_AGE_S = 2.0
"""Age after which callers wait for the refresh."""

MAX_LIMITED_TENANTS = 10_000
"""If more tenants have quotas, every tenant is treated as limited."""


class LimitedTenants:
    """Cached set of tenants with quotas, at most two seconds old. Belongs to one event loop.

    A stale entry costs only time, because quotas are read in the transaction itself.
    """

    def __init__(self, store: Store, *, all_limited: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._store = store
        self._all_limited = all_limited
        """True if the installation has default quotas, so that every tenant is limited."""
        self._names: frozenset[str] | None = None
        """None: too many to cache."""
        self._read_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None

    def has(self, tenant: str) -> bool | None:
        """Return True if a tenant has quotas, None if the cache is too old."""
        if self._all_limited:
            return True
        if self.monotonic() - self._read_at >= REFRESH_INTERVAL_S:
            return None
        return self._names is None or tenant in self._names

    async def among(self, tenants: frozenset[str]) -> frozenset[str]:
        """Return the tenants that have quotas; raises `Unavailable` if they cannot be read."""
        if self._all_limited:
            return tenants
        age = self.monotonic() - self._read_at
        if age >= REFRESH_INTERVAL_S:
            refreshing = self._start_refresh()
            if age >= MAX_AGE_S:
                await asyncio.shield(refreshing)
        return tenants if self._names is None else self._names & tenants

    async def refresh(self) -> None:
        """Read the set of limited tenants."""
        # Taken before the read, because the result may be that old.
        read_at = self.monotonic()
        names = await self._store.single(lambda tx: tx.limited_tenants(MAX_LIMITED_TENANTS + 1))
        self._names = None if len(names) > MAX_LIMITED_TENANTS else frozenset(names)
        self._read_at = read_at

    async def aclose(self) -> None:
        """Wait for a refresh in flight."""
        if self._refreshing is not None:
            await asyncio.gather(self._refreshing, return_exceptions=True)

    def _start_refresh(self) -> asyncio.Task[None]:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = tasks.start(self.refresh(), name="holdfast limited tenants", awaited=True)
            # Retrieve the exception, because the task may have no awaiter; the next caller retries.
            self._refreshing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._refreshing
