"""S16: concurrency and rate limits, taken by a claim and released when the attempt ends; and pauses."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.engine.claiming import dispatch_settings, limited
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.claiming.limited import SETTLES_AFTER
from holdfast.engine.jobs import actions
from holdfast.engine.jobs.explain import read_facts
from holdfast.engine.jobs.reap import reap
from holdfast.engine.limits import UNCLAIMED_SLOT_TIMEOUT_S, KeySlotRotation, LimitService
from holdfast.engine.maintenance import promote_due
from holdfast.model.access import Quotas
from holdfast.model.job import Job, JobFilter, NewJob, Page
from holdfast.model.limit import Pause, PauseKind, Rate, key_limit, queue_limit, tenant_limit
from holdfast.model.outcome import CancelledByHandler, Failed, Failure, Interrupted, Outcome, Snoozed, Succeeded
from holdfast.model.state import Status
from holdfast.model.time import Instant, seconds
from tests.support.builders import RETRY, a_job, enter, put, report, some_jobs

if TYPE_CHECKING:
    from holdfast.model.limit import LimitName
    from holdfast.store.port.store import Store
    from tests.support.clock import Console, ManualClock
    from tests.support.interleave import Interleaving

_PAGE = Page(100)
MAIL, ACME, KEY = queue_limit("mail"), tenant_limit("acme"), key_limit("acme", "k")
DONE = Succeeded(b"null")
HOUR = seconds(3_600)


@pytest.fixture(autouse=True)
def always_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_settings, "REFRESH_INTERVAL_S", 0)
    monkeypatch.setattr("holdfast.engine.claiming.limited.RECHECK_INTERVAL_S", 0.0)


async def claims_on(store: Store, *queues: str, lease: Any = HOUR) -> Claims:
    return Claims(store, await enter(store, lease=lease), queues or ("mail",), None)


async def used(store: Store, *names: Any) -> list[int]:
    _, found = await LimitService(store).named(names)
    return [found[name].used for name in names]


async def limit(store: Store, name: Any, most: int | None = None, rate: Rate | None = None) -> None:
    await LimitService(store).set(name, max_running=most, rate=rate)


def spied(method: Any, calls: list[str]) -> Any:
    """Return the function, which records its calls."""

    def recorded(*args: Any) -> Any:
        calls.append(method.__name__)
        return method(*args)

    return recorded


async def ids(claims: Claims, slots: int = 100) -> list[Any]:
    return [job.id for job in await claims.claim(slots)]


class TestConcurrency:
    async def test_a_queue_limit_is_never_exceeded_and_fully_used(self, store: Store) -> None:
        await limit(store, MAIL, 3)
        await put(store, *some_jobs(5), *some_jobs(2, queue="reports"))
        claims = await claims_on(store, "mail", "reports")

        jobs = [job for _ in range(4) for job in await claims.claim(100)]
        assert Counter(job.queue for job in jobs) == {"mail": 3, "reports": 2}
        assert await used(store, MAIL) == [3]
        await report(store, next(job for job in jobs if job.queue == "mail"), DONE)
        assert len([job for _ in range(3) for job in await claims.claim(100)]) == 1
        assert await used(store, MAIL) == [3]

    async def test_several_limits_apply_to_one_job(self, store: Store) -> None:
        await limit(store, MAIL, 4)
        await limit(store, ACME, 2)
        await put(store, *some_jobs(9), *some_jobs(9, tenant="other"), *some_jobs(9, queue="reports"))
        claims = await claims_on(store, "mail", "reports")

        jobs = [job for _ in range(6) for job in await claims.claim(100)]
        assert Counter(job.tenant for job in jobs)["acme"] == 2
        assert Counter(job.queue for job in jobs)["mail"] <= 4
        assert len(jobs) >= 4
        assert await used(store, MAIL, ACME) == [Counter(job.queue for job in jobs)["mail"], 2]

    @pytest.mark.parametrize("how", ["done", "failed", "dead", "snoozed", "released", "stopped", "cancelled", "lost"])
    async def test_every_end_of_an_attempt_releases_its_slots(
        self, manual_store: Store, clock: ManualClock, how: str
    ) -> None:
        """P18: even if no worker reports."""
        store = manual_store
        await limit(store, MAIL, 1)
        await limit(store, ACME, 1)
        await put(store, a_job(concurrency_key="k"), a_job())
        claims = await claims_on(store)
        (job,) = await claims.claim(10)
        assert await used(store, MAIL, ACME) == [1, 1]

        await self.end(store, clock, job, how)

        assert await used(store, MAIL, ACME) == [0, 0]
        assert len(await ids(await claims_on(store))) == 1

    async def end(self, store: Store, clock: ManualClock, job: Job, how: str) -> None:
        failure = Failure("Error", "no")
        outcomes: dict[str, Outcome] = {
            "done": DONE,
            "failed": Failed(failure, retry_in=seconds(60)),
            "dead": Failed(failure, retryable=False),
            "snoozed": Snoozed(seconds(60)),
            "released": Interrupted(),
            "stopped": CancelledByHandler("enough"),
        }
        if how == "cancelled":
            assert await actions.cancel(store, [job.id], reason="enough")
        elif how == "lost":
            await clock.advance(HOUR)
            assert await reap(store, default=RETRY, rng=lambda: 0.5) == 1
        else:
            await report(store, job, outcomes[how])

    async def test_a_settled_batch_releases_only_the_slots_of_reports_that_took_effect(self, store: Store) -> None:
        """S7, S16: the cancellation already released the slot of the job that it took from its worker."""
        await limit(store, MAIL, 3)
        await put(store, *some_jobs(3))
        jobs = await (await claims_on(store)).claim(3)
        await actions.cancel(store, [jobs[0].id], reason="enough")
        assert await used(store, MAIL) == [2]

        for settled in ({jobs[1].id}, set()):
            assert await report(store, jobs[:2]) == settled
            assert await used(store, MAIL) == [1]

    async def test_running_jobs_count_when_a_limit_is_set(self, store: Store) -> None:
        await put(store, *some_jobs(5))
        claims = await claims_on(store)
        before = await claims.claim(3)
        await limit(store, MAIL, 2)

        assert await ids(claims) == []
        for job in before[:2]:
            await report(store, job, DONE)
            assert len(await ids(claims)) == (1 if job is before[1] else 0)
        await report(store, before[2], DONE)
        assert len(await ids(claims)) == 1
        assert await used(store, MAIL) == [2]

    async def test_a_limit_is_raised_lowered_and_removed_while_jobs_run(self, store: Store) -> None:
        await put(store, *some_jobs(9))
        claims = await claims_on(store)
        await limit(store, MAIL, 1)
        jobs = await claims.claim(10)
        await limit(store, MAIL, 4)
        jobs += [job for _ in range(3) for job in await claims.claim(10)]
        assert len(jobs) == 4
        await limit(store, MAIL, 2)
        for job in jobs[:2]:
            await report(store, job, DONE)
        assert await ids(claims) == []
        await limit(store, MAIL, None)
        assert len(await ids(claims)) == 5
        for job in jobs[2:]:
            await report(store, job, DONE)
        await limit(store, MAIL, 7)
        assert await used(store, MAIL) == [0]

    async def test_no_job_runs_under_a_limit_of_zero(self, store: Store) -> None:
        await limit(store, ACME, 0)
        await put(store, a_job(), other := a_job(tenant="other"))

        assert await ids(await claims_on(store)) == [other.id]

    async def test_concurrent_workers_never_exceed_a_limit_together(self, store: Store) -> None:
        """S16, S17: four workers claim concurrently and end their jobs in every way."""
        await limit(store, MAIL, 5)
        await put(store, *some_jobs(60, max_attempts=100))
        running = peak = 0

        async def work(n: int) -> None:
            nonlocal running, peak
            claims = await claims_on(store)
            while await store.read(lambda tx: tx.counts(JobFilter())):
                jobs = await claims.claim(3)
                running += len(jobs)
                peak = max(peak, running)
                await asyncio.sleep(0.002)  # the run time of jobs, during which other workers claim
                for job in jobs:
                    running -= 1  # before the report: a worker that sees the free slot must not see the job running
                    await report(store, job, DONE if (job.fence + n) % 3 else Interrupted())

        await asyncio.gather(*[work(n) for n in range(4)])
        assert 2 <= peak <= 5
        assert await used(store, MAIL) == [0]
        assert await store.read(lambda tx: tx.counts(JobFilter())) == []

    async def test_an_optimistic_claim_respects_the_limit(
        self, manual_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S16: jobs are claimed first and counted last; if they no longer fit, the claim rolls back and is repeated."""
        store = manual_store
        calls: list[str] = []
        for name in ("_claim_optimistically", "_claim_pessimistically"):
            monkeypatch.setattr(limited, name, spied(getattr(limited, name), calls))
        await put(store, *some_jobs(60))
        await limit(store, MAIL, 50)
        await clock.advance(2 * SETTLES_AFTER)
        claims, other = await claims_on(store), await claims_on(store)

        held = [job for _ in range(2) for job in await claims.claim(2)]
        assert (len(held), calls) == (4, ["_claim_pessimistically", "_claim_optimistically"])
        assert await used(store, MAIL) == [4]
        assert len(await other.claim(45)) == 45

        assert [len(await claims.claim(2)) for _ in range(2)] == [1, 0]
        assert calls[3:] == ["_claim_optimistically", "_claim_pessimistically", "_claim_pessimistically"]
        assert await used(store, MAIL) == [50]
        for job in held:
            await report(store, job, DONE)
        assert await used(store, MAIL) == [46]

    async def test_a_limit_that_changes_during_an_optimistic_claim_counts_correctly(
        self, manual_store: Store, clock: ManualClock
    ) -> None:
        """S16: a job that the changed limit does not count is not marked as counted."""
        store = manual_store
        await put(store, *some_jobs(20))
        await limit(store, MAIL, 50, Rate(10, seconds(1), 10))
        await clock.advance(2 * SETTLES_AFTER)
        claims = await claims_on(store)
        jobs = await claims.claim(2)
        await store.run(lambda tx: tx.set_limit(MAIL, None, Rate(10, seconds(1), 10), ""))

        jobs += await claims.claim(2)
        assert [job.slots for job in jobs] == [1, 1, 0, 0]
        for job in jobs:
            await report(store, job, DONE)
        assert await used(store, MAIL) == [0]


class TestRates:
    async def test_a_rate_limit_allows_a_burst_and_then_its_rate(self, manual_store: Store, clock: ManualClock) -> None:
        await limit(manual_store, MAIL, rate=Rate(3, seconds(60), 2))
        await put(manual_store, *some_jobs(9))
        claims = await claims_on(manual_store, lease=seconds(36_000))

        assert len(await ids(claims)) == 2
        assert await ids(claims) == []
        await clock.advance(seconds(19))
        assert await ids(claims) == []
        await clock.advance(seconds(1))
        assert len(await ids(claims)) == 1
        await clock.advance(seconds(3_600))
        assert len(await ids(claims)) == 2

    async def test_rate_and_concurrency_limits_apply_together(self, manual_store: Store, clock: ManualClock) -> None:
        await limit(manual_store, ACME, 1, Rate(1, seconds(1), 10))
        await put(manual_store, *some_jobs(9))
        claims = await claims_on(manual_store, lease=seconds(36_000))
        started = 0
        for _ in range(12):
            jobs = await claims.claim(5)
            started += len(jobs)
            assert len(jobs) <= 1
            for job in jobs:
                await report(manual_store, job, DONE)
        assert started == 9

    async def test_the_rate_limit_of_a_key_applies(self, manual_store: Store, clock: ManualClock) -> None:
        await limit(manual_store, KEY, 5, Rate(1, seconds(10), 1))
        await put(manual_store, *some_jobs(4, concurrency_key="k"))
        claims = await claims_on(manual_store, lease=seconds(36_000))
        rotation = KeySlotRotation(manual_store)

        assert len(await ids(claims)) == 1
        await rotation.round()
        claims.on_ready([])
        assert await ids(claims) == []
        await clock.advance(seconds(10))
        await rotation.round()
        claims.on_ready([])
        assert len(await ids(claims)) == 1

    @pytest.mark.parametrize("busy", [MAIL, ACME], ids=["queue", "tenant"])
    async def test_a_claim_that_waited_for_a_limit_reads_the_clock_after_the_lock(
        self, store: Store, interleaving: Interleaving, console: Console, busy: LimitName
    ) -> None:
        """An earlier time would refill the bucket for the wait a second time, and exceed the rate."""
        for name in (MAIL, ACME):
            await limit(store, name, rate=Rate(5, seconds(1), 5))
        holder, waiter = await enter(store, lease=HOUR), await enter(store, lease=HOUR)

        async def lock() -> Instant:
            locked = await store.run(lambda tx: tx.lock_limits(waiter, [MAIL, ACME]))
            assert locked is not None
            return locked[1]

        if interleaving.possible:
            released_at, locked_at = await interleaving.run(
                store, lambda tx: tx.lock_limits(holder, [busy]), lock, lambda tx, _: tx.now()
            )
        else:
            await console.run("BEGIN IMMEDIATE")
            waiting = asyncio.ensure_future(lock())
            released_at = await store.read(lambda tx: tx.now())
            await console.run("COMMIT")
            locked_at = await waiting
        assert locked_at >= released_at


class TestKeys:
    async def test_jobs_of_a_key_run_one_at_a_time_by_priority_and_age(self, store: Store) -> None:
        first, second, urgent, last = (
            a_job(concurrency_key="k", priority=priority, queue=queue)
            for priority, queue in ((0, "mail"), (0, "mail"), (5, "reports"), (0, "mail"))
        )
        free, other = a_job(), a_job(tenant="other", concurrency_key="k")
        await put(store, first, second, urgent, last, free, other)
        claims = await claims_on(store, "mail", "reports")

        jobs = {job.id: job for _ in range(3) for job in await claims.claim(10)}
        assert set(jobs) == {first.id, free.id, other.id} or set(jobs) == {urgent.id, free.id, other.id}
        served = []
        running = next(job for job in jobs.values() if job.concurrency_key and job.tenant == "acme")
        while True:
            served.append(running.id)
            await report(store, running, DONE)
            claims.on_ready([])
            found = [job for _ in range(3) for job in await claims.claim(10)]
            if not found:
                break
            (running,) = found
        assert served == [urgent.id, first.id, second.id, last.id]

    async def test_jobs_that_wait_for_their_key_are_shown_as_ready(self, store: Store) -> None:
        await put(store, *(jobs := some_jobs(3, concurrency_key="k")))

        found = await store.read(lambda tx: tx.get([job.id for job in jobs]))
        assert {job.status for job in found} == {Status.READY}
        where = JobFilter(status=Status.READY, tenant="acme")
        for page in (where, JobFilter(status=Status.READY), JobFilter()):
            listed = await store.read(lambda tx, page=page: tx.find(page, _PAGE))  # type: ignore[misc]
            assert {job.id for job in listed} == {job.id for job in jobs}
        assert [(c.status, c.jobs) for c in await store.read(lambda tx: tx.counts(where))] == [(Status.READY, 3)]
        assert [(c.status, c.jobs) for c in await store.read(lambda tx: tx.census())] == [(Status.READY, 3)]
        assert await store.read(lambda tx: tx.tenant_backlog("acme", 100)) == 3
        assert await store.read(lambda tx: tx.queue_backlogs("acme", ["mail"], 100)) == {"mail": 3}

    async def test_the_concurrency_of_a_key_can_be_changed_at_run_time(self, store: Store) -> None:
        await put(store, *some_jobs(6, concurrency_key="k"))
        claims = await claims_on(store)
        jobs = await claims.claim(10)
        await limit(store, KEY, 3)
        claims.on_ready([])
        jobs += await claims.claim(10)
        assert len(jobs) == 3
        assert await used(store, KEY) == [3]
        await limit(store, KEY, 1)
        for job in jobs[:2]:
            await report(store, job, DONE)
        claims.on_ready([])
        assert await ids(claims) == []
        await report(store, jobs[2], DONE)
        claims.on_ready([])
        assert len(await ids(claims)) == 1

    @pytest.mark.parametrize("how", ["cancel", "delete"])
    async def test_a_job_that_waits_for_its_key_can_be_cancelled_or_deleted(self, store: Store, how: str) -> None:
        first, second, third = some_jobs(3, concurrency_key="k")
        await put(store, first, second, third)
        act = actions.delete if how == "delete" else lambda s, which: actions.cancel(s, which, reason="no")

        assert await act(store, [second.id]) == {second.id}
        assert await act(store, [first.id]) == {first.id}  # it had the key slot and was not claimed
        assert await ids(await claims_on(store)) == [third.id]

    async def test_every_way_to_become_ready_respects_the_key(self, manual_store: Store, clock: ManualClock) -> None:
        """Jobs that were promoted, released, retried, revived or reaped never run concurrently."""
        store = manual_store
        await put(store, *some_jobs(3, concurrency_key="k", delay=seconds(5)), *some_jobs(2, concurrency_key="k"))
        claims = await claims_on(store, lease=seconds(36_000))
        await clock.advance(seconds(5))
        await promote_due(store)
        outcomes: list[Outcome] = [
            Interrupted(),
            Failed(Failure("E", "no"), retry_in=seconds(1)),
            Failed(Failure("E", "no"), retryable=False),
            CancelledByHandler("no"),
            Snoozed(seconds(1)),
        ]
        done = 0
        for step in range(60):
            claims.on_ready([])
            jobs = await claims.claim(10)
            assert len(jobs) <= 1
            assert (await used(store, KEY))[0] <= 1
            if not jobs:
                await clock.advance(seconds(2))
                await promote_due(store)
                ended = [job.id for job in await store.read(lambda tx: tx.find(JobFilter(finished=True), _PAGE))]
                if not await actions.retry(store, ended) and not await store.read(lambda tx: tx.counts(JobFilter())):
                    break
                continue
            done += 1
            await report(store, jobs[0], outcomes[step % 5] if step < 20 else DONE)
        assert done > 20
        assert await store.read(lambda tx: tx.counts(JobFilter())) == []

    async def test_an_unused_key_slot_passes_to_the_next_job(self, store: Store) -> None:
        """If its queue is paused or has no worker, jobs of other queues with the same key run."""
        stuck, alike, other = (a_job(queue, concurrency_key="k") for queue in ("paused", "paused", "mail"))
        await put(store, stuck, alike, other)
        claims = await claims_on(store)
        assert await ids(claims) == []
        now = 0.0
        rotation = KeySlotRotation(store, monotonic=lambda: now)
        await rotation.round()
        now = UNCLAIMED_SLOT_TIMEOUT_S
        await rotation.round()
        claims.on_ready([])

        assert await ids(claims) == [other.id]
        await report(store, (await store.read(lambda tx: tx.get([other.id])))[0], DONE)
        assert len(await ids(await claims_on(store, "paused"))) == 1

    async def test_unused_key_rows_are_pruned(self, store: Store) -> None:
        await put(store, a_job(concurrency_key="k"))
        claims = await claims_on(store)
        (job,) = await claims.claim(1)
        assert await store.run(lambda tx: tx.prune_limits(10)) == 0
        await report(store, job, DONE)
        await store.run(lambda tx: tx.prune_limits(10))

        assert await store.run(lambda tx: tx.prune_limits(10)) == 0

    async def test_a_key_runs_one_job_at_a_time_under_concurrent_submissions_and_claims(self, store: Store) -> None:
        """Concurrent submissions, claims and reports of one key."""
        running: Counter[str] = Counter()
        submitting = 4

        async def submit(n: int) -> None:
            nonlocal submitting
            for _ in range(6):
                await put(store, a_job(concurrency_key=f"k{n % 2}"))
            submitting -= 1

        async def work() -> None:
            claims = await claims_on(store)
            while submitting or await store.read(lambda tx: tx.counts(JobFilter())):
                claims.on_ready([])
                jobs = await claims.claim(5)
                for job in jobs:
                    assert job.concurrency_key is not None
                    running[job.concurrency_key] += 1
                    assert running[job.concurrency_key] == 1
                await asyncio.sleep(0.002)  # the run time of jobs, during which other workers claim
                for job in jobs:
                    running[str(job.concurrency_key)] -= 1
                    await report(store, job, DONE)

        await asyncio.gather(*[submit(n) for n in range(submitting)], *[work() for _ in range(3)])
        assert await store.read(lambda tx: tx.counts(JobFilter())) == []


class TestPauses:
    async def test_the_pause_of_a_type_or_tenant_affects_only_its_jobs(self, store: Store) -> None:
        limits = LimitService(store)
        jobs: list[NewJob] = [
            a_job(),
            a_job(type="render"),
            a_job(tenant="other"),
            a_job(tenant="other", type="render"),
        ]
        await put(store, *jobs)
        await limits.pause(Pause(PauseKind.TYPE, "render", "broken", changed_by="key:ops"))
        await limits.pause(Pause(PauseKind.TENANT, "other", "unpaid"))
        everything = await claims_on(store)
        assert await ids(everything) == [jobs[0].id]
        _, pauses = await limits.pauses()
        assert [(pause.kind, pause.name, pause.reason, pause.changed_by) for pause in pauses] == [
            (PauseKind.TYPE, "render", "broken", "key:ops"),
            (PauseKind.TENANT, "other", "unpaid", ""),
        ]

        assert await limits.end_pause(PauseKind.TENANT, "other")
        assert not await limits.end_pause(PauseKind.TENANT, "other")
        choosy = Claims(store, await enter(store), ["mail"], ["render", "send"])
        assert await ids(choosy) == [jobs[2].id]
        await limits.end_pause(PauseKind.TYPE, "render")
        assert {job_id for _ in range(2) for job_id in await ids(everything)} == {jobs[1].id, jobs[3].id}

    async def test_a_pause_with_an_end_expires(self, manual_store: Store, clock: ManualClock) -> None:
        await put(manual_store, job := a_job())
        until = Instant(clock.now + seconds(60))
        await LimitService(manual_store).pause(Pause(PauseKind.TYPE, "send", until=until))
        claims = await claims_on(manual_store)
        assert await ids(claims) == []
        await clock.advance(seconds(60))

        assert await ids(claims) == [job.id]
        assert (await LimitService(manual_store).pauses())[1] == []


async def test_a_claim_uses_the_current_tenant_weights(store: Store) -> None:
    """S14: a tenant of weight 3 starts three times as many."""
    await put(store, *some_jobs(80), *some_jobs(80, tenant="heavy"))
    claims = await claims_on(store)
    await store.run(lambda tx: tx.add_tenant("heavy", Quotas(weight=3)))
    served = Counter([job.tenant for _ in range(4) for job in await claims.claim(20)])
    assert served == {"heavy": 60, "acme": 20}

    await store.run(lambda tx: tx.change_tenant("heavy", {"weight": None}))
    served = Counter([job.tenant for _ in range(2) for job in await claims.claim(20)])
    assert abs(served["heavy"] - served["acme"]) <= 2


async def test_the_facts_of_a_job_include_its_limits(store: Store) -> None:
    limits = LimitService(store)
    await limit(store, MAIL, 1, Rate(5, seconds(60), 5))
    await put(store, *some_jobs(2, concurrency_key="k"))
    claims = await claims_on(store)
    (job,) = await claims.claim(1)
    (waiting,) = [stored for stored in await store.read(lambda tx: tx.find(JobFilter(), _PAGE)) if stored.id != job.id]

    facts = await store.read(lambda tx: read_facts(tx, waiting.id, None))
    assert [(fact.used, fact.room, fact.max_running) for fact in facts.limits] == [(1, 0, 1), (1, 0, 1)]
    assert [list(fact.holders) for fact in facts.limits] == [[str(job.id)], [str(job.id)]]
    _, all_set = await limits.all()
    assert [(limit.of, limit.max_running, limit.rate) for limit in all_set] == [(MAIL, 1, Rate(5, seconds(60), 5))]
