"""Worker state stored with the lease, draining, and job types, on every database."""

import msgspec
import pytest

from holdfast.engine import workers
from holdfast.engine.workers import WorkerService
from holdfast.errors import NotFound
from holdfast.model.ids import new_worker_id
from holdfast.model.job_type import JobType
from holdfast.model.time import days, seconds
from holdfast.model.worker import LeaseStatus, Unresponsiveness
from holdfast.policy import job_types
from tests.support.builders import LEASE, a_worker, enter

SEND = JobType("send", schema='{"type":"object","title":"Grüße \\u0000"}', queue="mail", timeout=seconds(3), cost=2)


def workers_of(store):
    return WorkerService(store)


async def register(store, *described, **changes):
    worker = a_worker(types=tuple(job_type.type for job_type in described), **changes)
    await workers_of(store).register(worker, LEASE, [job_type for job_type in described if job_type.queue])
    return worker


async def types(store, tenant=None, after=("", ""), limit=100):
    return (await workers_of(store).types(tenant, after, limit)).items


async def names(store, tenant=None, **paged):
    return [(summary.row.tenant, summary.row.about.type) for summary in await types(store, tenant, **paged)]


async def renew(store, worker, **told):
    return await workers_of(store).renew(worker, LEASE, **told)


async def test_a_renewal_stores_memory_use_and_draining(manual_store, clock):
    worker = await enter(manual_store)
    (row,) = await manual_store.single(lambda tx: tx.workers())
    assert (row.memory, row.draining) == (None, False)
    assert await renew(manual_store, worker, memory=2**40) is LeaseStatus.KEPT
    assert await renew(manual_store, worker) is LeaseStatus.KEPT
    (row,) = await manual_store.single(lambda tx: tx.workers())
    assert (row.memory, row.draining) == (2**40, False)
    assert await renew(manual_store, worker, draining=True) is LeaseStatus.DRAINING
    (row,) = await manual_store.single(lambda tx: tx.workers())
    assert (row.memory, row.draining) == (2**40, True)
    await clock.advance(LEASE)
    assert await renew(manual_store, worker) is LeaseStatus.LOST


async def test_a_renewal_stores_since_when_a_worker_does_not_respond(manual_store, clock):
    """F28, F33: until a renewal reports that it responds."""
    worker = await enter(manual_store)

    async def stored():
        (row,) = await manual_store.single(lambda tx: tx.workers())
        return row.unresponsive_since, row.blocked_by

    assert await stored() == (None, None)
    await renew(manual_store, worker, unresponsive=Unresponsiveness(seconds(2), "mail"))
    assert await stored() == (clock.now - seconds(2), "mail")
    await renew(manual_store, worker, unresponsive=Unresponsiveness(seconds(4)))
    assert await stored() == (clock.now - seconds(4), None)
    await renew(manual_store, worker)
    assert await stored() == (None, None)


async def test_a_drain_reaches_all_processes_of_a_node_and_is_logged_once(store):
    node = [await enter(store, node="n") for _ in range(2)]
    other = await enter(store, node="m")
    for _ in range(2):
        _, rows = await workers_of(store).drain(node[1])
        assert [(row.info.id, row.draining) for row in rows] == [(node[1], True), (node[0], True)]
    assert [await renew(store, worker) for worker in [*node, other]] == [
        LeaseStatus.DRAINING,
        LeaseStatus.DRAINING,
        LeaseStatus.KEPT,
    ]
    told = [change for entry in await store.single(lambda tx: tx.changes_after(0, 100)) for change in entry.body.w]
    assert sorted(change.id for change in told if change.event == "draining") == sorted(node)
    with pytest.raises(NotFound):
        await workers_of(store).drain(new_worker_id())


async def test_workers_are_listed_page_by_page(manual_store, clock):
    """F35: each tenant sees its own workers and those that serve every tenant, oldest first."""
    entered = []
    for tenant in (None, "acme", "globex", None, "acme"):
        entered.append((tenant, (await register(manual_store, JobType("send"), tenant=tenant)).id))
        if tenant != "globex":  # two workers that start at the same time are ordered by their ids
            await clock.advance(seconds(1))
    entered[2:4] = sorted(entered[2:4], key=lambda entry: entry[1])

    async def listed(tenant):
        ids, after = [], (0, 0)
        while True:
            now, page = await workers_of(manual_store).page(tenant, after, 2)
            assert now == clock.now
            assert len(page.items) <= 2
            assert {row.info.types for row in page.items} <= {None}
            ids += [row.info.id for row in page.items]
            if not page.more:
                return ids
            after = page.items[-1].started_at, page.items[-1].info.id

    assert await listed(None) == [worker for _, worker in entered]
    assert await listed("acme") == [worker for tenant, worker in entered if tenant != "globex"]


async def test_workers_of_other_tenants_are_neither_read_nor_counted(store):
    """F35: a tenant that registers many workers does not slow down others."""
    shared, own, other = [await enter(store, tenant=tenant) for tenant in (None, "acme", "globex")]

    async def read(tenant=None):
        return {row.info.id for row in await store.single(lambda tx: tx.workers(tenant))}

    assert await read() == {shared, own, other}
    assert await read("acme") == {shared, own}
    assert await read("another") == {shared}
    assert [await workers_of(store).count_of(tenant) for tenant in ("acme", "another")] == [1, 0]


async def test_job_types_are_stored_as_reported(manual_store, clock):
    worker = await register(manual_store, SEND, JobType("only-named"), queues="mail:10,default")
    named, send = await types(manual_store)
    assert send.row.about == msgspec.structs.replace(SEND, queues=("default", "mail"))
    assert (named.row.about.type, named.row.about.described) == ("only-named", False)
    assert ([row.info.id for row in send.workers], send.queues) == ([worker.id], ["default", "mail"])
    await clock.advance(LEASE)
    (_, send) = await types(manual_store)
    assert (send.workers, send.queues, send.last_seen) == ([], ["default", "mail"], clock.now - LEASE)


async def test_a_tenant_sees_its_own_and_the_shared_job_types(store):
    """T: another tenant's types are neither listed nor do they replace a shared description."""
    await register(store, SEND, JobType("all", queue="q"))
    forged = msgspec.structs.replace(SEND, schema='"of acme"')
    await register(store, forged, JobType("mine", queue="q"), tenant="acme")
    assert await names(store, "acme") == [("", "all"), ("acme", "mine"), ("acme", "send")]
    assert await names(store, "globex") == [("", "all"), ("", "send")]
    assert (await types(store, "globex"))[1].row.about.schema == SEND.schema
    whole = [("", "all"), ("acme", "mine"), ("", "send"), ("acme", "send")]
    assert await names(store) == whole
    pages, after = [], ("", "")
    while found := await names(store, after=after, limit=1):
        pages += found
        after = (found[0][1], found[0][0])
    assert pages == whole
    assert await names(store, "acme", after=("all", ""), limit=1) == [("acme", "mine")]


async def test_job_types_not_seen_for_a_month_are_deleted(manual_store, clock):
    await register(manual_store, SEND)
    lives = a_worker(types=("kept",))
    await workers_of(manual_store).register(lives, days(99), [])
    for _ in range(2):
        await clock.advance(job_types.RETENTION)
        await workers.mark_types_seen(manual_store)
    assert await names(manual_store) == [("", "kept")]
