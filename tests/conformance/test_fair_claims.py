"""S14 on the real stores: whoever claims keeps the bound, whatever the backlogs, the weights and the priorities."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.engine.claim import Claims
from holdfast.model.access import Quotas
from holdfast.policy.accounts import AGEING
from holdfast.policy.fairness import QUANTUM
from tests.support.builders import a_job, enter, put, some_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """S14: cost started by weight differs by no more than Q + 2 C + W C while all have jobs waiting.

    A job waits until a claim begins that takes it. While one claim takes a tenant's last jobs, which it has locked and
    not yet told of, the others rightly find none of them and give all their slots to who has jobs left. So a claim is
    judged if, whatever was taken by all claims that had begun before its answer, everybody had jobs left for it.
    """
    for name, tenant in tenants.items():
        await store.run(lambda tx, name=name, tenant=tenant: tx.add_tenant(name, Quotas(weight=tenant.weight)))  # type: ignore[misc]
        await put(store, *some_jobs(tenant.jobs, tenant=name, cost=tenant.cost))
    dearest = max(tenant.cost for tenant in tenants.values())
    bound = QUANTUM + 2 * dearest + WORKERS * SLOTS * dearest
    claimed: list[Counter[str]] = []  # by each claim, in the order in which they began
    answers: list[tuple[int, int]] = []  # which claim, and how many had begun by then

    def all_have_work(taken: Counter[str]) -> bool:
        return all(taken[name] < tenant.jobs for name, tenant in tenants.items())

    async def work() -> None:
        claims = Claims(store, await enter(store), ["mail"], None)
        while all_have_work(_sum(claimed)):
            nth = len(claimed)
            claimed.append(Counter())
            jobs = await claims.claim(SLOTS)
            assert jobs, "somebody has work"
            claimed[nth].update(job.tenant for job in jobs)
            answers.append((nth, len(claimed)))

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    started: Counter[str] = Counter()
    for nth, begun in answers:
        if not all_have_work(_sum(claimed[:begun]) - claimed[nth]):
            break
        started += claimed[nth]
        received = [started[name] * tenant.cost / tenant.weight for name, tenant in tenants.items()]
        assert max(received) - min(received) <= bound
    assert any(started[name] > tenant.jobs - WORKERS * SLOTS for name, tenant in tenants.items()), "judged to the end"
    assert any(_sum(claimed)[name] < tenant.jobs for name, tenant in tenants.items())


async def test_each_of_many_single_jobs_starts_within_one_round(store: Store) -> None:
    """S14: beside a huge backlog, which gets no more than its own turns meanwhile, whatever came first."""
    singles = 120
    await put(store, *some_jobs(500, tenant="huge"), *[a_job(tenant=f"single-{n}") for n in range(singles)])
    started: Counter[str] = Counter()

    async def work() -> None:
        claims = Claims(store, await enter(store), ["mail"], None)
        while len(started - Counter(huge=started["huge"])) < singles:
            started.update(job.tenant for job in await claims.claim(SLOTS))

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    assert started["huge"] <= WORKERS * (QUANTUM + 2 * SLOTS)


async def test_less_urgent_jobs_of_a_tenant_are_not_put_off_for_ever(store: Store) -> None:
    """Among urgent ones that never end, every so many visits of its turn go to the others."""
    await put(store, humble := a_job(priority=-5))
    claims = Claims(store, await enter(store), ["mail"], None)
    started = []
    for _ in range(2 * AGEING):
        await put(store, *some_jobs(SLOTS, priority=9))
        started += await claims.claim(SLOTS)
    assert [job.priority for job in started[: SLOTS * (AGEING - 1)]] == [9] * SLOTS * (AGEING - 1)
    assert [job.id for job in started if job.priority < 0] == [humble.id]


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counters, Counter())
