"""Change log: entries match the changes exactly and commit with them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.engine.jobs.actions import cancel, delete, retry
from holdfast.engine.maintenance import promote_due
from holdfast.model.change_log import DELETED, MAX_LISTED_CHANGES, ChangeEntry, ChangeGroup, JobChange, bucket_of
from holdfast.model.job import NewJob
from holdfast.model.outcome import Interrupted, Outcome, Snoozed, Succeeded
from holdfast.model.state import STATUS_OF_CODE, Status
from holdfast.model.time import Duration, Instant, seconds
from tests.support.builders import (
    KEY_RETENTION,
    a_job,
    a_transition,
    enter,
    error,
    hold,
    move,
    put,
    read,
    reap_all,
    report,
    roll_back,
    running,
    share,
    some_jobs,
    take,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.job import Job
    from holdfast.model.transition import Transition
    from holdfast.store.port.store import Store
    from tests.support.clock import ManualClock

MANY = MAX_LISTED_CHANGES + 1


class Tail:
    """Entries of the change log from now on."""

    def __init__(self, store: Store, after: int) -> None:
        self._store = store
        self._after = after

    @classmethod
    async def begin(cls, store: Store) -> Tail:
        return cls(store, (await store.single(lambda tx: tx.change_log_range())).last)

    async def rows(self) -> list[ChangeEntry]:
        found = await self._store.single(lambda tx: tx.changes_after(self._after, 1_000))
        self._after = max([self._after, *(entry.seq for entry in found)])
        return found

    async def changes(self) -> list[JobChange]:
        return [change for entry in await self.rows() for change in entry.body.c]

    async def groups(self) -> list[ChangeGroup]:
        return [group for entry in await self.rows() for group in entry.body.groups()]


def told(job: NewJob | Job, status: Status, attempt: int = 0, fence: int = 0) -> JobChange:
    spec = job.spec if isinstance(job, NewJob) else job
    return JobChange(job.id, spec.tenant, spec.queue, spec.type, status.code, attempt, fence)


def by_status(groups: Sequence[ChangeGroup]) -> Counter[Status]:
    counted: Counter[Status] = Counter()
    for group in groups:
        counted[STATUS_OF_CODE[group.status]] += group.jobs
    return counted


@pytest.mark.parametrize("way", ["run", "single"])
class TestEntry:
    """Entries written in transactions of several statements and of one."""

    async def insert(self, store: Store, way: str, jobs: Sequence[NewJob]) -> None:
        await getattr(store, way)(lambda tx: tx.insert(jobs, key_retention=KEY_RETENTION))

    async def apply(self, store: Store, way: str, moves: Sequence[Transition], **more: Any) -> None:
        await getattr(store, way)(lambda tx: tx.apply(moves, **more))

    async def test_of_submitted_jobs(self, store: Store, way: str) -> None:
        tail = await Tail.begin(store)
        now, later = a_job(), a_job(delay=seconds(60))
        await self.insert(store, way, [now, later])

        assert await tail.changes() == [told(now, Status.READY), told(later, Status.SCHEDULED)]

    async def test_of_scheduled_jobs_by_the_database_clock(self, store: Store, way: str) -> None:
        at = await store.single(lambda tx: tx.now())
        jobs = [a_job(scheduled_at=Instant(at - 1)), a_job(scheduled_at=Instant(at + 10**12)), a_job()]
        tail = await Tail.begin(store)
        await self.insert(store, way, jobs)

        (entry,) = await tail.rows()
        wanted = [Status.READY, Status.SCHEDULED, Status.READY]
        assert entry.body.c == [told(job, status) for job, status in zip(jobs, wanted, strict=True)]

    async def test_of_submissions_with_keys_only_the_new_jobs(self, store: Store, way: str) -> None:
        first = a_job(idempotency_key="k")
        await put(store, first)
        tail = await Tail.begin(store)
        fresh = a_job(idempotency_key="l")
        await self.insert(store, way, [a_job(idempotency_key="k"), fresh])

        assert await tail.changes() == [told(fresh, Status.READY)]

    async def test_of_many_submitted_jobs_their_number(self, store: Store, way: str) -> None:
        jobs = [*some_jobs(MANY), *some_jobs(3, tenant="b"), *some_jobs(2, delay=seconds(60))]
        tail = await Tail.begin(store)
        await self.insert(store, way, jobs)

        (entry,) = await tail.rows()
        assert entry.body.c == []
        assert sorted((g.tenant, g.queue, g.type, g.status, g.jobs) for g in entry.body.g) == [
            ("acme", "mail", "send", 0, MANY),
            ("acme", "mail", "send", 5, 2),
            ("b", "mail", "send", 0, 3),
        ]

    @pytest.mark.parametrize("n", [1, MANY])
    async def test_of_transitions_only_those_that_were_applied(self, store: Store, way: str, n: int) -> None:
        """A refused transition changed nothing and is not logged."""
        worker = await enter(store)
        jobs = await hold(store, worker, n + 1)
        stolen = jobs[0]
        await move(store, a_transition(stolen, Status.CANCELLED))
        tail = await Tail.begin(store)
        await self.apply(store, way, [a_transition(job, Status.SUCCEEDED) for job in jobs], ended_at=jobs[0].started_at)

        (entry,) = await tail.rows()
        assert [(g.status, g.jobs, g.failed) for g in entry.body.g] == [(Status.SUCCEEDED.code, n, 0)]
        assert entry.body.c == ([told(jobs[1], Status.SUCCEEDED, 1, 1)] if n == 1 else [])

    @pytest.mark.parametrize("to", [Status.RETRYING, Status.READY, Status.SCHEDULED, Status.DEAD, Status.CANCELLED])
    async def test_of_every_end_of_an_attempt(self, store: Store, way: str, to: Status) -> None:
        worker = await enter(store)
        jobs = await hold(store, worker, 3)
        await move(store, a_transition(jobs[0], Status.CANCELLED))
        tail = await Tail.begin(store)
        await self.apply(store, way, [a_transition(job, to) for job in jobs])

        assert await tail.changes() == [told(job, to, 1, 1) for job in jobs[1:]]

    async def test_nothing_if_all_transitions_were_refused(self, store: Store, way: str) -> None:
        job = await running(store)
        await move(store, a_transition(job, Status.CANCELLED))
        tail = await Tail.begin(store)
        await self.apply(store, way, [a_transition(job, Status.SUCCEEDED)])
        await self.apply(store, way, [a_transition(job, Status.RETRYING)])

        assert await tail.rows() == []

    async def test_of_mixed_transitions_each_once(self, store: Store, way: str) -> None:
        jobs = await hold(store, await enter(store), 5)
        await move(store, a_transition(jobs[4], Status.DEAD))
        dead = await read(store, jobs[4])
        states = [Status.SUCCEEDED, Status.DEAD, Status.RETRYING, Status.READY]
        tail = await Tail.begin(store)
        moves = [a_transition(job, to) for job, to in zip(jobs, states, strict=False)]
        await self.apply(store, way, [*moves, a_transition(dead, Status.READY, attempts=0, generation=1)])

        assert by_status(await tail.groups()) == Counter([*states, Status.READY])


class TestChangeLog:
    async def test_lists_a_few_claims_one_by_one(self, store: Store) -> None:
        jobs = some_jobs(MAX_LISTED_CHANGES)
        await put(store, *jobs)
        worker = await enter(store)
        tail = await Tail.begin(store)
        await take(store, worker, limit=MAX_LISTED_CHANGES)

        found = await tail.changes()
        assert sorted(found, key=lambda each: each.id) == [told(job, Status.RUNNING, 1, 1) for job in jobs]

    async def test_counts_many_claims(self, store: Store) -> None:
        jobs = [*some_jobs(MANY), *some_jobs(2, type="other")]
        await put(store, *jobs)
        worker = await enter(store)
        tail = await Tail.begin(store)
        await take(store, worker)

        (entry,) = await tail.rows()
        assert entry.body.c == []
        assert {(g.tenant, g.queue, g.type, g.status, g.jobs) for g in entry.body.g} == {
            ("acme", "mail", "send", 1, MANY),
            ("acme", "mail", "other", 1, 2),
        }

    async def test_has_no_entry_for_an_empty_claim(self, store: Store) -> None:
        await put(store, a_job())
        worker = await enter(store, lease=Duration(0))
        tail = await Tail.begin(store)
        assert await take(store, worker) == []
        assert await take(store, await enter(store), share(max_jobs=0)) == []

        assert [entry for entry in await tail.rows() if not entry.body.w] == []

    @pytest.mark.parametrize("n", [1, MANY])
    async def test_lists_promoted_jobs(self, manual_store: Store, clock: ManualClock, n: int) -> None:
        jobs = some_jobs(n, delay=seconds(60))
        await put(manual_store, *jobs)
        tail = await Tail.begin(manual_store)
        await clock.advance(seconds(60))
        await promote_due(manual_store)

        assert by_status(await tail.groups()) == {Status.READY: n}

    async def test_lists_cancelled_and_replayed_jobs(self, store: Store) -> None:
        job = a_job()
        await put(store, job)
        tail = await Tail.begin(store)
        await cancel(store, [job.id], reason="")
        await retry(store, [job.id])

        assert await tail.changes() == [told(job, Status.CANCELLED), told(job, Status.READY)]

    @pytest.mark.parametrize("n", [1, MANY])
    async def test_lists_deleted_jobs_without_counting_them_in_stats(self, store: Store, n: int) -> None:
        jobs = some_jobs(n, tenant="a")
        await put(store, *jobs)
        tail = await Tail.begin(store)
        assert len(await delete(store, [job.id for job in jobs])) == n
        assert await delete(store, [job.id for job in jobs]) == set()

        (entry,) = await tail.rows()
        deleted = [JobChange(job.id, "a", job.spec.queue, job.spec.type, DELETED, 0, 0) for job in jobs]
        if n == 1:
            assert (entry.body.listed(), entry.body.unlisted()) == (deleted, [])
        else:
            (group,) = entry.body.unlisted()
            assert (group.tenant, group.status, group.jobs, entry.body.listed()) == ("a", DELETED, n, [])
        assert entry.body.groups() == []

    async def test_lists_reaped_jobs(self, manual_store: Store, clock: ManualClock) -> None:
        job = await running(manual_store)
        tail = await Tail.begin(manual_store)
        await clock.advance(seconds(60))
        await reap_all(manual_store)

        (group,) = [group for group in await tail.groups() if group.jobs]
        assert (group.status, group.jobs, group.failed, group.reaped) == (Status.READY.code, 1, 1, 1)
        assert group.run == {bucket_of(seconds(60)): 1}
        assert job.status is Status.RUNNING

    async def test_has_no_entry_for_a_transaction_that_was_rolled_back(self, store: Store) -> None:
        tail = await Tail.begin(store)
        await roll_back(store, lambda tx: tx.insert([a_job()], key_retention=KEY_RETENTION))

        assert await tail.rows() == []

    async def test_has_wait_and_run_times(self, manual_store: Store, clock: ManualClock) -> None:
        job = a_job()
        await put(manual_store, job)
        await clock.advance(seconds(3))
        (held,) = await take(manual_store, await enter(manual_store))
        await clock.advance(seconds(7))
        tail = await Tail.begin(manual_store)
        await report(manual_store, held, error())

        (group,) = await tail.groups()
        assert (group.status, group.jobs, group.failed) == (Status.RETRYING.code, 1, 1)
        assert (group.wait, group.run) == ({bucket_of(seconds(3)): 1}, {bucket_of(seconds(7)): 1})

    async def test_does_not_count_a_release_as_a_failure(self, store: Store) -> None:
        jobs = await hold(store, await enter(store), 3)
        tail = await Tail.begin(store)
        outcomes: list[Outcome] = [Interrupted(), Snoozed(seconds(5)), Succeeded()]
        for job, outcome in zip(jobs, outcomes, strict=True):
            await report(store, job, outcome)

        assert [group.failed for group in await tail.groups()] == [0, 0, 0]

    async def test_returns_entries_by_number(self, store: Store) -> None:
        tail = await Tail.begin(store)
        for _ in range(3):
            await put(store, a_job())
        first, second, third = await tail.rows()

        found = await store.single(lambda tx: tx.changes_at([third.seq, first.seq, third.seq + 1_000]))
        assert found == [first, third]
        assert (await store.single(lambda tx: tx.change_log_range())).last == third.seq
        assert [entry.at for entry in (first, second)] == sorted(entry.at for entry in (first, second))

    async def test_lists_workers_that_register_and_leave(self, manual_store: Store, clock: ManualClock) -> None:
        tail = await Tail.begin(manual_store)
        one, other = await enter(manual_store), await enter(manual_store)
        await manual_store.single(lambda tx: tx.depart(one))
        await clock.advance(seconds(60))
        await reap_all(manual_store)

        assert [(each.id, each.event) for entry in await tail.rows() for each in entry.body.w] == [
            (one, "registered"),
            (other, "registered"),
            (one, "gone"),
            (other, "lost"),
        ]
