"""Rollups: each entry of the change log counts once, and results are current."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.engine.changes import lifetime_counters, rollups
from holdfast.engine.changes.analytics import Census, read_fairness, read_window
from holdfast.engine.changes.rollups import CHANGE_LOG_RETENTION, update_rollups
from holdfast.model.access import Quotas
from holdfast.model.change_log import MAX_LISTED_CHANGES
from holdfast.model.lane import Lane
from holdfast.model.outcome import Interrupted
from holdfast.model.queue import Queue
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy.lifecycle import attempt_log
from holdfast.policy.rollups import (
    ALL_TENANTS,
    DAY,
    HOUR,
    HOURS_RETENTION,
    MINUTE,
    MINUTES_RETENTION,
    JobStats,
    floor,
    total,
)
from tests.support.builders import (
    KEY_RETENTION,
    a_job,
    a_transition,
    enter,
    error,
    hold,
    lane_of,
    move,
    put,
    read_all,
    reap_all,
    report,
    some_jobs,
    take,
)

if TYPE_CHECKING:
    from holdfast.engine.changes.analytics import FairnessWindow, Window
    from holdfast.store.port.store import Store, Tx
    from tests.support.clock import ManualClock
    from tests.support.interleave import Interleaving

MONTH = Duration(30 * DAY)


async def window(store: Store, tenant: str = ALL_TENANTS, span: Duration = HOUR) -> Window:
    return await store.read(lambda tx: read_window(tx, tenant, span))


async def figures(store: Store, tenant: str = ALL_TENANTS, span: Duration = HOUR) -> JobStats:
    return total((await window(store, tenant, span)).stats.values())


async def fold_all(store: Store) -> None:
    while (await update_rollups(store)).more:
        pass


async def unfolded(store: Store) -> int:
    rollup_cursor = await store.single(lambda tx: tx.rollup_cursor())
    return len(await store.single(lambda tx: tx.changes_after(rollup_cursor.seq, 10_000)))


async def some_work(store: Store) -> None:
    """Tenant a: 30 submitted and started, 20 succeeded, 4 failed, 1 dead, 5 cancelled; b: 3 submitted."""
    worker = await enter(store)
    jobs = await hold(store, worker, 30, tenant="a", queue="q", type="t")
    await report(store, jobs[:20])
    await report(store, jobs[20:24], error())
    await move(store, a_transition(jobs[24], Status.DEAD))
    await move(store, *[a_transition(job, Status.CANCELLED) for job in jobs[25:]])
    await put(store, *some_jobs(3, tenant="b", queue="q", type="t"))


async def assert_some_work(store: Store, times: int = 1, span: Duration = HOUR) -> None:
    for tenant, submitted in (("a", 30), (ALL_TENANTS, 33)):
        found = await figures(store, tenant, span)
        assert (found.submitted, found.started, found.succeeded, found.failed, found.dead, found.cancelled) == tuple(
            n * times for n in (submitted, 30, 20, 5, 1, 5)
        )
        assert sum(found.wait.values()) == 30 * times
    assert (await figures(store, "b", span)).submitted == 3 * times


@pytest.mark.parametrize("folded", [False, True])
async def test_removed_statistics_of_a_type_leave_those_of_others(
    manual_store: Store, clock: ManualClock, *, folded: bool
) -> None:
    """The counters of a lifetime only grow, so they stay."""
    await some_work(manual_store)
    if folded:
        await clock.advance(Duration(2 * HOUR))
        await fold_all(manual_store)
    await put(manual_store, *some_jobs(2, tenant="a", queue="q", type="other"))
    await put(manual_store, *some_jobs(1, tenant="c", queue="q", type="other"))
    counted = await manual_store.read(lifetime_counters.read)

    await rollups.remove_stats(manual_store, ["a", "b"], ["t", "unknown"])
    for span in (HOUR, DAY, MONTH):
        for tenant, submitted in ((ALL_TENANTS, 3), ("a", 2), ("b", 0), ("c", 1)):
            found = await window(manual_store, tenant, span)
            assert {key.type for key in found.stats} <= {"other"}
            assert total(found.stats.values()).submitted == submitted
    assert await manual_store.read(lifetime_counters.read) == counted


class TestStatsAreTheSame:
    async def test_before_and_after_they_are_rolled_up(self, manual_store: Store) -> None:
        await some_work(manual_store)
        await assert_some_work(manual_store)
        await fold_all(manual_store)
        await assert_some_work(manual_store)
        assert await unfolded(manual_store) == 0
        await some_work(manual_store)
        await assert_some_work(manual_store, 2)

    @pytest.mark.parametrize("bound", ["MAX_ROWS_PER_UPDATE", "MAX_GROUPS_PER_UPDATE"])
    async def test_if_many_nodes_roll_up_concurrently(
        self, manual_store: Store, monkeypatch: pytest.MonkeyPatch, bound: str
    ) -> None:
        """Each entry counts once: rollups and cursor change in one transaction, on one node at a time."""
        monkeypatch.setattr(rollups, bound, 3)
        monkeypatch.setattr(rollups, "FIRST_PAGE_SIZE", 1)
        for _ in range(3):
            await some_work(manual_store)
        while await unfolded(manual_store):
            await asyncio.gather(*[update_rollups(manual_store) for _ in range(4)])
        await assert_some_work(manual_store, 3)

    async def test_after_minutes_became_hours(self, manual_store: Store, clock: ManualClock) -> None:
        """Results for a day and a month match those for an hour, without double counting."""
        await some_work(manual_store)
        for _ in range(5):
            await fold_all(manual_store)
            for span in (DAY, MONTH):
                await assert_some_work(manual_store, span=span)
            await clock.advance(Duration(20 * MINUTE))
        await some_work(manual_store)
        for _ in range(20):
            await fold_all(manual_store)
            await rollups.prune(manual_store, 1_000)
            await clock.advance(Duration(20 * MINUTE))
        for span in (DAY, MONTH):
            await assert_some_work(manual_store, 2, span=span)
        assert (await figures(manual_store)).submitted == 0

    async def test_if_no_node_rolled_up_for_hours(self, manual_store: Store, clock: ManualClock) -> None:
        await some_work(manual_store)
        await clock.advance(Duration(5 * HOUR))
        await some_work(manual_store)
        for _ in range(30):
            await fold_all(manual_store)
            await rollups.prune(manual_store, 1_000)
        await assert_some_work(manual_store, 2, span=DAY)
        await assert_some_work(manual_store, 1)


async def test_lost_leases_match_the_jobs(manual_store: Store, clock: ManualClock) -> None:
    """S22: reaped jobs and lost workers, before and after rolling up, even if the log is pruned."""
    few, many, left = [await enter(manual_store) for _ in range(3)]
    jobs = [*await hold(manual_store, few, 2), *await hold(manual_store, many, MAX_LISTED_CHANGES + 1, max_attempts=1)]
    (handed_back,) = await hold(manual_store, left)
    await report(manual_store, handed_back, Interrupted())
    await manual_store.single(lambda tx: tx.depart(left))
    await clock.advance(Duration(MINUTE))
    await reap_all(manual_store)

    logs = [attempt_log(job) for job in await read_all(manual_store, [job.id for job in [*jobs, handed_back]])]
    expired = sum(record.outcome == "lease_expired" for log in logs for record in log)
    assert expired == len(jobs)
    for _ in range(2):
        ever = await manual_store.read(lifetime_counters.read)
        assert (total(ever.jobs.values()).reaped, ever.lost) == (expired, 2)
        assert (await figures(manual_store)).reaped == expired
        await fold_all(manual_store)
    await clock.advance(Duration(2 * CHANGE_LOG_RETENTION))
    await fold_all(manual_store)
    ever = await manual_store.read(lifetime_counters.read)
    assert (total(ever.jobs.values()).reaped, ever.lost) == (expired, 2)


class TestLateCommit:
    async def test_is_counted_once_it_appears(self, store: Store, interleaving: Interleaving) -> None:
        """Its number precedes that of an entry that was already rolled up."""

        async def insert(tx: Tx) -> None:
            await tx.insert([a_job(tenant="late")], key_retention=KEY_RETENTION)

        async def others() -> None:
            await put(store, a_job(tenant="early"))
            await fold_all(store)

        async def nothing(_tx: Tx, _seen: None) -> None:
            return

        await interleaving.run(store, insert, others, nothing)
        assert (await figures(store, "late")).submitted == 1
        await fold_all(store)
        await fold_all(store)
        assert [(await figures(store, tenant)).submitted for tenant in ("early", "late")] == [1, 1]


class TestPruning:
    async def test_deletes_old_entries_of_the_change_log(self, manual_store: Store, clock: ManualClock) -> None:
        await some_work(manual_store)
        before = await manual_store.single(lambda tx: tx.change_log_range())
        await fold_all(manual_store)
        await clock.advance(CHANGE_LOG_RETENTION)
        await fold_all(manual_store)
        assert (await manual_store.single(lambda tx: tx.change_log_range())).pruned < before.last
        await clock.advance(seconds(1))
        await fold_all(manual_store)

        kept = await manual_store.single(lambda tx: tx.change_log_range())
        assert (kept.pruned, kept.last) == (before.last, before.last)
        assert await manual_store.single(lambda tx: tx.changes_after(0, 10)) == []

    async def test_keeps_entries_that_were_not_rolled_up(self, manual_store: Store, clock: ManualClock) -> None:
        await some_work(manual_store)
        await clock.advance(Duration(2 * CHANGE_LOG_RETENTION))
        await rollups.prune(manual_store, 1_000)
        await assert_some_work(manual_store)

    async def test_deletes_minutes_after_hours_and_hours_after_months(
        self, manual_store: Store, clock: ManualClock
    ) -> None:
        await some_work(manual_store)
        await fold_all(manual_store)

        start = floor(await manual_store.single(lambda tx: tx.now()), HOUR)
        end = Instant(start + 2 * HOURS_RETENTION)

        async def stored(span: Duration) -> int:
            return len(await manual_store.single(lambda tx: tx.rollups(span, ALL_TENANTS, start, end)))

        assert (await stored(MINUTE), await stored(HOUR)) == (1, 0)
        await clock.advance(Duration(MINUTES_RETENTION + 2 * MINUTE))
        for _ in range(20):
            await fold_all(manual_store)
        await rollups.prune(manual_store, 1_000)
        assert (await stored(MINUTE), await stored(HOUR)) == (0, 1)
        await clock.advance(Duration(HOURS_RETENTION + 2 * DAY))
        await rollups.prune(manual_store, 1_000)
        assert (await stored(MINUTE), await stored(HOUR)) == (0, 0)


async def test_a_census_counts_jobs_by_status(manual_store: Store, clock: ManualClock) -> None:
    start = await manual_store.single(lambda tx: tx.now())
    await put(
        manual_store, *some_jobs(3, tenant="a", queue="q"), *some_jobs(2, tenant="b", queue="q", delay=seconds(9))
    )
    await clock.advance(seconds(1))
    await put(manual_store, a_job(tenant="a", queue="q"))
    (held,) = await take(manual_store, await enter(manual_store), lane_of(a_job(tenant="a", queue="q")), limit=1)
    await move(manual_store, a_transition(held, Status.DEAD))

    found = await manual_store.read(lambda tx: tx.census())
    assert sorted((count.tenant, count.status.value, count.jobs, count.since) for count in found) == [
        ("a", "ready", 3, start),
        ("b", "scheduled", 2, None),
    ]
    (dead,) = await manual_store.read(lambda tx: tx.dead_census())
    assert (dead.tenant, dead.queue, dead.type, dead.status, dead.jobs) == ("a", "q", "send", Status.DEAD, 1)


async def shares(store: Store, span: Duration = HOUR) -> dict[str, tuple[int, float]]:
    found = await store.read(lambda tx: _shares(tx, span))
    return {share.tenant: (share.received, round(share.entitled, 6)) for share in found.fairness.tenants}


async def _shares(tx: Tx, span: Duration) -> FairnessWindow:
    return await read_fairness(tx, span, Census(await tx.now(), await tx.census()))


async def test_shares_follow_weight_and_cost_before_and_after_rolling_up(
    manual_store: Store, clock: ManualClock
) -> None:
    """S14: tenant a received the share of b, and c, which waits, received nothing yet."""
    store = manual_store
    worker = await enter(store, lease=DAY)
    await store.run(lambda tx: tx.add_tenant("b", Quotas(weight=2)))
    await put(store, *[a_job(tenant=tenant, cost=5) for tenant in "aabbc"])
    await clock.advance(seconds(30))
    jobs = await take(store, worker, *[Lane("mail", tenant, 0) for tenant in "ab"])
    await report(store, [job for job in jobs if job.tenant == "a"])
    await report(store, [job for job in jobs if job.tenant == "b"][:1])
    expected = {"a": (10, 3.75), "b": (5, 7.5), "c": (0, 3.75)}
    assert await shares(store) == expected
    await fold_all(store)
    assert await shares(store) == expected
    await clock.advance(Duration(HOUR))
    await fold_all(store)
    assert await shares(store, Duration(4 * HOUR)) == expected


async def test_a_tenant_with_jobs_in_a_paused_queue_is_entitled_to_no_share_of_it(manual_store: Store) -> None:
    store = manual_store
    await put(store, a_job(tenant="a"), a_job(tenant="b", queue="paused"))
    await store.run(lambda tx: tx.save_queue(Queue("paused", paused=True)))
    await report(store, await take(store, await enter(store), Lane("mail", "a", 0)))
    assert await shares(store) == {"a": (1, 1.0)}
