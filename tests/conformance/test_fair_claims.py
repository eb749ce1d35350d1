"""S14 on the real stores: claims stay within the fairness bound for any backlogs, weights and priorities."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.engine.claiming.claims import Claims
from holdfast.model.access import Quotas
from holdfast.policy.fairness.drr import QUANTUM
from holdfast.policy.fairness.state import AGING_INTERVAL
from tests.support.builders import a_job, enter, put, some_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.store.port.store import Store

WORKERS, SLOTS = 4, 10


class Tenant(NamedTuple):
    """Backlog of a tenant, cost of each job, and weight."""

    jobs: int
    weight: int = 1
    cost: int = 1


class History:
    """Jobs taken by each claim, and how many claims had started when it returned.

    A job waits until a claim that takes it starts. While one claim takes the last jobs of a tenant, which it has locked
    but not yet returned, concurrent claims correctly find none of them and use all their slots for other tenants. So
    results are checked only up to the first one for which the claims started before it may have left no jobs.
    """

    def __init__(self) -> None:
        self._claims: list[Counter[str]] = []
        """Jobs taken per tenant, in the order in which the claims started."""
        self._returned: list[tuple[int, int]] = []
        """Index of each claim that returned, and how many claims had started by then."""

    async def claim(self, claims: Claims) -> Counter[str]:
        """Claim and record it; return the jobs taken per tenant."""
        nth = len(self._claims)
        self._claims.append(took := Counter())
        took.update(job.tenant for job in await claims.claim(SLOTS))
        self._returned.append((nth, len(self._claims)))
        return took

    def taken(self) -> Counter[str]:
        """Return the jobs taken per tenant by all claims."""
        return sum(self._claims, Counter())

    def checkable(self, waiting: Callable[[Counter[str]], bool]) -> Iterator[Counter[str]]:
        """Yield the jobs started after each result, as long as jobs were certainly waiting."""
        started: Counter[str] = Counter()
        for nth, begun in self._returned:
            if not waiting(sum(self._claims[:begun], Counter()) - self._claims[nth]):
                return
            assert self._claims[nth], "no job was claimed although some were waiting"
            started = started + self._claims[nth]
            yield started


@pytest.mark.parametrize(
    "tenants",
    [
        {"huge": Tenant(1_000), "small": Tenant(10)},
        {"one": Tenant(300), "three": Tenant(500, weight=3)},
        {"dear": Tenant(200, cost=5), "cheap": Tenant(600, weight=2)},
    ],
    ids=["backlogs 100 to 1", "weights 1 to 3", "costs 5 to 1"],
)
async def test_tenants_with_work_receive_service_by_weight_within_the_bound(
    store: Store, tenants: dict[str, Tenant]
) -> None:
    """S14: the cost started per weight differs by at most Q + 2 C + W C while all have jobs (see `History`)."""
    for name, tenant in tenants.items():
        await store.run(lambda tx, name=name, tenant=tenant: tx.add_tenant(name, Quotas(weight=tenant.weight)))  # type: ignore[misc]
        await put(store, *some_jobs(tenant.jobs, tenant=name, cost=tenant.cost))
    dearest = max(tenant.cost for tenant in tenants.values())
    bound = QUANTUM + 2 * dearest + WORKERS * SLOTS * dearest
    history = History()

    def all_have_work(taken: Counter[str]) -> bool:
        return all(taken[name] < tenant.jobs for name, tenant in tenants.items())

    async def work() -> None:
        claims = Claims(store, await enter(store), ["mail"], None)
        while all_have_work(history.taken()) and await history.claim(claims):
            pass

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    started: Counter[str] = Counter()
    for started in history.checkable(all_have_work):
        received = [started[name] * tenant.cost / tenant.weight for name, tenant in tenants.items()]
        assert max(received) - min(received) <= bound
    assert any(started[name] > tenant.jobs - WORKERS * SLOTS for name, tenant in tenants.items()), (
        "the run was checked to its end"
    )
    assert any(started[name] < tenant.jobs for name, tenant in tenants.items())


async def test_each_of_many_single_jobs_starts_within_one_round(store: Store) -> None:
    """S14: a huge backlog gets only its own share meanwhile, even if it was submitted first."""
    singles = 120
    await put(store, *some_jobs(500, tenant="huge"), *[a_job(tenant=f"single-{n}") for n in range(singles)])
    history = History()

    def some_wait(taken: Counter[str]) -> bool:
        return taken.total() - taken["huge"] < singles

    async def work() -> None:
        claims = Claims(store, await enter(store), ["mail"], None)
        while some_wait(history.taken()) and await history.claim(claims):
            pass

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    started: Counter[str] = Counter()
    for started in history.checkable(some_wait):
        assert started["huge"] <= WORKERS * (QUANTUM + 2 * SLOTS)
    assert started.total() - started["huge"] > singles - WORKERS * SLOTS, "the run was checked to its end"


async def test_less_urgent_jobs_of_a_tenant_do_not_starve(store: Store) -> None:
    """Under an endless supply of urgent jobs, every `AGING_INTERVAL`th visit serves the less urgent ones."""
    await put(store, humble := a_job(priority=-5))
    claims = Claims(store, await enter(store), ["mail"], None)
    started = []
    for _ in range(2 * AGING_INTERVAL):
        await put(store, *some_jobs(SLOTS, priority=9))
        started += await claims.claim(SLOTS)
    assert [job.priority for job in started[: SLOTS * (AGING_INTERVAL - 1)]] == [9] * SLOTS * (AGING_INTERVAL - 1)
    assert [job.id for job in started if job.priority < 0] == [humble.id]
