"""Default bounds of tenants, checked against counts that are read every few seconds."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from holdfast import tasks
from holdfast.engine.changes.analytics import Census
from holdfast.engine.changes.query_cache import COST_FACTOR
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, OverLimit
from holdfast.model.state import Status
from holdfast.policy.tenant_bounds import JobNames, TenantBounds, Usage, admit

REFRESH_INTERVAL_S = 5.0
"""Time after which a submission starts a new count, in the background."""

NAMES_RETENTION_S = 86_400.0
"""Time for which names of queues and types count that have no unfinished or dead jobs."""


class TenantGuard:
    """Rejects submissions and workers of a tenant above the default bounds.

    Never waits for a count: until the first one has been read, only what this node accepted counts.
    """

    def __init__(
        self, engine: Engine, bounds: TenantBounds, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._bounds = bounds
        self._monotonic = monotonic
        self._usage: defaultdict[str, Usage] = defaultdict(Usage)
        self._refresh_at = monotonic()
        self._names_since = monotonic()
        self._refreshing = False

    def admit_jobs(self, tenant: str, jobs: Iterable[JobNames]) -> None:
        """Count the jobs of a submission; raises `BacklogFull` or `OverLimit`."""
        if not self._refreshing and self._monotonic() >= self._refresh_at:
            self._refreshing = True
            tasks.start(self.refresh(), name="holdfast tenant bounds")
        has_quotas = self._engine.submitter.limited.has(tenant) is not False
        if error := admit(self._usage[tenant], self._bounds, jobs, has_quotas=has_quotas):
            raise error

    async def admit_worker(self, tenant: str | None) -> None:
        """Raise `OverLimit` if a tenant has too many workers; None is not bounded."""
        if tenant is None:
            return
        workers = await self._engine.workers.count_of(tenant)
        if workers >= self._bounds.workers:
            raise OverLimit(
                f"the tenant has {workers:,} registered workers, and may have {self._bounds.workers:,}: "
                "stop some, or ask the operator to raise HOLDFAST_TENANT_WORKERS"
            )

    async def refresh(self) -> None:
        """Count the jobs of all tenants.

        The cached census is not used: a count before a submission would then hide its jobs from the statistics.
        """
        began = self._monotonic()
        try:
            self._apply(await self._engine.analytics.count())
        except HoldfastError:  # the database is unavailable; the submission itself reports it
            pass
        finally:
            now = self._monotonic()
            self._refresh_at = now + max(REFRESH_INTERVAL_S, COST_FACTOR * (now - began))
            self._refreshing = False

    def _apply(self, census: Census) -> None:
        usage: defaultdict[str, Usage] = defaultdict(Usage)
        if self._monotonic() - self._names_since > NAMES_RETENTION_S:
            self._names_since = self._monotonic()
        else:
            for tenant, before in self._usage.items():
                usage[tenant].queues, usage[tenant].types = before.queues, before.types
        for count in census.status_counts:
            counted = usage[count.tenant]
            counted.queues.add(count.queue)
            counted.types.add(count.type)
            if count.status is not Status.DEAD:
                counted.backlog += count.jobs
        self._usage = usage
