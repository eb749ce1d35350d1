"""MySQL and MariaDB: query plans, and how held jobs are found."""

import pytest

from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import seconds
from holdfast.store.mysql.literal import items, table
from holdfast.store.port.store import Retention
from tests.support.builders import a_job, a_transition, enter, lane_of, put, share, some_jobs, take
from tests.support.clock import console
from tests.support.long import LONG

__all__ = ["console"]

pytestmark = pytest.mark.databases("mysql")

DIGITS = "(" + " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10)) + ")"
NUMBERS = (
    "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n "
    f"FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} d, {DIGITS} e"
    f"{'' if LONG else ' WHERE e.n < 2'})"
)
"""Numbers from 0 to 19,999; to 99,999 with HOLDFAST_LONG_TESTS=1."""


async def fill(console, *, tenants, parked=0, status=0):
    """Insert many jobs by one statement, spread over the tenants."""
    await console.run(
        "INSERT INTO holdfast_live (parked, queue, tenant, priority, seq, id, created_at, due, status, max_attempts, "
        "type, payload) "
        f"SELECT {parked}, 'mail', CONCAT('t', n MOD {tenants}), 0, 1 + n, UNHEX(MD5(CONCAT({status}, n))), 1, "
        f"IF({parked}, n, 0), {status}, 5, 'send', '' FROM {NUMBERS} AS numbers"
    )
    await console.run("ANALYZE TABLE holdfast_live")


async def explain(store, name, /, **parameters):
    """Return the plan of a named statement: (table, key, extra) of each row."""

    async def plan(tx):
        _, shown = await tx.send("SET @holdfast_lease = 7", "EXPLAIN " + tx.text(name, **parameters))
        return shown.rows

    rows = await store.run(plan)
    return [
        (row[-8] if len(row) == 10 else row[2], row[-5] if len(row) == 10 else row[6], row[-1] or "") for row in rows
    ]


async def rows_read(store, work):
    """Return the number of rows that the server read for this work."""

    async def looked_at(tx):
        (shown,) = await tx.send("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in shown.rows)

    async def counting(tx):
        before = await looked_at(tx)
        await work(tx)
        after = await looked_at(tx)
        itself = await looked_at(tx) - after
        return after - before - itself

    return await store.run(counting)


# Plans


async def test_every_locking_statement_uses_its_index_in_order(store, console):
    """P34: a sort would lock every candidate, so that concurrent claims find nothing."""
    await fill(console, tenants=10)
    lane = {"queue": "mail", "tenant": "t1", "priority": 0, "floor": 0, "max_jobs": 10}
    ids = items([job.id for job in some_jobs(3)])
    expected = {
        "claim_lane": ("PRIMARY", lane),
        "claim_lane_types": ("PRIMARY", lane | {"types": items(["send"])}),
        "claim_lane_without": ("PRIMARY", lane | {"types": items(["send"])}),
        "lock_waiting": (
            "holdfast_live_key",
            {"tenant": "acme", "name": b"k", "priority": 0, "queues": items([""]), "types": items([""]), "room": 1},
        ),
        "count_key_holders": ("holdfast_live_key", {"tenant": "acme", "name": b"k"}),
        "lock_live": ("holdfast_live_id", {"ids": ids}),
        "lock_due": ("holdfast_live_due", {"limit": 10}),
        "held_by_ids": ("holdfast_live_id", {"worker": 7, "ids": ids}),
        "lock_held_by_ids": ("holdfast_live_id", {"worker": 7, "ids": ids}),
        "lock_expired": ("holdfast_workers_expiry", {"limit": 10}),
        "lock_dead": ("PRIMARY", {"ids": ids}),
        "lock_history": ("holdfast_history_id", {"ids": ids}),
        "assign_jobs": ("holdfast_live_id", {"ids": ids, "worker": 7, "at": 1, "slots": 0}),
    }
    for name, (index, parameters) in expected.items():
        for _, key, extra in await explain(store, name, **parameters):
            assert (name, key) == (name, index)
            assert not {"Using filesort", "Using temporary"} & set(extra.split("; ")), name


async def test_a_write_of_many_rows_uses_the_ids_even_if_the_table_seems_empty(store):
    """Statistics lag behind a table that fills and empties; a scan would lock rows of other transactions."""
    columns = ("of_id", "of_fence", "of_status", "of_worker", "becomes", "result", "log", "reason", "fingerprint",
               "next_seq", "next_attempts", "next_releases", "next_generation", "delay", "held", "next_checks",
               "pause")  # fmt: skip
    given = [(job.id, 1, 1, 7, 2, b"", b"", "", "", 1, 1, 0, 1, 0, b"", 1, 1) for job in some_jobs(500)]
    expected = {
        "finish_history": "holdfast_live_id",
        "finish_dead": "holdfast_live_id",
        "delete_live": "holdfast_live_id",
        "requeue": "holdfast_live_id",
        "promote": "holdfast_live_id",
        "revive_dead": "PRIMARY",
        "delete_dead": "PRIMARY",
        "revive_history": "holdfast_history_id",
        "delete_history": "holdfast_history_id",
        "delete_claims": "PRIMARY",
        "keep_claims": "PRIMARY",
    }
    for name, index in expected.items():
        for as_values in (False, True) if (await store.info()).name == "mariadb" else (False,):
            plan = await explain(store, name, rows=table(columns, given, as_values=as_values))
            assert (name, [key for of, key, _ in plan if of and "<" not in of and key]) == (name, [index])
    ids = items([job.id for job in some_jobs(500)])
    for name, parameters in {"assign_jobs": {"worker": 7, "at": 1, "slots": 0}, "lock_live": {}}.items():
        assert [key for _, key, _ in await explain(store, name, ids=ids, **parameters)] == ["holdfast_live_id"]


async def test_a_claim_reads_only_the_rows_that_it_takes(store, console):
    await fill(console, tenants=10)
    worker = await enter(store)
    shares = [share(Lane("mail", f"t{n}", 0), max_jobs=10) for n in range(10)]
    # Each row is read once to lock it and once to change it.
    assert await rows_read(store, lambda tx: tx.claim(worker, shares, 100, None)) < 250


async def test_a_claim_does_not_read_parked_jobs(store, console):
    await fill(console, tenants=1, parked=1, status=5)
    worker = await enter(store)
    job = a_job(tenant="t0")
    await put(store, job)
    taken = []

    async def claim(tx):
        taken.extend(await tx.claim(worker, [share(lane_of(job), max_jobs=10)], 10, None))

    assert await rows_read(store, claim) < 20
    assert [held.id for held in taken] == [job.id]


async def test_the_cost_of_finding_lanes_grows_with_lanes_instead_of_jobs(store, console):
    await fill(console, tenants=20)
    assert await rows_read(store, lambda tx: tx.lanes(["mail"], 1000)) < 200


async def test_finding_lanes_does_not_read_parked_jobs(store, console):
    await fill(console, tenants=20, parked=1, status=5)
    assert await rows_read(store, lambda tx: tx.lanes(["mail"], 1000)) < 20


# Held jobs


async def noted(console):
    """Return the number of jobs in each stored claim."""
    return sorted(row[0] for row in await console.run("SELECT LENGTH(ids) DIV 16 FROM holdfast_claims"))


async def tidy(store, console):
    """Run maintenance some time later."""
    await console.run("UPDATE holdfast_claims SET check_at = 0")
    await store.maintain_tables(Retention(seconds(60), seconds(60)))


async def test_held_jobs_are_found_without_reading_ready_jobs(store, console):
    await fill(console, tenants=1)
    worker = await enter(store)
    held = await take(store, worker, share(Lane("mail", "t0", 0), max_jobs=600), limit=600)
    assert await noted(console) == [100, 250, 250]
    found = []

    async def ask(tx):
        found.extend(await tx.held_by(worker, 1_000))
        assert not await tx.depart(worker)
        assert not await tx.orphans(10)

    assert await rows_read(store, ask) < 10 * len(held)
    assert sorted(found, key=lambda job: job.id) == sorted(held, key=lambda job: job.id)
    assert len(await store.run(lambda tx: tx.held_by(worker, 300))) == 300


async def test_a_job_claimed_twice_is_held_once(store):
    job = a_job()
    await put(store, job)
    worker = await enter(store)
    (first,) = await take(store, worker)
    await store.run(lambda tx: tx.apply([a_transition(first, Status.READY)]))
    assert not await store.run(lambda tx: tx.held_by(worker, 10))
    again = await take(store, worker)
    assert [held.fence for held in again] == [2]
    assert await store.run(lambda tx: tx.held_by(worker, 10)) == again


async def test_a_job_claimed_later_by_another_worker_is_not_held_by_the_first(store, console):
    await put(store, a_job())
    first, second = await enter(store), await enter(store)
    (held,) = await take(store, first)
    await store.run(lambda tx: tx.apply([a_transition(held, Status.READY)]))
    (taken,) = await take(store, second)
    assert await noted(console) == [1, 1]
    assert not await store.run(lambda tx: tx.held_by(first, 10))
    assert await store.run(lambda tx: tx.held_by(second, 10)) == [taken]
    assert await store.run(lambda tx: tx.depart(first))
    assert not await store.run(lambda tx: tx.depart(second))
    assert await noted(console) == [1]


async def test_claims_are_compacted_when_jobs_finish(store, console):
    await put(store, *some_jobs(3))
    worker = await enter(store)
    first, *others = await take(store, worker)
    await tidy(store, console)
    assert await noted(console) == [3]
    await store.run(lambda tx: tx.apply([a_transition(job, Status.SUCCEEDED) for job in others]))
    await tidy(store, console)
    assert await noted(console) == [1]
    assert await store.run(lambda tx: tx.held_by(worker, 10)) == [first]
    await store.run(lambda tx: tx.apply([a_transition(first, Status.SUCCEEDED)]))
    await tidy(store, console)
    assert await noted(console) == []


async def test_a_long_claim_is_checked_less_and_less_often(store, console):
    await put(store, a_job())
    await take(store, await enter(store))
    waits = []
    for _ in range(10):
        await tidy(store, console)
        waits.append(
            int(await console.value("SELECT (check_at - started_at) DIV 1000000 FROM holdfast_claims, holdfast_live"))
        )
    assert waits == sorted(waits)
    assert waits[0] >= 4
    assert 512 <= waits[-1] < 1_000


async def test_more_claims_than_one_batch_are_all_compacted(store, console):
    jobs = some_jobs(50)
    await put(store, *jobs)
    worker = await enter(store)
    for _ in jobs:
        (held,) = await take(store, worker, share(max_jobs=1), limit=1)
        await store.run(lambda tx, held=held: tx.apply([a_transition(held, Status.SUCCEEDED)]))
    assert len(await noted(console)) == 50
    await tidy(store, console)
    assert await noted(console) == []


async def test_a_deleted_worker_leaves_no_claims(store, console):
    await put(store, *some_jobs(20))
    worker = await enter(store)
    for _ in range(20):
        held = await take(store, worker, share(max_jobs=1), limit=1)
        await store.run(lambda tx, held=held: tx.apply([a_transition(job, Status.SUCCEEDED) for job in held]))
    assert await store.run(lambda tx: tx.depart(worker))
    assert await noted(console) == []
