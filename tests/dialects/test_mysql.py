"""MySQL and MariaDB: locks, and the encoding of values."""

import asyncio

import pytest

from holdfast.errors import Rejected
from holdfast.model.job import JobFilter, Page
from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import seconds
from holdfast.store.mysql.literal import literal, table
from holdfast.store.mysql.store import MysqlStore
from tests.dialects.test_mysql_plans import noted
from tests.support.builders import a_job, a_transition, enter, put, read, read_all, share, some_jobs, take
from tests.support.clock import console

__all__ = ["console"]

pytestmark = pytest.mark.databases("mysql")


# Locks


async def test_eight_concurrent_claims_all_get_jobs(store):
    """P34"""
    await put(store, *some_jobs(100))
    workers = [await enter(store) for _ in range(8)]
    barrier = asyncio.Barrier(8)

    async def claim(worker):
        async def work(tx):
            held = await tx.claim(worker, [share(max_jobs=10)], 10, None)
            await barrier.wait()  # all transactions hold their rows at the same time
            return held

        return await store.run(work)

    async with asyncio.timeout(30):
        held = await asyncio.gather(*map(claim, workers))
    assert [len(jobs) for jobs in held] == [10] * 8
    assert len({job.id for jobs in held for job in jobs}) == 80


async def test_a_claim_over_many_lanes_locks_in_all_of_them(store):
    lanes = [Lane("mail", f"t{n}", 0) for n in range(5)]
    await put(store, *(a_job(tenant=lane.tenant) for lane in lanes for _ in range(2)))
    first, second = await enter(store), await enter(store)
    shares = [share(lane, max_jobs=1) for lane in lanes]

    async def work(tx):
        mine = await tx.claim(first, shares, 5, None)
        others = await asyncio.wait_for(take(store, second, *shares), 10)
        return mine, others

    mine, others = await store.run(work)
    assert len(mine) == len(others) == 5
    assert not {job.id for job in mine} & {job.id for job in others}
    assert sorted(job.tenant for job in mine) == sorted(job.tenant for job in others) == [lane.tenant for lane in lanes]


async def claim_and_meanwhile(run, worker, meanwhile):
    """Claim, and run something between the message that locks jobs and the one that claims them."""

    async def work(tx):
        send_and_commit = tx.send_and_commit

        async def later(*texts):
            await meanwhile()
            return await send_and_commit(*texts)

        tx.send_and_commit = later
        return await tx.claim(worker, [share()], 10, None)

    return await run(work)


@pytest.mark.parametrize("how", ["single", "run"])
async def test_an_unfinished_claim_does_not_block_the_renewal_of_its_lease(store, how):
    """P12, F28: the event loop may be blocked between two messages while the supervisor renews."""
    await put(store, a_job())
    worker = await enter(store)
    renewed = []

    async def renew():
        renewed.append(await store.single(lambda tx: tx.renew(worker, seconds(60))))

    assert len(await claim_and_meanwhile(getattr(store, how), worker, renew)) == 1
    assert renewed == [True]


@pytest.mark.parametrize("how", ["single", "run"])
@pytest.mark.parametrize("end", ["expires", "is removed"])
async def test_a_claim_whose_lease_expires_between_its_messages_takes_nothing(store, console, how, end):
    """P12, S6: other workers can claim the jobs that it had locked."""
    job = a_job()
    await put(store, job)
    worker, other = await enter(store), await enter(store)

    async def lose():
        if end == "expires":
            await console.run(f"UPDATE holdfast_workers SET expires_at = 1 WHERE id = {worker}")
        else:
            assert await store.run(lambda tx: tx.depart(worker))

    assert await claim_and_meanwhile(getattr(store, how), worker, lose) == []
    assert await noted(console) == []
    found = await read(store, job)
    assert (found.status, found.fence, found.attempts, found.worker) == (Status.READY, 0, 0, None)
    assert [held.fence for held in await take(store, other)] == [1]


async def test_a_claim_visits_more_lanes_until_it_is_full(store):
    lanes = [Lane("mail", f"t{n}", 0) for n in range(60)]
    await put(store, *(a_job(tenant=lane.tenant) for lane in lanes))
    worker = await enter(store)
    held = await take(store, worker, *(share(lane, max_jobs=10) for lane in lanes), limit=45)
    assert [job.tenant for job in held] == [lane.tenant for lane in lanes[:45]]


async def test_work_is_retried_after_a_deadlock(store):
    """F22"""
    one, other = [await enter(store) for _ in range(2)]
    first_locks = asyncio.Barrier(2)
    runs = 0

    async def lock(tx, worker):
        await tx.rows("lock_worker", worker=worker)

    async def work(tx, mine, theirs):
        nonlocal runs
        runs += 1
        await lock(tx, mine)
        if runs <= 2:
            await first_locks.wait()
        await lock(tx, theirs)
        return mine

    async with asyncio.timeout(30):
        done = await asyncio.gather(
            store.run(lambda tx: work(tx, one, other)), store.run(lambda tx: work(tx, other, one))
        )
    assert done == [one, other]
    assert runs == 3


async def test_a_renewal_that_writes_equal_values_succeeds(database_url):
    """P36: the server counts matched rows instead of changed ones."""
    frozen = await MysqlStore.open(database_url, clock="1000000000000000")
    try:
        worker = await enter(frozen)
        for _ in range(2):
            assert await frozen.single(lambda tx: tx.renew(worker, seconds(15)))
    finally:
        await frozen.aclose()


# Values


@pytest.mark.parametrize(
    "value",
    ["plain", "", "it's", 'a "b"', "back\\slash", "%s", ":name", "; DROP TABLE x", "new\nline", "\x00", "ü€𐍈", "a'--"],
)
async def test_any_text_is_stored_unchanged(store, value):
    job = a_job(concurrency_key=value, payload=value.encode())
    await put(store, job)
    worker = await enter(store)
    (held,) = await take(store, worker)
    await store.run(lambda tx: tx.apply([a_transition(held, Status.CANCELLED, reason=value, result=value.encode())]))
    found = await read(store, job)
    assert (found.concurrency_key, found.payload, found.result, found.reason) == (
        value,
        value.encode(),
        value.encode(),
        value,
    )


async def test_plain_and_hexadecimal_texts_fit_one_column(store):
    """Plain, unusual and absent texts in one statement."""
    reasons = ["plain", "it's ü", None]
    jobs = some_jobs(3)
    await put(store, *jobs)
    held = await take(store, await enter(store))
    moves = [a_transition(job, Status.CANCELLED, reason=reason) for job, reason in zip(held, reasons, strict=True)]
    await store.run(lambda tx: tx.apply(moves))
    assert [job.reason for job in await read_all(store, [job.id for job in jobs])] == reasons


@pytest.mark.parametrize("one, other", [("key", "key "), ("key", "KEY"), ("é", "e"), ("straße", "strasse")])
async def test_keys_are_compared_byte_by_byte(store, one, other):
    made = await put(store, a_job(idempotency_key=one), a_job(idempotency_key=other))
    assert [result.repeats for result in made] == [None, None]


async def test_a_value_that_does_not_fit_is_rejected_instead_of_truncated(store):
    with pytest.raises(Rejected):
        await put(store, a_job(type="x" * 129))
    with pytest.raises(Rejected):
        await put(store, a_job(tenant="ü"))
    assert not await store.run(lambda tx: tx.find(JobFilter(), Page()))


async def test_a_batch_larger_than_a_packet_is_inserted_completely(store, console):
    packet = int(await console.value("SELECT @@max_allowed_packet"))
    jobs = some_jobs(5, payload=b"x" * (packet // 8))
    assert sum(2 * len(job.payload) for job in jobs) > packet
    await put(store, *jobs)
    held = await take(store, await enter(store))
    assert [job.id for job in held] == [job.id for job in jobs]
    await store.run(lambda tx: tx.apply([a_transition(job, Status.DEAD) for job in held]))
    assert {job.status for job in await read_all(store, [job.id for job in jobs])} == {Status.DEAD}


async def test_a_job_larger_than_a_packet_is_rejected_with_the_setting_to_raise(store, console):
    packet = int(await console.value("SELECT @@max_allowed_packet"))
    with pytest.raises(Rejected, match="max_allowed_packet"):
        await put(store, a_job(payload=b"x" * (packet // 2)))
    await put(store, a_job())


def test_a_literal_of_unusual_text_contains_no_quote():
    assert literal("a'b\\") == "_utf8mb4 x'6127625c'"
    assert literal(b"'") == "x'27'"
    assert table(("a", "b"), [(1, None), (2, b"x")]) == "(SELECT 1 AS a,NULL AS b UNION ALL SELECT 2,x'78')"


def test_a_value_that_all_rows_share_is_written_once():
    columns, rows = ("a", "b", "c"), [(1, None, b"x"), (2, None, b"x")]
    assert table(columns, rows) == "(SELECT a,NULL AS b,x'78' AS c FROM (SELECT 1 AS a UNION ALL SELECT 2) AS v)"
    assert (
        table(columns, rows, as_values=True)
        == "(SELECT a,NULL AS b,x'78' AS c FROM (SELECT 1 AS a UNION ALL VALUES (2)) AS v)"
    )
    assert table(columns, rows[:1], as_values=True) == "(SELECT 1 AS a,NULL AS b,x'78' AS c)"


async def test_equal_and_different_rows_are_read_back_unchanged(store):
    columns = ("a", "b", "c")
    for rows in (
        [(1, None, b"x")],
        [(1, None, b"x"), (1, None, b"x")],
        [(1, None, "it's"), (2, b"y", "plain"), (3, b"", "ü")],
        [(1, None, "plain"), (2, None, "plain")],
    ):

        async def read_back(tx, rows=rows):
            (found,) = await tx.send(f"SELECT a, b, c FROM {tx.table(columns, rows)} AS m ORDER BY a")
            return [tuple(row) for row in found.rows]

        assert await store.run(read_back) == rows
