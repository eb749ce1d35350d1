"""Coordination between nodes gives the same results in Redis and in the database."""

import asyncio

import pytest

from holdfast.engine.changes.tail import Tail
from holdfast.errors import Conflict, DuplicateJob, IdempotencyMismatch, InvalidBatch, RateLimited
from holdfast.model.access import Quotas
from holdfast.model.job import JobFilter, JobSpec, Page, UniqueSpec
from holdfast.model.outcome import Succeeded
from holdfast.model.state import Status
from holdfast.model.time import seconds
from holdfast.model.worker import LeaseStatus
from tests.support.builders import a_worker
from tests.support.coordinated import forget, hits, is_up, node
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow  # waits for windows and leases; half of it needs Redis


@pytest.fixture(params=["in the database", "in Redis"])
async def nodes(request, database_url):
    """Return two nodes of one installation."""
    url = request.getfixturevalue("redis_server").url if request.param == "in Redis" else None
    async with node(database_url, url) as one, node(database_url, url) as other:
        one.used = other.used = url is not None
        if url is not None:
            await is_up(one)
            await is_up(other)
            forget(url, one)
        yield one, other


def mail(key=None, **asked):
    return JobSpec(**{"type": "send", "payload": {"to": 1}, "tenant": "acme", "idempotency_key": key} | asked)


async def there(engine):
    return await engine.jobs.find(JobFilter(), Page(100))


async def test_a_repeated_key_returns_the_same_job_on_every_node(nodes):
    one, other = nodes
    made = await one.jobs.submit(mail("k1"))
    for engine in (one, other, other):
        again = await engine.jobs.submit(mail("k1"))
        assert (again.id, again.replayed) == (made.id, True)
    repeat = (await other.jobs.submit_and_get(mail("k1"))).earlier
    assert (repeat.id, repeat.status) == (made.id, Status.READY)
    assert [job.id for job in await there(one)] == [made.id]


async def test_a_key_with_another_body_is_refused_and_with_another_tenant_creates_a_job(nodes):
    one, other = nodes
    made = await one.jobs.submit(mail("k1"))
    for engine in nodes:
        with pytest.raises(IdempotencyMismatch, match=str(made.id)) as refused:
            await engine.jobs.submit(mail("k1", payload={"to": 2}))
        assert refused.value.pointer == "/idempotency_key"
    assert not (await other.jobs.submit(mail("k1", tenant="umbrella"))).replayed
    assert len(await there(one)) == 2


async def test_a_repeated_batch_is_served_from_the_cache_completely_or_not_at_all(nodes):
    one, other = nodes
    batch = [mail(f"b{n}") for n in range(5)]
    made = await one.jobs.submit_many(batch)
    again = await other.jobs.submit_many(batch)
    assert [receipt.id for receipt in again] == [receipt.id for receipt in made]
    assert all(receipt.replayed for receipt in again)
    mixed = await other.jobs.submit_many([*batch, mail("b5")])
    assert [receipt.replayed for receipt in mixed] == [True] * 5 + [False]
    with pytest.raises(InvalidBatch, match="b1"):
        await other.jobs.submit_many([mail("b0"), mail("b1", payload={"to": 2})])
    assert len(await there(one)) == 6


async def test_a_submission_that_is_rolled_back_leaves_its_key_free(nodes):
    one, other = nodes
    unique = UniqueSpec(on_conflict="reject")
    await one.jobs.submit(mail(unique=unique))
    with pytest.raises(InvalidBatch):
        await one.jobs.submit_many([mail("k1"), mail(unique=unique)])
    with pytest.raises(DuplicateJob):
        await one.jobs.submit(mail("k2", unique=unique))
    made = await other.jobs.submit(mail("k1"))
    assert not made.replayed
    assert (await one.jobs.submit(mail("k1"))).id == made.id


async def test_a_replayed_submission_returns_the_current_state_of_the_job(nodes):
    one, other = nodes
    made = await one.jobs.submit(mail("k1"))
    worker = a_worker(queues="default")
    await one.workers.register(worker, seconds(60))
    (job,) = await one.attempts.claims(worker.id, ["default"]).claim(1)
    await one.attempts.settle(job, Succeeded(b"42"))
    repeat = (await other.jobs.submit_and_get(mail("k1"))).earlier
    assert (repeat.id, repeat.status) == (made.id, Status.SUCCEEDED)
    await one.jobs.apply("delete", made.id, tenant=None)
    with pytest.raises(Conflict, match="deleted"):
        await other.jobs.submit_and_get(mail("k1"))


async def test_every_node_rejects_cost_over_the_rate_until_the_window_has_passed(nodes):
    """S15: regardless of the node and of the number of submissions."""
    one, other = nodes
    await one.access.create_tenant("slow", Quotas(rate=10, rate_window=seconds(3_600)))
    await one.access.create_tenant("brief", Quotas(rate=10, rate_window=seconds(1)))
    for engine in nodes:
        await engine.submitter.limited.refresh()
    await one.jobs.submit(mail(tenant="slow", cost=7))
    for engine in (one, other, other, other):
        with pytest.raises(RateLimited, match=r"10 in 3600 s and has used 7") as refused:
            await engine.jobs.submit(mail(tenant="slow", cost=4))
        assert 3_500 < refused.value.retry_after <= 3_660
    with pytest.raises(RateLimited):
        await other.jobs.submit_many([mail(tenant="slow", cost=2)] * 2)
    await other.jobs.submit(mail(tenant="slow", cost=3))  # the remaining quota allows this one

    async def passed():
        try:
            await other.jobs.submit(mail(tenant="brief", cost=7))
        except RateLimited as refusal:
            await asyncio.sleep(refusal.retry_after)
            return False
        return True

    for _ in range(2):
        await eventually(passed)
    if one.used:
        assert hits(other, "limits") > 0


async def test_a_raised_quota_applies(nodes):
    one, other = nodes
    await one.access.create_tenant("slow", Quotas(rate=1, rate_window=seconds(3_600)))
    for engine in nodes:
        await engine.submitter.limited.refresh()
    await one.jobs.submit(mail(tenant="slow"))
    for _ in range(3):
        with pytest.raises(RateLimited):
            await other.jobs.submit(mail(tenant="slow"))
    await one.access.change_tenant("slow", {"rate": 100})

    async def passes():
        try:
            return await other.jobs.submit(mail(tenant="slow"))
        except RateLimited:
            return None

    assert await eventually(passes)


async def test_every_node_sees_a_worker_until_it_leaves(nodes):
    one, other = nodes

    async def seen(engine):
        now, rows = await engine.workers.fleet()
        return {row.info: row.expires_at > now for row in rows}

    async def gone(worker):
        return worker not in await seen(other)

    first, second = a_worker(), a_worker(name="worker-2")
    await one.workers.register(first, seconds(60))
    await one.workers.register(second, seconds(60))
    for _ in range(3):
        assert await seen(other) == {first: True, second: True}
    assert await one.workers.renew(first.id, seconds(90))
    assert await one.workers.depart(second.id)
    await eventually(lambda: gone(second))
    now, (row,) = await other.workers.fleet()
    assert (row.info, row.started_at <= row.renewed_at <= now < row.expires_at) == (first, True)
    third = a_worker()
    await one.workers.register(third, seconds(1))  # the worker dies

    async def known_dead():
        return not (await seen(other)).get(third, False)

    await eventually(known_dead)
    assert (await seen(other))[first]


async def test_every_node_sees_memory_use_and_draining(nodes):
    one, other = nodes
    worker = a_worker(node="n", types=("send",))
    await one.workers.register(worker, seconds(60))

    async def seen(engine):
        return [(row.info, row.memory, row.draining) for row in (await engine.workers.fleet())[1]]

    async def drained(engine):
        found = await seen(engine)
        return found if found[0][2] else None

    assert await seen(one) == await seen(other) == [(worker, None, False)]
    assert await one.workers.renew(worker.id, seconds(60), memory=2**33) is LeaseStatus.KEPT
    await other.workers.drain(worker.id)
    for engine in nodes:
        assert await eventually(lambda engine=engine: drained(engine)) == [(worker, 2**33, True)]


async def test_a_job_of_another_node_wakes_waiting_workers(nodes):
    one, other = nodes
    subscription = other.attempts.listen(["default"])
    while await subscription.wait(0) is not None:
        pass
    waiting = asyncio.create_task(_until_ready(other, subscription))
    made = await one.jobs.submit(mail())
    assert await asyncio.wait_for(waiting, 30)
    assert [job.id for job in await there(one)] == [made.id]
    subscription.close()


async def _until_ready(engine, subscription):
    while not await engine.store.single(lambda tx: tx.lanes(["default"], 10)):
        await subscription.wait(600)
    return True


async def test_the_tail_reads_changes_of_another_node(nodes):
    one, other = nodes
    tail = Tail(other.store)
    await tail.begin()
    made = await one.jobs.submit(mail())

    async def told():
        for entry in await tail.read_new():
            tail.mark_seen(entry)
            if any(change.id == made.id for change in entry.body.c):
                return True
        await tail.wait()
        return False

    await eventually(told)
    tail.close()
