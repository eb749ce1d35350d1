"""Tenant quotas on every database."""

import asyncio

import pytest

from holdfast.engine.engine import Engine, EngineRules
from holdfast.errors import BacklogFull, InvalidBatch, OverLimit, RateLimited, Unavailable
from holdfast.model.access import Quotas
from holdfast.model.job import JobFilter, JobSpec, Page
from holdfast.model.lane import Lane, Share
from holdfast.model.time import seconds
from holdfast.policy.quotas import TenantQuota
from tests.support.builders import a_job, a_worker, put, report, roll_back, some_jobs
from tests.support.clock import START
from tests.support.interleave import CountingStore, FaultyStore, before

MINUTE = seconds(60)


def mail(number=0, **options):
    return JobSpec(type="send", payload={"to": number}, tenant="acme", **options)


async def everything(store):
    return await store.read(lambda tx: tx.find(JobFilter(), Page(10_000)))


async def set_quota(store, tenant="acme", **quotas):
    await store.run(lambda tx: tx.add_tenant(tenant, Quotas(**quotas)))


async def open_engine(store, **quota):
    """Open an engine with this default quota; it has read the set of limited tenants."""
    return await Engine.open(store, EngineRules(quota=TenantQuota(**quota)))


async def submit_all(engine, *specs):
    return await asyncio.gather(*(engine.jobs.submit(spec) for spec in specs), return_exceptions=True)


class TestUsage:
    async def test_a_new_tenant_has_no_usage(self, manual_store):
        async def work(tx):
            first = await tx.lock_usage("acme")
            await tx.begin_usage("acme")
            await tx.begin_usage("acme")
            return first, await tx.lock_usage("acme")

        assert await manual_store.run(work) == ((None, None, START), (b"", None, START))

    async def test_saved_usage_is_read_with_the_quotas_and_the_time(self, manual_store, clock):
        quotas = Quotas(rate=5, rate_window=MINUTE, backlog=0, queue_backlog=10**12)
        await set_quota(manual_store, **quotas._asdict())

        async def work(tx):
            await tx.begin_usage("acme")
            await tx.save_usage("acme", bytes(range(256)))

        await manual_store.run(work)
        await clock.advance(seconds(3))
        assert await manual_store.run(lambda tx: tx.lock_usage("acme")) == (bytes(range(256)), quotas, clock.now)

    async def test_usage_that_is_rolled_back_is_not_saved(self, manual_store):
        await manual_store.run(lambda tx: tx.begin_usage("acme"))
        await roll_back(manual_store, lambda tx: tx.save_usage("acme", b"x"))
        assert (await manual_store.run(lambda tx: tx.lock_usage("acme"))).state == b""

    async def test_a_second_transaction_waits_and_reads_the_usage_saved_by_the_first(self, store, interleaving):
        """S15: it reads the time after it has the lock."""
        await store.run(lambda tx: tx.begin_usage("acme"))

        async def save(tx, first):
            await tx.save_usage("acme", b"first")
            return await tx.now()

        both = await interleaving.run(
            store, lambda tx: tx.lock_usage("acme"), lambda: store.run(lambda tx: tx.lock_usage("acme")), save
        )
        if interleaving.possible:
            assert both.meanwhile.state == b"first"
            assert both.meanwhile.now >= both.parked

    async def test_tenants_do_not_wait_for_each_other(self, store, interleaving):
        async def both(tx):
            await tx.begin_usage("acme")
            await tx.lock_usage("acme")

        async def other():
            async def work(tx):
                await tx.begin_usage("blue")
                return await tx.lock_usage("blue")

            return (await store.run(work)).state

        async def nothing(_tx, _seen):
            return None

        assert (await interleaving.run(store, both, other, nothing)).meanwhile == b""

    async def test_the_store_lists_the_tenants_with_quotas(self, manual_store):
        assert await manual_store.single(lambda tx: tx.limited_tenants(10)) == []
        for name, quotas in {
            "rate": {"rate": 1}, "backlog": {"backlog": 0}, "queue": {"queue_backlog": 1},
            "weight": {"weight": 5}, "window": {"rate_window": 5}, "none": {},
        }.items():  # fmt: skip
            await set_quota(manual_store, name, **quotas)
        assert sorted(await manual_store.single(lambda tx: tx.limited_tenants(10))) == ["backlog", "queue", "rate"]
        assert len(await manual_store.single(lambda tx: tx.limited_tenants(2))) == 2


class TestCounting:
    async def test_only_unfinished_jobs_count_in_any_state(self, manual_store):
        store = manual_store
        worker = a_worker()
        await store.run(lambda tx: tx.register(worker, seconds(60)))
        await put(store, *some_jobs(9, queue="a"))
        lane = Share(Lane("a", "acme", 0), 5, 0)
        held = await store.run(lambda tx: tx.claim(worker.id, [lane], 5, None))
        await report(store, held[:2])
        await put(store, *some_jobs(2, queue="b"), *some_jobs(3, queue="b", delay=seconds(60)))
        await put(store, *some_jobs(4, queue="a", tenant="blue"), a_job(queue="a", priority=7))

        # a: 4 ready + 3 running + 1 of another priority; b: 2 ready + 3 scheduled
        assert await store.run(lambda tx: tx.tenant_backlog("acme", 100)) == 13
        assert await store.run(lambda tx: tx.queue_backlogs("acme", ["a", "b", "c"], 100)) == {"a": 8, "b": 5, "c": 0}
        assert await store.run(lambda tx: tx.tenant_backlog("blue", 100)) == 4
        assert await store.run(lambda tx: tx.tenant_backlog("unknown", 100)) == 0

    async def test_counting_stops_at_the_requested_maximum(self, manual_store):
        await put(manual_store, *some_jobs(30), *some_jobs(30, delay=seconds(60)))
        assert await manual_store.run(lambda tx: tx.tenant_backlog("acme", 11)) >= 11
        assert (await manual_store.run(lambda tx: tx.queue_backlogs("acme", ["mail"], 11)))["mail"] >= 11

    async def test_thousands_of_queues_are_counted_at_once(self, manual_store):
        queues = [f"q{number}" for number in range(2_000)]
        await put(manual_store, *[a_job(queue=queue) for queue in queues[::2]])
        counts = await manual_store.run(lambda tx: tx.queue_backlogs("acme", queues, 5))
        assert [counts[queue] for queue in queues] == [1, 0] * 1_000


class TestRateQuota:
    async def test_concurrent_submissions_are_accepted_until_the_quota_is_used_up(self, manual_store):
        """S15, T20"""
        await set_quota(manual_store, rate=10, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        results = await submit_all(engine, *[mail(number) for number in range(25)])
        assert [type(result) for result in results[10:]] == [RateLimited] * 15
        assert {result.id for result in results[:10]} == {job.id for job in await everything(manual_store)}

    async def test_a_caller_that_waits_as_advised_is_accepted(self, manual_store, clock):
        """S15"""
        await set_quota(manual_store, rate=3, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        await engine.jobs.submit(mail(cost=2))
        await clock.advance(seconds(30))
        await engine.jobs.submit(mail())
        with pytest.raises(RateLimited) as rejected:
            await engine.jobs.submit(mail(cost=2))
        assert 30 < rejected.value.retry_after <= 31
        await clock.advance(seconds(rejected.value.retry_after))
        await engine.jobs.submit(mail(cost=2))
        assert len(await everything(manual_store)) == 3

    async def test_a_batch_costs_the_sum_of_its_jobs_and_is_accepted_as_a_whole(self, manual_store):
        """T20, F06"""
        await set_quota(manual_store, rate=10, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        await engine.jobs.submit_many([mail(cost=3), mail(), mail()])
        with pytest.raises(RateLimited):
            await engine.jobs.submit_many([mail()] * 6)
        await engine.jobs.submit_many([mail()] * 5)
        assert len(await everything(manual_store)) == 8

    async def test_a_submission_that_can_never_fit_is_rejected_as_such(self, manual_store):
        """S15"""
        await set_quota(manual_store, rate=10, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        with pytest.raises(OverLimit, match="never"):
            await engine.jobs.submit(mail(cost=11))
        with pytest.raises(OverLimit, match="never"):
            await engine.jobs.submit_many([mail()] * 11)
        assert await everything(manual_store) == []
        await engine.jobs.submit(mail(cost=10))

    async def test_a_rejected_submission_leaves_no_rows_behind(self, manual_store, clock):
        """T40: neither a job nor its keys; the same submission works later."""
        await set_quota(manual_store, rate=1, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        await engine.jobs.submit(mail())
        for submit in (
            lambda: engine.jobs.submit(mail(1, idempotency_key="order-1")),
            lambda: engine.jobs.submit_many([mail(1, idempotency_key="order-1")]),
        ):
            with pytest.raises(RateLimited):
                await submit()
        await clock.advance(seconds(61))
        receipt = await engine.jobs.submit(mail(1, idempotency_key="order-1"))
        assert not receipt.replayed
        assert len(await everything(manual_store)) == 2

    async def test_a_replayed_submission_costs_too(self, manual_store):
        await set_quota(manual_store, rate=3, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        assert [(await engine.jobs.submit(mail(idempotency_key="order-1"))).replayed for _ in range(3)] == [
            False,
            True,
            True,
        ]
        with pytest.raises(RateLimited):
            await engine.jobs.submit(mail(idempotency_key="order-1"))

    async def test_a_batch_rejected_for_another_reason_costs_nothing(self, manual_store):
        """F06"""
        await set_quota(manual_store, rate=4, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        await engine.jobs.submit(mail(idempotency_key="order-1"))
        with pytest.raises(InvalidBatch):
            await engine.jobs.submit_many([mail(), mail(1, idempotency_key="order-1")])
        await engine.jobs.submit_many([mail()] * 3)

    async def test_other_tenants_are_not_delayed(self, manual_store):
        """S23, T20"""
        await set_quota(manual_store, rate=1, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        results = await submit_all(engine, mail(), mail(), JobSpec(type="send", tenant="blue"), JobSpec(type="send"))
        assert [isinstance(result, RateLimited) for result in results] == [False, True, False, False]

    async def test_a_batch_of_several_tenants_respects_the_quota_of_each(self, manual_store):
        await set_quota(manual_store, rate=2, rate_window=MINUTE)
        await set_quota(manual_store, "blue", rate=2, rate_window=MINUTE)
        engine = await open_engine(manual_store)
        blue = JobSpec(type="send", tenant="blue")
        await engine.jobs.submit_many([mail(), blue, blue, JobSpec(type="send")])
        with pytest.raises(RateLimited):
            await engine.jobs.submit_many([mail(), blue])
        await engine.jobs.submit(mail())
        assert len(await everything(manual_store)) == 5

    async def test_a_new_quota_applies_to_the_next_submission_once_the_node_has_read_it(self, manual_store):
        engine = await open_engine(manual_store)
        now = 0.0
        engine.submitter.limited.monotonic = lambda: now
        await engine.submitter.limited.refresh()
        await set_quota(manual_store, rate=1, rate_window=MINUTE)
        await engine.jobs.submit_many([mail()] * 5)
        now = 2.0
        await engine.jobs.submit(mail())
        with pytest.raises(RateLimited):
            await engine.jobs.submit(mail())
        await manual_store.run(lambda tx: tx.change_tenant("acme", {"rate": 5}))
        await engine.jobs.submit_many([mail()] * 4)
        await manual_store.run(lambda tx: tx.change_tenant("acme", {"rate": None}))
        await engine.jobs.submit_many([mail()] * 50)

    async def test_tenants_have_the_default_quota_unless_they_have_their_own(self, manual_store):
        await set_quota(manual_store, "blue", rate=3)
        engine = await open_engine(manual_store, rate=1, window=seconds(10))
        blue = JobSpec(type="send", tenant="blue")
        results = await submit_all(engine, mail(), mail(), blue, blue, blue, blue)
        assert [isinstance(result, RateLimited) for result in results] == [False, True, False, False, False, True]
        assert results[1].retry_after <= 11

    async def test_no_job_is_accepted_while_the_limited_tenants_are_unknown(self, manual_store):
        """S15: an unavailable database never means that jobs are accepted."""
        around = FaultyStore(manual_store)
        engine = await open_engine(around)
        now = 0.0
        engine.submitter.limited.monotonic = lambda: now
        await engine.submitter.limited.refresh()
        around.faults = [before(Unavailable)] * 2
        now = 2.0
        with pytest.raises(Unavailable):
            await engine.jobs.submit(mail())
        with pytest.raises(Unavailable):
            await engine.jobs.submit_many([mail()])
        await engine.jobs.submit(mail())
        assert len(await everything(manual_store)) == 1

    async def test_a_tenant_without_quota_runs_no_extra_statements(self, manual_store):
        """Each submission is one transaction, as if there were no quotas."""
        await set_quota(manual_store, "blue", rate=1)
        around = CountingStore(manual_store)
        engine = await open_engine(around)
        now = 0.0
        engine.submitter.limited.monotonic = lambda: now
        await engine.submitter.limited.refresh()
        around.transactions = 0
        for number in range(10):
            await engine.jobs.submit(mail(number))
        assert around.transactions == 10
        assert (await manual_store.run(lambda tx: tx.lock_usage("acme"))).state is None


class TestBacklogQuota:
    async def test_fifty_concurrent_submissions_fill_the_backlog_exactly(self, store):
        """T20, T40: the submissions use five nodes."""
        await set_quota(store, backlog=20, queue_backlog=15)
        engines = [await open_engine(store) for _ in range(5)]
        submissions = [
            engines[number % 5].jobs.submit(mail(number, queue="ab"[number % 2]))
            if number % 3
            else engines[number % 5].jobs.submit_many([mail(number)])
            for number in range(50)
        ]
        results = await asyncio.gather(*submissions, return_exceptions=True)
        stored = await everything(store)
        assert len(stored) == sum(not isinstance(result, Exception) for result in results) == 20
        assert {type(result) for result in results if isinstance(result, Exception)} == {BacklogFull}

    async def test_a_full_queue_does_not_affect_other_queues(self, manual_store):
        await set_quota(manual_store, queue_backlog=2)
        engine = await open_engine(manual_store)
        results = await submit_all(engine, *[mail(queue=queue) for queue in "aaabbc"])
        assert [isinstance(result, BacklogFull) for result in results] == [False, False, True, False, False, False]

    async def test_a_caller_that_waits_as_advised_is_accepted_if_there_is_room(self, manual_store, clock):
        await set_quota(manual_store, backlog=3)
        engine = await open_engine(manual_store)
        receipts = await engine.jobs.submit_many([mail()] * 3)
        delays = []
        for _ in range(4):
            with pytest.raises(BacklogFull) as caught:
                await engine.jobs.submit(mail())
            delays.append(caught.value.retry_after)
            await clock.advance(seconds(delays[-1]))
        assert delays == sorted(delays)
        await engine.jobs.cancel([receipts[0].id], reason="not wanted")
        await engine.jobs.submit(mail())
        assert await manual_store.run(lambda tx: tx.tenant_backlog("acme", 10)) == 3

    async def test_waiting_running_and_scheduled_jobs_all_count(self, manual_store):
        await set_quota(manual_store, backlog=3)
        engine = await open_engine(manual_store)
        worker = a_worker()
        await engine.workers.register(worker, seconds(60))
        await engine.jobs.submit(mail(queue="a"))
        await engine.jobs.submit(mail(delay=seconds(60)))
        share = Share(Lane("a", "acme", 0), 5, 0)
        (held,) = await manual_store.run(lambda tx: tx.claim(worker.id, [share], 5, None))
        await engine.jobs.submit(mail())
        with pytest.raises(BacklogFull):
            await engine.jobs.submit(mail())
        await report(manual_store, held)

    async def test_a_replayed_submission_takes_no_room(self, manual_store):
        await set_quota(manual_store, backlog=3)
        engine = await open_engine(manual_store)
        for _ in range(10):
            await engine.jobs.submit(mail(idempotency_key="order-1"))
        await engine.jobs.submit_many([mail()] * 2)
        assert await manual_store.run(lambda tx: tx.tenant_backlog("acme", 10)) == 3

    async def test_a_full_backlog_is_counted_rarely_under_load(self, manual_store, clock, monkeypatch):
        """T20: a rejected batch commits nothing but its counts."""
        await set_quota(manual_store, backlog=3)
        engine = await open_engine(manual_store)
        await engine.jobs.submit_many([mail()] * 3)
        counts = 0
        counting = type(await manual_store.run(_itself)).tenant_backlog

        async def counted(tx, tenant, most):
            nonlocal counts
            counts += 1
            return await counting(tx, tenant, most)

        monkeypatch.setattr(type(await manual_store.run(_itself)), "tenant_backlog", counted)
        for _ in range(100):
            with pytest.raises(BacklogFull):
                await engine.jobs.submit(mail())
            with pytest.raises(BacklogFull):
                await engine.jobs.submit_many([mail()])
            await clock.advance(seconds(0.02))
        assert 1 <= counts <= 12

    async def test_a_batch_that_can_never_fit_is_rejected_as_such(self, manual_store):
        await set_quota(manual_store, backlog=5, queue_backlog=3)
        engine = await open_engine(manual_store)
        for batch in ([mail()] * 4, [mail(queue=queue) for queue in "aabbcc"]):
            with pytest.raises(OverLimit, match="never"):
                await engine.jobs.submit_many(batch)
        await engine.jobs.submit_many([mail(queue=queue) for queue in "aabbc"])


async def _itself(tx):
    await tx.now()
    return tx
