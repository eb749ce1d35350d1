"""Claims of a worker on a scripted store: lanes keep their share whatever the store does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from holdfast.engine.claiming.claims import Claims
from holdfast.errors import Unavailable
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.model.limit import DispatchSettings
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx
from tests.unit.policy.strategies import a_job

A, B = Lane("q", "a", 0), Lane("q", "b", 0)


class ScriptedStore:
    """Store that fills the whole share of each lane, unless the test makes it fail."""

    has_push = False

    def __init__(self, *lanes: Lane) -> None:
        self.ready = set(lanes)
        self.visited: list[str] = []
        self.scans = 0
        self.failure: BaseException | None = None
        self.gate: asyncio.Event | None = None
        self.slow_scan: asyncio.Event | None = None
        self._seq = 0

    async def single(self, work: Callable[[Tx], Awaitable[Any]]) -> Any:
        return await work(cast("Tx", self))

    read = single

    async def dispatch_settings_version(self) -> tuple[int, Instant]:
        return 0, Instant(0)

    async def dispatch_settings(self) -> DispatchSettings:
        return DispatchSettings(0)

    async def lanes(self, queues: Sequence[str], cap: int) -> list[LaneReady]:
        self.scans += 1
        if self.slow_scan is not None:
            await self.slow_scan.wait()
        return [LaneReady(lane, self._seq + 1) for lane in sorted(self.ready)]

    async def claim(self, worker: WorkerId, shares: Sequence[Share], limit: int, types: Any, **more: Any) -> list[Job]:
        self.visited += [share.lane.tenant for share in shares]
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        jobs: list[Job] = []
        for share in shares:
            for _ in range(min(share.max_jobs, limit - len(jobs)) if share.lane in self.ready else 0):
                self._seq += 1
                queue, tenant, priority = share.lane
                jobs.append(a_job(seq=self._seq, queue=queue, tenant=tenant, priority=priority))
        return jobs


def claims_on(store: ScriptedStore) -> Claims:
    return Claims(cast("Store", store), WorkerId(1), ["q"], None)


async def test_claims_alternate_between_lanes() -> None:
    claims = claims_on(ScriptedStore(A, B))

    assert [(await claims.claim(5))[0].tenant for _ in range(4)] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("failure", [Unavailable("database unavailable"), asyncio.CancelledError()], ids=repr)
async def test_a_lane_whose_claim_failed_is_served_when_the_database_is_available_again(failure: BaseException) -> None:
    store = ScriptedStore(A, B)
    claims = claims_on(store)
    store.failure = failure
    with pytest.raises(type(failure)):
        await claims.claim(5)

    assert {job.tenant for _ in range(4) for job in await claims.claim(5)} == {"a", "b"}


async def test_a_cancelled_claim_costs_no_lane_its_share() -> None:
    store = ScriptedStore(A, B)
    claims = claims_on(store)
    store.gate = asyncio.Event()
    claiming = asyncio.create_task(claims.claim(5))
    while not store.visited:
        await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.gather(claiming, return_exceptions=True)
    store.gate.set()

    assert {job.tenant for _ in range(4) for job in await claims.claim(5)} == {"a", "b"}


async def test_concurrent_claims_share_one_scan() -> None:
    store = ScriptedStore(A, B)
    claims = claims_on(store)
    await asyncio.gather(*(claims.claim(5) for _ in range(10)))

    assert store.scans == 1


async def test_a_slow_scan_does_not_delay_claims_from_known_lanes() -> None:
    store = ScriptedStore(A)
    claims = claims_on(store)
    await claims.claim(5)
    claims.on_ready([])
    store.slow_scan = asyncio.Event()
    scanning = asyncio.create_task(claims.claim(5))
    while store.scans < 2:
        await asyncio.sleep(0)

    assert len(await claims.claim(5)) == 5
    assert not scanning.done()
    store.slow_scan.set()
    assert len(await scanning) == 5


async def test_a_claim_continues_with_other_lanes_when_the_first_are_empty() -> None:
    store = ScriptedStore(A, B)
    claims = claims_on(store)
    await claims.claim(20)
    store.ready = {B}

    assert [job.tenant for job in await claims.claim(5)] == ["b"] * 5


async def test_a_claim_visits_each_empty_lane_once() -> None:
    store = ScriptedStore(A, B)
    claims = claims_on(store)
    await claims.claim(20)
    store.ready, store.visited = set(), []

    assert await claims.claim(20) == []
    assert sorted(store.visited) == ["a", "b"]
    assert await claims.claim(20) == []
    assert sorted(store.visited) == ["a", "b"]


async def test_a_notification_adds_a_lane_without_a_scan() -> None:
    store = ScriptedStore()
    claims = claims_on(store)
    assert await claims.claim(5) == []
    store.ready = {A}
    claims.on_ready([LaneReady(A, 1)])

    assert [job.tenant for job in await claims.claim(5)] == ["a"] * 5
    assert store.scans == 1


async def test_a_notification_without_lanes_requests_a_scan() -> None:
    store = ScriptedStore()
    claims = claims_on(store)
    assert await claims.claim(5) == []
    store.ready = {A}
    claims.on_ready([])

    assert await claims.claim(5)
    assert store.scans == 2


async def test_a_wait_that_timed_out_requests_no_scan() -> None:
    store = ScriptedStore()
    claims = claims_on(store)
    await claims.claim(5)
    claims.on_ready(None)
    await claims.claim(5)

    assert store.scans == 1
