"""Keys: one job for each, whatever happens at the same time."""

import asyncio

import pytest

from holdfast.model.job import JobFilter, Page, Unique
from holdfast.model.state import Status
from holdfast.model.time import Duration, days, seconds
from holdfast.store.port import Retention
from tests.support.builders import (
    Undone,
    a_job,
    a_move,
    enter,
    error,
    move,
    put,
    read,
    report,
    take,
    undone,
)

FOREVER = Retention(history=days(10_000), dead=days(10_000))


async def everything(store):
    return await store.read(lambda tx: tx.find(JobFilter(), Page(limit=1_000)))


async def finish(store, job, to=Status.SUCCEEDED):
    """Bring a job to an end, past its rules."""
    (held,) = await take(store, await enter(store, lease=days(9_000)))
    assert held.id == job.id
    assert await move(store, a_move(held, to)) == {job.id}


async def test_a_key_is_one_job(store):
    """S10"""
    job = a_job(idempotency_key="order-1", fingerprint=b"body")
    (first,) = await put(store, job)
    (again,) = await put(store, a_job(idempotency_key="order-1", fingerprint=b"body"))
    assert (first.id, first.repeats) == (job.id, None)
    assert (again.id, again.repeats, again.same_body) == (job.id, "idempotency_key", True)
    assert [each.id for each in await everything(store)] == [job.id]


async def test_a_key_belongs_to_its_tenant_alone(store):
    """S10, S23: never across tenants."""
    answers = [
        (await put(store, a_job(tenant=tenant, idempotency_key="order-1")))[0]
        for tenant in ("acme", "umbrella", "Acme")
    ]
    assert [answer.repeats for answer in answers] == [None] * 3
    assert len(await everything(store)) == 3


async def test_keys_that_differ_in_case_or_blanks_are_different(store):
    keys = ["k", "K", "k ", " k", "k%", "k_"]
    for key in keys:
        assert (await put(store, a_job(idempotency_key=key)))[0].repeats is None, key
    assert len(await everything(store)) == len(keys)


async def test_the_same_key_with_another_body_is_told_apart(store):
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
async def test_a_key_is_free_when_its_term_is_over(manual_store, clock, end):
    """S10: the term runs by the database's clock."""
    job = a_job(idempotency_key="order-1")
    await put(manual_store, job, key_retention=days(7))
    await finish(manual_store, job, end)
    await clock.advance(days(7))
    fresh = a_job(idempotency_key="order-1")
    (answer,) = await put(manual_store, fresh, key_retention=days(7))
    assert (answer.id, answer.repeats) == (fresh.id, None)
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


async def test_a_key_holds_for_every_state_of_an_unfinished_job(manual_store, clock):
    """P10: a job that retries for long keeps its key."""
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
    (answer,) = await put(manual_store, fresh)
    assert (answer.id, answer.repeats) == (fresh.id, None)
    assert (await read(manual_store, job)).status is Status.SUCCEEDED


async def test_a_key_taken_in_a_transaction_that_is_rolled_back_is_free(store):
    """P28"""
    await undone(store, lambda tx: tx.insert([a_job(idempotency_key="k", unique=Unique("u"))], key_retention=days(1)))
    fresh = a_job(idempotency_key="k", unique=Unique("u"))
    assert (await put(store, fresh))[0].id == fresh.id


async def test_of_many_at_once_with_one_key_half_of_them_rolled_back_one_job_is_made(store):
    """P28, S2: a key never belongs to a job that does not exist."""

    async def submit(number):
        job = a_job(idempotency_key="order-1", fingerprint=b"body")

        async def work(tx):
            (inserted,) = await tx.insert([job], key_retention=days(1))
            if number % 2:
                raise Undone
            return inserted

        try:
            return await store.run(work)
        except Undone:
            return None

    answers = [answer for answer in await asyncio.gather(*(submit(number) for number in range(100))) if answer]
    (job,) = await everything(store)
    assert len(answers) == 50
    assert {answer.id for answer in answers} == {job.id}
    assert sum(answer.repeats is None for answer in answers) == 1
    assert all(answer.same_body for answer in answers)


async def test_batches_with_the_same_keys_in_opposite_orders_do_not_hinder_each_other(store):
    """F22"""
    keys = [f"key-{number}" for number in range(20)]

    async def submit(order):
        return await put(store, *(a_job(idempotency_key=key) for key in order))

    orders = [keys, keys[::-1]] * 8
    answers = await asyncio.gather(*(submit(order) for order in orders))
    owners = [
        {key: answer.id for key, answer in zip(order, batch, strict=True)}
        for order, batch in zip(orders, answers, strict=True)
    ]
    assert all(owner == owners[0] for owner in owners)
    assert {job.id for job in await everything(store)} == set(owners[0].values())


async def test_a_batch_tells_new_jobs_from_repeats_in_its_order(store):
    old = a_job(idempotency_key="old", fingerprint=b"1")
    await put(store, old)
    batch = [a_job(), a_job(idempotency_key="old", fingerprint=b"1"), a_job(idempotency_key="new")]
    answers = await put(store, *batch)
    assert [answer.id for answer in answers] == [batch[0].id, old.id, batch[2].id]
    assert [answer.repeats for answer in answers] == [None, "idempotency_key", None]
    assert len(await everything(store)) == 3


async def test_a_unique_job_exists_once_while_it_is_unfinished(manual_store, clock):
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)
    await clock.advance(days(30))
    (again,) = await put(manual_store, a_job(unique=Unique("nightly")))
    assert (again.id, again.repeats) == (job.id, "unique")
    assert len(await everything(manual_store)) == 1


async def test_a_unique_job_may_follow_when_the_earlier_one_finished(manual_store):
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)
    await finish(manual_store, job)
    fresh = a_job(unique=Unique("nightly"))
    assert (await put(manual_store, fresh))[0].id == fresh.id
    (again,) = await put(manual_store, a_job(unique=Unique("nightly")))
    assert (again.id, again.repeats) == (fresh.id, "unique")


async def test_a_unique_job_is_alone_within_its_window_also_after_it_finished(manual_store, clock):
    job = a_job(unique=Unique("nightly", within=days(1)))
    await put(manual_store, job)
    await finish(manual_store, job)
    await clock.advance(Duration(days(1) - 1))
    assert (await put(manual_store, a_job(unique=Unique("nightly", within=days(1)))))[0].id == job.id
    await clock.advance(Duration(1))
    fresh = a_job(unique=Unique("nightly", within=days(1)))
    assert (await put(manual_store, fresh))[0].id == fresh.id


async def test_unique_keys_belong_to_their_tenants_and_are_no_idempotency_keys(store):
    jobs = [a_job(unique=Unique("k")), a_job(unique=Unique("k"), tenant="umbrella"), a_job(idempotency_key="k")]
    assert [(await put(store, job))[0].repeats for job in jobs] == [None] * 3


async def test_of_many_unique_jobs_at_once_one_is_made(store):
    answers = await asyncio.gather(*(put(store, a_job(unique=Unique("nightly"))) for _ in range(50)))
    (job,) = await everything(store)
    assert {answer.id for (answer,) in answers} == {job.id}


async def test_the_key_of_a_job_that_repeats_a_unique_one_leads_to_that_one(manual_store, clock):
    """S10: whoever repeats the submission gets the same answer as the first time, also when that job is long done."""
    job = a_job(unique=Unique("nightly"))
    await put(manual_store, job)

    def asked():
        return a_job(idempotency_key="order-1", fingerprint=b"body", unique=Unique("nightly"))

    (first,) = await put(manual_store, asked(), key_retention=days(7))
    assert (first.id, first.repeats) == (job.id, "unique")
    (again,) = await put(manual_store, asked(), key_retention=days(7))
    assert (again.id, again.repeats, again.same_body) == (job.id, "idempotency_key", True)
    await finish(manual_store, job)
    await clock.advance(Duration(days(7) - 1))
    (later,) = await put(manual_store, asked(), key_retention=days(7))
    assert (later.id, later.repeats) == (job.id, "idempotency_key")
    assert len(await everything(manual_store)) == 1


async def test_a_job_with_both_keys_is_found_by_either(store):
    job = a_job(idempotency_key="order-1", unique=Unique("nightly"))
    await put(store, job)
    by_key, by_unique = await put(store, a_job(idempotency_key="order-1"), a_job(unique=Unique("nightly")))
    assert (by_key.id, by_key.repeats) == (job.id, "idempotency_key")
    assert (by_unique.id, by_unique.repeats) == (job.id, "unique")
