"""Installation-wide metrics for `/metrics`, read from the database at most once a second."""

import asyncio
import time
from collections.abc import Callable

from holdfast.engine.changes import lifetime_counters
from holdfast.engine.changes.lifetime_counters import LifetimeCounters
from holdfast.engine.engine import Engine
from holdfast.model.breaker import Breaker, BreakerState
from holdfast.model.time import Instant, in_seconds
from holdfast.model.worker import WorkerRow
from holdfast.store.port.store import Tx
from holdfast.telemetry.metrics import OTHER_LABEL, InstallationStats, JobCounters, JobGauge

MAX_BREAKERS = 10_000
"""Maximum number of circuit breakers counted."""

MAX_WORKERS = 100_000
"""Maximum number of workers counted."""

CACHE_TTL_S = 1.0
"""Seconds for which a result is reused."""


class InstallationMetrics:
    """Cached metrics of the installation."""

    def __init__(self, engine: Engine, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._last: InstallationStats | None = None
        self._taken = 0.0

    async def installation(self) -> InstallationStats:
        """Return metrics at most a second old; job counts may be older in very large installations."""
        async with self._lock:
            if self._last is None or self._monotonic() - self._taken >= CACHE_TTL_S:
                self._last = await self._ask()
                self._taken = self._monotonic()
            return self._last

    async def _ask(self) -> InstallationStats:
        census = await self._engine.analytics.census()
        now, ever, workers, breakers = await self._engine.store.read(_read)
        together: dict[tuple[str, str, str], tuple[int, Instant | None]] = {}
        for each in census.status_counts:
            place = each.queue, each.type, each.status.value
            jobs, since = together.get(place, (0, None))
            earliest = min((at for at in (since, each.since) if at is not None), default=None)
            together[place] = jobs + each.jobs, earliest
        return InstallationStats(
            [
                JobGauge(*place, jobs, None if since is None else max(0.0, in_seconds(now - since)))  # type: ignore[arg-type]
                for place, (jobs, since) in together.items()
            ],
            [
                JobCounters(
                    place.queue or OTHER_LABEL,
                    place.type or OTHER_LABEL,
                    figures.submitted,
                    figures.started,
                    figures.failed,
                    {"succeeded": figures.succeeded, "dead": figures.dead, "cancelled": figures.cancelled},
                    figures.wait,
                    figures.run,
                    figures.reaped,
                )
                for place, figures in ever.jobs.items()
            ],
            sum(worker.expires_at > now for worker in workers),
            sum(worker.expires_at <= now for worker in workers),
            {state.value: sum(each.state is state for each in breakers) for state in BreakerState},
            ever.lost,
        )


async def _read(tx: Tx) -> tuple[Instant, LifetimeCounters, list[WorkerRow], list[Breaker]]:
    return (
        await tx.now(),
        await lifetime_counters.read(tx),
        await tx.worker_page(None, (Instant(0), 0), MAX_WORKERS),
        await tx.failing_breakers(MAX_BREAKERS),
    )
