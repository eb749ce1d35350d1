"""S14 on the real stores: four workers that claim at once keep the bound, whatever the backlogs and the weights."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.engine.claim import Claims
from holdfast.model.access import Quotas
from holdfast.policy.fairness import QUANTUM
from tests.support.builders import enter, put, some_jobs

if TYPE_CHECKING:
    from holdfast.store.port import Store

WORKERS, SLOTS = 4, 10


class Tenant(NamedTuple):
    """Who has how many jobs waiting, of what cost, and what its turns weigh."""

    jobs: int
    weight: int = 1
    cost: int = 1


@pytest.mark.parametrize(
    "tenants",
    [
        {"huge": Tenant(1_000), "small": Tenant(10)},
        {"one": Tenant(300), "three": Tenant(500, weight=3)},
        {"dear": Tenant(200, cost=5), "cheap": Tenant(600, weight=2)},
    ],
    ids=["backlogs 100 to 1", "weights 1 to 3", "costs 5 to 1"],
)
async def test_whoever_has_work_receives_by_weight_within_the_bound(store: Store, tenants: dict[str, Tenant]) -> None:
    """S14: cost started by weight differs by no more than Q + 2 C + W C while all have jobs waiting."""
    for name, tenant in tenants.items():
        await store.run(lambda tx, name=name, tenant=tenant: tx.add_tenant(name, Quotas(weight=tenant.weight)))  # type: ignore[misc]
        await put(store, *some_jobs(tenant.jobs, tenant=name, cost=tenant.cost))
    dearest = max(tenant.cost for tenant in tenants.values())
    bound = QUANTUM + 2 * dearest + WORKERS * SLOTS * dearest
    started: Counter[str] = Counter(dict.fromkeys(tenants, 0))
    gaps = []

    def all_have_work() -> bool:
        return all(started[name] < tenant.jobs for name, tenant in tenants.items())

    async def work() -> None:
        claims = Claims(store, await enter(store), ["mail"], None)
        while all_have_work():
            jobs = await claims.claim(SLOTS)
            assert jobs, "somebody has work"
            if all_have_work():
                started.update(job.tenant for job in jobs)
                received = [started[name] * tenant.cost / tenant.weight for name, tenant in tenants.items()]
                gaps.append(max(received) - min(received))

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    assert max(gaps) <= bound
    assert any(started[name] == tenant.jobs for name, tenant in tenants.items())
    assert sum(started[name] for name in tenants) < sum(tenant.jobs for tenant in tenants.values())
