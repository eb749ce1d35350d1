"""Idempotency and unique keys: one job per key under concurrency."""

import asyncio
from unittest.mock import ANY

import pytest

from holdfast.engine.submitting.insert import InsertRules, insert_batch, insert_each
from holdfast.engine.submitting.unique import insert_replacing
from holdfast.errors import DuplicateJob, InvalidBatch
from holdfast.model.job import JobFilter, Page, Unique
from holdfast.model.state import Status
from holdfast.model.time import Duration, days, seconds
from holdfast.store.port.store import Retention
from holdfast.store.sql.tx import KeyRequest
from tests.support.builders import (
    RolledBack,
    a_job,
    a_transition,
    enter,
    error,
    move,
    put,
    read,
    report,
    roll_back,
    take,
)

FOREVER = Retention(history=days(10_000), dead=days(10_000))


async def everything(store):
    return await store.read(lambda tx: tx.find(JobFilter(), Page(limit=1_000)))


async def finish(store, job, to=Status.SUCCEEDED):
    """End a job regardless of its retry rule."""
    (held,) = await take(store, await enter(store, lease=days(9_000)))
    assert held.id == job.id
    assert await move(store, a_transition(held, to)) == {job.id}


async def test_an_idempotency_key_creates_one_job(store):
    """S10"""
    job = a_job(idempotency_key="order-1", fingerprint=b"body")
    (first,) = await put(store, job)
    (again,) = await put(store, a_job(idempotency_key="order-1", fingerprint=b"body"))
    assert (first.id, first.repeats) == (job.id, None)
    assert (again.id, again.repeats, again.same_body) == (job.id, "idempotency_key", True)
    assert [stored.id for stored in await everything(store)] == [job.id]


async def test_a_key_belongs_to_its_tenant(store):
    """S10, S23: never across tenants."""
    results = [
        (await put(store, a_job(tenant=tenant, idempotency_key="order-1")))[0]
        for tenant in ("acme", "umbrella", "Acme")
    ]
    assert [result.repeats for result in results] == [None] * 3
    assert len(await everything(store)) == 3


async def test_keys_that_differ_in_case_or_spaces_are_different(store):
    keys = ["k", "K", "k ", " k", "k%", "k_"]
    for key in keys:
        assert (await put(store, a_job(idempotency_key=key)))[0].repeats is None, key
    assert len(await everything(store)) == len(keys)


async def test_a_key_with_another_body_is_recognised(store):
    """S10"""
    job = a_job(idempotency_key="order-1", fingerprint=b"one")
    await put(store, job)
    (again,) = await put(store, a_job(idempotency_key="order-1", fingerprint=b"two"))
    assert (again.id, again.repeats, again.same_body) == (job.id, "idempotency_key", False)
    assert len(await everything(store)) == 1


@pytest.mark.parametrize("end", [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED])
async def test_a_key_still_finds_its_job_after_it_finished(manual_store, clock, end):
    """S10"""
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=days(7))
    await finish(manual_store, job, end)
    await clock.advance(Duration(days(7) - 1))
    (again,) = await put(manual_store, a_job(idempotency_key="order-1"))
    assert (again.id, again.repeats) == (job.id, "idempotency_key")


@pytest.mark.parametrize("end", [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED])
async def test_a_key_is_free_after_its_retention(manual_store, clock, end):
    """S10: retention is measured by the clock of the database."""
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=days(7))
    await finish(manual_store, job, end)
    await clock.advance(days(7))
    fresh = a_job(idempotency_key="order-1")
    (result,) = await put(manual_store, fresh, key_retention=days(7))
    assert (result.id, result.repeats) == (fresh.id, None)
    (again,) = await put(manual_store, a_job(idempotency_key="order-1"), key_retention=days(7))
    assert (again.id, again.repeats) == (fresh.id, "idempotency_key")


async def test_a_key_is_never_free_while_its_job_is_unfinished(manual_store, clock):
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=days(7))
    await clock.advance(days(70))
    assert await manual_store.run(lambda tx: tx.prune(FOREVER, 1_000)) == 0
    assert (await put(manual_store, a_job(idempotency_key="order-1")))[0].id == job.id
    await finish(manual_store, job)
    fresh = a_job(idempotency_key="order-1")
    assert (await put(manual_store, fresh))[0].id == fresh.id


async def test_a_key_is_held_in_every_state_of_an_unfinished_job(manual_store, clock):
    """P10: a job that retries for a long time keeps its key."""
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=seconds(1))
    worker = await enter(manual_store, lease=days(1_000))
    for outcome in (error(), None):
        (held,) = await take(manual_store, worker)
        await clock.advance(days(1))
        assert (await put(manual_store, a_job(idempotency_key="order-1")))[0].id == job.id  # running
        await report(manual_store, held, outcome)
        if outcome is not None:
            assert (await put(manual_store, a_job(idempotency_key="order-1")))[0].id == job.id  # retrying
            await clock.advance(days(1))
            await manual_store.run(lambda tx: tx.promote(10))
    assert (await put(manual_store, a_job(idempotency_key="order-1")))[0].repeats is None


async def test_a_pruned_key_is_free(manual_store, clock):
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=days(7))
    await finish(manual_store, job)
    await clock.advance(Duration(days(7) + 1))
    assert await manual_store.run(lambda tx: tx.prune(FOREVER, 1_000)) == 1
    fresh = a_job(idempotency_key="order-1")
    (result,) = await put(manual_store, fresh)
    assert (result.id, result.repeats) == (fresh.id, None)
    assert (await read(manual_store, job)).status is Status.SUCCEEDED


async def test_a_key_taken_in_a_transaction_that_is_rolled_back_is_free(store):
    """P28"""
    await roll_back(
        store, lambda tx: tx.insert([a_job(idempotency_key="k", unique=Unique("u"))], key_retention=days(1))
    )
    fresh = a_job(idempotency_key="k", unique=Unique("u"))
    assert (await put(store, fresh))[0].id == fresh.id


async def test_concurrent_inserts_with_one_key_create_one_job_although_half_roll_back(store):
    """P28, S2: a key never belongs to a job that does not exist."""

    async def submit(number):
        job = a_job(idempotency_key="order-1", fingerprint=b"body")

        async def work(tx):
            (inserted,) = await tx.insert([job], key_retention=days(1))
            if number % 2:
                raise RolledBack
            return inserted

        try:
            return await store.run(work)
        except RolledBack:
            return None

    results = [result for result in await asyncio.gather(*(submit(number) for number in range(100))) if result]
    (job,) = await everything(store)
    assert len(results) == 50
    assert {result.id for result in results} == {job.id}
    assert sum(result.repeats is None for result in results) == 1
    assert all(result.same_body for result in results)


async def test_batches_with_the_same_keys_in_opposite_orders_do_not_deadlock(store):
    """F22"""
    keys = [f"key-{number}" for number in range(20)]

    async def submit(order):
        return await put(store, *(a_job(idempotency_key=key) for key in order))

    orders = [keys, keys[::-1]] * 8
    results = await asyncio.gather(*(submit(order) for order in orders))
    owners = [
        {key: result.id for key, result in zip(order, batch, strict=True)}
        for order, batch in zip(orders, results, strict=True)
    ]
    assert all(owner == owners[0] for owner in owners)
    assert {job.id for job in await everything(store)} == set(owners[0].values())


async def test_a_batch_distinguishes_new_jobs_from_duplicates_in_its_order(store):
    old = a_job(idempotency_key="old", fingerprint=b"1")
    await put(store, old)
    batch = [a_job(), a_job(idempotency_key="old", fingerprint=b"1"), a_job(idempotency_key="new")]
    results = await put(store, *batch)
    assert [result.id for result in results] == [batch[0].id, old.id, batch[2].id]
    assert [result.repeats for result in results] == [None, "idempotency_key", None]
    assert len(await everything(store)) == 3


async def test_a_unique_job_exists_once_while_it_is_unfinished(manual_store, clock):
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)
    await clock.advance(days(30))
    (again,) = await put(manual_store, a_job(unique=Unique("nightly")))
    assert (again.id, again.repeats) == (job.id, "unique")
    assert len(await everything(manual_store)) == 1


async def test_a_unique_job_may_be_submitted_again_after_the_earlier_one_finished(manual_store):
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)
    await finish(manual_store, job)
    fresh = a_job(unique=Unique("nightly"))
    assert (await put(manual_store, fresh))[0].id == fresh.id
    (again,) = await put(manual_store, a_job(unique=Unique("nightly")))
    assert (again.id, again.repeats) == (fresh.id, "unique")


async def test_a_unique_job_stays_unique_within_its_window_even_after_it_finished(manual_store, clock):
    job = a_job(unique=Unique("nightly", within=days(1)))
    await put(manual_store, job)
    await finish(manual_store, job)
    await clock.advance(Duration(days(1) - 1))
    assert (await put(manual_store, a_job(unique=Unique("nightly", within=days(1)))))[0].id == job.id
    await clock.advance(Duration(1))
    fresh = a_job(unique=Unique("nightly", within=days(1)))
    assert (await put(manual_store, fresh))[0].id == fresh.id


async def test_unique_keys_belong_to_their_tenants_and_are_not_idempotency_keys(store):
    jobs = [a_job(unique=Unique("k")), a_job(unique=Unique("k"), tenant="umbrella"), a_job(idempotency_key="k")]
    assert [(await put(store, job))[0].repeats for job in jobs] == [None] * 3


async def test_concurrent_inserts_of_a_unique_job_create_one_job(store):
    results = await asyncio.gather(*(put(store, a_job(unique=Unique("nightly"))) for _ in range(50)))
    (job,) = await everything(store)
    assert {result.id for (result,) in results} == {job.id}


async def test_the_idempotency_key_of_a_duplicate_points_to_the_unique_job(manual_store, clock):
    """S10: a replayed submission gets the same result, even after that job has finished."""
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)

    def duplicate():
        return a_job(idempotency_key="order-1", fingerprint=b"body", unique=Unique("nightly"))

    (first,) = await put(manual_store, duplicate(), key_retention=days(7))
    assert (first.id, first.repeats) == (job.id, "unique")
    (again,) = await put(manual_store, duplicate(), key_retention=days(7))
    assert (again.id, again.repeats, again.same_body) == (job.id, "idempotency_key", True)
    await finish(manual_store, job)
    await clock.advance(Duration(days(7) - 1))
    (later,) = await put(manual_store, duplicate(), key_retention=days(7))
    assert (later.id, later.repeats) == (job.id, "idempotency_key")
    assert len(await everything(manual_store)) == 1


async def test_a_job_with_both_keys_is_found_by_either(store):
    job = a_job(idempotency_key="order-1", unique=Unique("nightly"))
    await put(store, job)
    by_key, by_unique = await put(store, a_job(idempotency_key="order-1"), a_job(unique=Unique("nightly")))
    assert (by_key.id, by_key.repeats) == (job.id, "idempotency_key")
    assert (by_unique.id, by_unique.repeats) == (job.id, "unique")


def replacing(payload=b"{}", **changes):
    return a_job(payload=payload, **({"unique": Unique("nightly", on_conflict="replace")} | changes))


async def submit(store, *jobs):
    return await insert_each(store, jobs, InsertRules(days(7)))


async def test_a_job_that_replaces_a_waiting_one_cancels_it_and_takes_its_key(manual_store):
    for number, earlier in enumerate((replacing(), replacing(delay=seconds(60)), replacing(delay=seconds(60)))):
        (first,) = await submit(manual_store, earlier)
        assert (first.id, first.replayed) == (earlier.id, False), number
    waiting, retrying = (await everything(manual_store))[:2]
    assert (waiting.id, waiting.status) == (earlier.id, Status.SCHEDULED)
    assert (retrying.status, retrying.reason) == (Status.CANCELLED, f"replaced by job {earlier.id}")
    last = replacing(b'{"now":1}')
    assert (await submit(manual_store, last))[0].id == last.id
    (held,) = await take(manual_store, await enter(manual_store))
    assert (held.id, held.payload) == (last.id, last.payload)
    assert sorted(job.status for job in await everything(manual_store)) == [Status.CANCELLED] * 3 + [Status.RUNNING]


async def test_a_running_job_is_not_replaced_but_a_retrying_one_is(manual_store):
    job = replacing()
    await put(manual_store, job)
    (held,) = await take(manual_store, await enter(manual_store))
    (rejected,) = await submit(manual_store, replacing(idempotency_key="k"))
    assert isinstance(rejected, DuplicateJob)
    assert (rejected.job_id, "is running" in str(rejected)) == (str(job.id), True)
    assert await report(manual_store, held, error()) == {job.id}
    last = replacing(idempotency_key="k")  # the rejected submission did not take the key
    assert (await submit(manual_store, last))[0] == (last.id, ANY, False)
    assert (await read(manual_store, job)).reason == f"replaced by job {last.id}"
    assert (await submit(manual_store, replacing(idempotency_key="k")))[0] == (last.id, ANY, True)
    assert (await read(manual_store, last)).status is Status.READY


async def test_a_finished_job_is_not_replaced_within_its_window_but_a_deleted_one_is(manual_store):
    rule = Unique("nightly", days(1), "replace")
    job = replacing(unique=rule)
    await put(manual_store, job)
    await finish(manual_store, job)
    (rejected,) = await submit(manual_store, replacing(unique=rule))
    assert isinstance(rejected, DuplicateJob)
    assert "has ended (succeeded)" in str(rejected)
    await manual_store.run(lambda tx: remove(tx, job))
    fresh = replacing(unique=rule)
    assert (await submit(manual_store, fresh))[0].id == fresh.id
    assert [stored.id for stored in await everything(manual_store)] == [fresh.id]


async def remove(tx, job):
    return await tx.remove(await tx.get([job.id]))


async def test_a_batch_replaces_each_job_or_is_rejected_as_a_whole(store):
    """S5"""
    old = [a_job(unique=Unique(str(number))) for number in range(3)]
    await put(store, *old)
    new = [a_job(unique=Unique(str(number), on_conflict="replace")) for number in range(4)]
    receipts = await insert_batch(store, [*new, a_job()], InsertRules(days(7)))
    assert [receipt.id for receipt in receipts[:4]] == [job.id for job in new]
    assert {job.id for job in await everything(store) if job.status is Status.CANCELLED} == {job.id for job in old}
    (held,) = await take(store, await enter(store), limit=1)
    again = [a_job(unique=Unique(str(number), on_conflict="replace")) for number in range(4)]
    with pytest.raises(InvalidBatch) as rejected:
        await insert_batch(store, again, InsertRules(days(7)))
    assert [again[index].unique.key for index in rejected.value.faults] == [
        job.unique.key for job in new if job.id == held.id
    ]
    assert len(await everything(store)) == 8


async def test_concurrent_replacements_leave_one_job(store):
    jobs = [replacing() for _ in range(30)]
    await asyncio.gather(*(submit(store, job) for job in jobs))
    found = await everything(store)
    assert len(found) == 30
    assert [job.status for job in found if job.status is not Status.CANCELLED] == [Status.READY]
    by_id = {job.id: job for job in found}
    (left,) = [job for job in found if job.status is Status.READY]
    replaced = {job.id for job in found if job.reason == f"replaced by job {left.id}"}
    assert len(replaced) == 1  # each was replaced by the next one
    assert len({job.reason for job in by_id.values() if job.reason}) == 29


async def test_a_key_that_changes_owner_is_not_taken_by_a_waiting_transaction_too(manual_store, interleaving):
    """S10: a transaction that waited for the lock decides on the state after the wait."""
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)
    await finish(manual_store, job)
    first, second = a_job(unique=Unique("nightly")), a_job(unique=Unique("nightly"))

    async def begin(tx):
        await tx.lock_keys([KeyRequest("acme", 1, "nightly", first.id, b"", Duration(0))])

    async def end(tx, _seen):
        return await tx.insert([first], key_retention=days(1))

    both = await interleaving.run(manual_store, begin, lambda: put(manual_store, second), end)
    assert both.meanwhile[0].id == both.parked[0].id
    assert [stored.status for stored in await everything(manual_store)] == [Status.READY, Status.SUCCEEDED]


async def test_a_claim_and_a_replacement_never_both_get_the_job(store, interleaving):
    job = replacing()
    await put(store, job)
    worker, new = await enter(store), replacing()

    async def replace(tx):
        return await insert_replacing(tx, [new], key_retention=days(1))

    async def end(_tx, seen):
        return seen

    both = await interleaving.run(store, replace, lambda: take(store, worker), end)
    assert both.parked[0].id == new.id
    assert job.id not in [held.id for held in both.meanwhile]
    assert (await read(store, job)).status is Status.CANCELLED
