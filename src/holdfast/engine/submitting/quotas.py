"""Check tenant quotas and record their usage, in the transaction that inserts the jobs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.errors import Contention, HoldfastError
from holdfast.model.job import InsertResult, NewJob
from holdfast.policy import quotas
from holdfast.policy.quotas import Demand, TenantQuota, UsageWindow
from holdfast.store.port.store import Tx


class TenantUsage(NamedTuple):
    """Quota usage of a tenant whose row is locked until the commit."""

    tenant: str
    quota: TenantQuota
    usage: UsageWindow
    changed: bool
    """True if the usage must be saved even if no job is inserted."""


async def check_quotas(
    tx: Tx, jobs: Sequence[NewJob], defaults: TenantQuota, *, atomic: bool
) -> tuple[dict[int, HoldfastError], list[TenantUsage]]:
    """Check each job, or with `atomic` all jobs together, against the quotas of their tenants.

    Returns the rejections by index (with `atomic`: of all jobs or none) and the locked usage of each limited tenant.
    """
    rejections: dict[int, HoldfastError] = {}
    usages: list[TenantUsage] = []
    for tenant, indexes in sorted(_by_tenant(jobs).items()):  # the same order in every transaction: no deadlocks
        units = [indexes] if atomic else [[index] for index in indexes]
        demands = [quotas.demand_of(jobs[index] for index in unit) for unit in units]
        usage, results = await _check_tenant(tx, tenant, demands, defaults)
        rejections |= {
            index: error for unit, error in zip(units, results, strict=True) if error is not None for index in unit
        }
        if usage is not None:
            usages.append(usage)
    if atomic and rejections:
        rejections = dict.fromkeys(range(len(jobs)), next(iter(rejections.values())))
    return rejections, usages


async def record_usage(
    tx: Tx, usages: Sequence[TenantUsage], jobs: Sequence[NewJob], rows: Sequence[InsertResult]
) -> None:
    """Record the inserted jobs in the usage of their tenants, at the time of their insertion."""
    inserted = _by_tenant(jobs)
    for locked in usages:
        usage = locked.usage
        if indexes := inserted.get(locked.tenant):
            cost = quotas.demand_of(jobs[index] for index in indexes).cost
            new = Counter(jobs[index].spec.queue for index in indexes if rows[index].repeats is None)
            usage = quotas.record(usage, locked.quota, cost, new, rows[indexes[0]].created_at)
        if indexes or locked.changed:
            await tx.save_usage(locked.tenant, quotas.encode(usage))


async def _check_tenant(
    tx: Tx, tenant: str, demands: Sequence[Demand], defaults: TenantQuota
) -> tuple[TenantUsage | None, list[HoldfastError | None]]:
    """Lock the tenant's usage, if it has quotas, and decide on each demand."""
    row = await tx.lock_usage(tenant)
    quota = quotas.quota_of(row.quotas, defaults)
    if not quota.is_limited:
        return None, [None] * len(demands)
    if row.state is None:
        await tx.begin_usage(tenant)
        row = await tx.lock_usage(tenant)
        if row.state is None:
            raise Contention(f"the quota usage of tenant {tenant!r} keeps disappearing; try again")
    stored = quotas.decode(row.state)
    usage = quotas.after_clock_step(stored, row.now)
    to_count = quotas.to_count(usage, quota, demands, row.now)
    if to_count.total or to_count.queues:
        total = await tx.tenant_backlog(tenant, (quota.backlog or 0) + 1) if to_count.total else None
        queues = (
            await tx.queue_backlogs(tenant, to_count.queues, (quota.queue_backlog or 0) + 1) if to_count.queues else {}
        )
        usage = quotas.with_counts(usage, quota, demands, total=total, queues=queues, now=row.now)
    results = quotas.admit(usage, quota, demands, row.now)
    return TenantUsage(tenant, quota, usage, changed=usage is not stored), results


def _by_tenant(jobs: Sequence[NewJob]) -> dict[str, list[int]]:
    """Return the indexes of each tenant's jobs."""
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        indexes[job.spec.tenant].append(index)
    return indexes
