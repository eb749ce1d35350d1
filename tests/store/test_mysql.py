"""What is special to MySQL and MariaDB: plans, locks, connections, and what their errors become."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from asyncmy.errors import IntegrityError, OperationalError, ProgrammingError

from holdfast.errors import Misconfigured, OutcomeUnknown, Rejected, SchemaMismatch, Unavailable
from holdfast.model.job import JobFilter, Page
from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import seconds
from holdfast.store.mysql.driver import MESSAGE_TIMEOUT, STATEMENT_TIMEOUT, Link, Server
from holdfast.store.mysql.errors import ambiguous, transient, translate
from holdfast.store.mysql.literal import items, literal, table
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.store import MysqlStore
from holdfast.store.mysql.url import read_url
from holdfast.store.port import Retention
from tests.support.builders import a_job, a_move, enter, lane_of, put, read, read_all, share, some_jobs, take
from tests.support.clock import Console, console
from tests.support.eventually import eventually
from tests.support.long import LONG

__all__ = ["console"]

pytestmark = pytest.mark.databases("mysql")

DIGITS = "(" + " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10)) + ")"
NUMBERS = (
    "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n "
    f"FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} d, {DIGITS} e"
    f"{'' if LONG else ' WHERE e.n < 2'})"
)
"""20,000 of them; 100,000 with HOLDFAST_LONG_TESTS=1."""


async def fill(console, *, tenants, parked=0, status=0):
    """So many jobs in one statement, spread over the tenants."""
    await console.run(
        "INSERT INTO holdfast_live (parked, queue, tenant, priority, seq, id, created_at, due, status, max_attempts, "
        "type, payload) "
        f"SELECT {parked}, 'mail', CONCAT('t', n MOD {tenants}), 0, 1 + n, UNHEX(MD5(CONCAT({status}, n))), 1, "
        f"IF({parked}, n, 0), {status}, 5, 'send', '' FROM {NUMBERS} AS numbers"
    )
    await console.run("ANALYZE TABLE holdfast_live")


async def explain(store, name, /, **parameters):
    """The plan of a named statement: (table, key, extra) of each row."""

    async def plan(tx):
        _, shown = await tx.send("SET @holdfast_lease = 7", "EXPLAIN " + tx.text(name, **parameters))
        return shown.rows

    rows = await store.run(plan)
    return [
        (row[-8] if len(row) == 10 else row[2], row[-5] if len(row) == 10 else row[6], row[-1] or "") for row in rows
    ]


async def rows_read(store, work):
    """How many rows the server looked at for this work."""

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


async def test_every_statement_that_locks_rides_its_index_in_its_order(store, console):
    """P34: a sort would lock every candidate, and others would find nothing."""
    await fill(console, tenants=10)
    lane = {"queue": "mail", "tenant": "t1", "priority": 0, "floor": 0, "quota": 10}
    ids = items([job.id for job in some_jobs(3)])
    expected = {
        "claim_lane": ("PRIMARY", lane),
        "claim_lane_types": ("PRIMARY", lane | {"types": items(["send"])}),
        "claim_lane_without": ("PRIMARY", lane | {"types": items(["send"])}),
        "lock_next": (
            "holdfast_live_key",
            {"tenant": "acme", "name": b"k", "priority": 0, "queues": items([""]), "types": items([""]), "room": 1},
        ),
        "turns_taken": ("holdfast_live_key", {"tenant": "acme", "name": b"k"}),
        "lock_live": ("holdfast_live_id", {"ids": ids}),
        "lock_due": ("holdfast_live_due", {"limit": 10}),
        "lock_holding": ("holdfast_live_id", {"worker": 7, "ids": ids}),
        "lock_ghostly": ("holdfast_live_id", {"worker": 7, "ids": ids}),
        "expired": ("holdfast_workers_expiry", {"limit": 10}),
        "lock_dead": ("PRIMARY", {"ids": ids}),
        "lock_history": ("holdfast_history_id", {"ids": ids}),
        "claimed": ("holdfast_live_id", {"ids": ids, "worker": 7, "at": 1, "slots": 0}),
    }
    for name, (index, parameters) in expected.items():
        for _, key, extra in await explain(store, name, **parameters):
            assert (name, key) == (name, index)
            assert not {"Using filesort", "Using temporary"} & set(extra.split("; ")), name


async def test_a_write_of_many_rows_rides_the_ids_however_empty_the_table_seems(store):
    """Statistics lag behind a table that fills and empties; a scan would lock what is others'."""
    columns = ("of_id", "of_fence", "of_status", "of_worker", "becomes", "result", "log", "reason", "fingerprint",
               "next_seq", "next_attempts", "next_releases", "next_generation", "delay", "held", "next_looks",
               "pause")  # fmt: skip
    given = [(job.id, 1, 1, 7, 2, b"", b"", "", "", 1, 1, 0, 1, 0, b"", 1, 1) for job in some_jobs(500)]
    expected = {
        "finish_history": "holdfast_live_id",
        "finish_dead": "holdfast_live_id",
        "finished": "holdfast_live_id",
        "requeue": "holdfast_live_id",
        "promote": "holdfast_live_id",
        "revive_dead": "PRIMARY",
        "revived_dead": "PRIMARY",
        "revive_history": "holdfast_history_id",
        "revived_history": "holdfast_history_id",
        "forget_claims": "PRIMARY",
        "keep_claims": "PRIMARY",
    }
    for name, index in expected.items():
        for as_values in (False, True) if (await store.info()).name == "mariadb" else (False,):
            plan = await explain(store, name, rows=table(columns, given, as_values=as_values))
            assert (name, [key for of, key, _ in plan if of and "<" not in of and key]) == (name, [index])
    ids = items([job.id for job in some_jobs(500)])
    for name, parameters in {"claimed": {"worker": 7, "at": 1, "slots": 0}, "lock_live": {}}.items():
        assert [key for _, key, _ in await explain(store, name, ids=ids, **parameters)] == ["holdfast_live_id"]


async def test_a_claim_reads_the_rows_it_takes_and_no_others(store, console):
    await fill(console, tenants=10)
    worker = await enter(store)
    shares = [share(Lane("mail", f"t{n}", 0), quota=10) for n in range(10)]
    # Once to lock each, once to change it.
    assert await rows_read(store, lambda tx: tx.claim(worker, shares, 100, None)) < 250


async def test_a_claim_does_not_walk_over_jobs_that_wait(store, console):
    await fill(console, tenants=1, parked=1, status=5)
    worker = await enter(store)
    job = a_job(tenant="t0")
    await put(store, job)
    taken = []

    async def claim(tx):
        taken.extend(await tx.claim(worker, [share(lane_of(job), quota=10)], 10, None))

    assert await rows_read(store, claim) < 20
    assert [held.id for held in taken] == [job.id]


async def test_the_search_for_lanes_costs_by_lanes_and_not_by_jobs(store, console):
    await fill(console, tenants=20)
    assert await rows_read(store, lambda tx: tx.lanes(["mail"], 1000)) < 200


async def test_the_search_for_lanes_does_not_walk_over_jobs_that_wait(store, console):
    await fill(console, tenants=20, parked=1, status=5)
    assert await rows_read(store, lambda tx: tx.lanes(["mail"], 1000)) < 20


# What workers hold


async def noted(console):
    """How many jobs each claim names, as the table has it."""
    return sorted(row[0] for row in await console.run("SELECT LENGTH(ids) DIV 16 FROM holdfast_claims"))


async def tidy(store, console):
    """As housekeeping does it, some time later."""
    await console.run("UPDATE holdfast_claims SET look_at = 0")
    await store.tend(Retention(seconds(60), seconds(60)))


async def test_what_a_worker_holds_is_found_without_a_look_at_what_is_ready(store, console):
    await fill(console, tenants=1)
    worker = await enter(store)
    held = await take(store, worker, share(Lane("mail", "t0", 0), quota=600), limit=600)
    assert await noted(console) == [100, 250, 250]
    found = []

    async def ask(tx):
        found.extend(await tx.held_by(worker, 1_000))
        assert not await tx.depart(worker)
        assert not await tx.orphans(10)

    assert await rows_read(store, ask) < 10 * len(held)
    assert sorted(found, key=lambda job: job.id) == sorted(held, key=lambda job: job.id)
    assert len(await store.run(lambda tx: tx.held_by(worker, 300))) == 300


async def test_what_a_worker_claimed_twice_is_held_once(store):
    job = a_job()
    await put(store, job)
    worker = await enter(store)
    (first,) = await take(store, worker)
    await store.run(lambda tx: tx.apply([a_move(first, Status.READY)]))
    assert not await store.run(lambda tx: tx.held_by(worker, 10))
    again = await take(store, worker)
    assert [held.fence for held in again] == [2]
    assert await store.run(lambda tx: tx.held_by(worker, 10)) == again


async def test_what_another_worker_claimed_later_is_not_held_by_the_first(store, console):
    await put(store, a_job())
    first, second = await enter(store), await enter(store)
    (held,) = await take(store, first)
    await store.run(lambda tx: tx.apply([a_move(held, Status.READY)]))
    (taken,) = await take(store, second)
    assert await noted(console) == [1, 1]
    assert not await store.run(lambda tx: tx.held_by(first, 10))
    assert await store.run(lambda tx: tx.held_by(second, 10)) == [taken]
    assert await store.run(lambda tx: tx.depart(first))
    assert not await store.run(lambda tx: tx.depart(second))
    assert await noted(console) == [1]


async def test_claims_are_tidied_as_jobs_are_let_go(store, console):
    await put(store, *some_jobs(3))
    worker = await enter(store)
    first, *others = await take(store, worker)
    await tidy(store, console)
    assert await noted(console) == [3]
    await store.run(lambda tx: tx.apply([a_move(job, Status.SUCCEEDED) for job in others]))
    await tidy(store, console)
    assert await noted(console) == [1]
    assert await store.run(lambda tx: tx.held_by(worker, 10)) == [first]
    await store.run(lambda tx: tx.apply([a_move(first, Status.SUCCEEDED)]))
    await tidy(store, console)
    assert await noted(console) == []


async def test_a_claim_that_is_long_held_is_looked_at_less_and_less_often(store, console):
    await put(store, a_job())
    await take(store, await enter(store))
    waits = []
    for _ in range(10):
        await tidy(store, console)
        waits.append(
            int(await console.value("SELECT (look_at - started_at) DIV 1000000 FROM holdfast_claims, holdfast_live"))
        )
    assert waits == sorted(waits)
    assert waits[0] >= 4
    assert 512 <= waits[-1] < 1_000


async def test_more_claims_than_one_look_takes_are_all_tidied(store, console):
    jobs = some_jobs(50)
    await put(store, *jobs)
    worker = await enter(store)
    for _ in jobs:
        (held,) = await take(store, worker, share(quota=1), limit=1)
        await store.run(lambda tx, held=held: tx.apply([a_move(held, Status.SUCCEEDED)]))
    assert len(await noted(console)) == 50
    await tidy(store, console)
    assert await noted(console) == []


async def test_a_worker_that_is_struck_leaves_no_claim_behind(store, console):
    await put(store, *some_jobs(20))
    worker = await enter(store)
    for _ in range(20):
        held = await take(store, worker, share(quota=1), limit=1)
        await store.run(lambda tx, held=held: tx.apply([a_move(job, Status.SUCCEEDED) for job in held]))
    assert await store.run(lambda tx: tx.depart(worker))
    assert await noted(console) == []


# Locks


async def test_eight_claimers_at_once_all_get_rows(store):
    """P34"""
    await put(store, *some_jobs(100))
    workers = [await enter(store) for _ in range(8)]
    everyone = asyncio.Barrier(8)

    async def claim(worker):
        async def work(tx):
            held = await tx.claim(worker, [share(quota=10)], 10, None)
            await everyone.wait()  # all hold their rows at the same time
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
    shares = [share(lane, quota=1) for lane in lanes]

    async def work(tx):
        mine = await tx.claim(first, shares, 5, None)
        others = await asyncio.wait_for(take(store, second, *shares), 10)
        return mine, others

    mine, others = await store.run(work)
    assert len(mine) == len(others) == 5
    assert not {job.id for job in mine} & {job.id for job in others}
    assert sorted(job.tenant for job in mine) == sorted(job.tenant for job in others) == [lane.tenant for lane in lanes]


async def claim_and_meanwhile(run, worker, meanwhile):
    """Claim, and do something between the message that locks jobs and the one that takes them."""

    async def work(tx):
        send_last = tx.send_last

        async def later(*texts):
            await meanwhile()
            return await send_last(*texts)

        tx.send_last = later
        return await tx.claim(worker, [share()], 10, None)

    return await run(work)


@pytest.mark.parametrize("how", ["single", "run"])
async def test_a_claim_whose_worker_falls_silent_does_not_hold_up_the_renewal_of_its_lease(store, how):
    """P12, F28: its event loop may be blocked between two messages, while its supervisor renews."""
    await put(store, a_job())
    worker = await enter(store)
    renewed = []

    async def renew():
        renewed.append(await store.single(lambda tx: tx.renew(worker, seconds(60))))

    assert len(await claim_and_meanwhile(getattr(store, how), worker, renew)) == 1
    assert renewed == [True]


@pytest.mark.parametrize("how", ["single", "run"])
@pytest.mark.parametrize("end", ["runs out", "is struck"])
async def test_a_claim_takes_nothing_when_its_lease_is_lost_between_its_messages(store, console, how, end):
    """P12, S6: and what it had locked is there for others."""
    job = a_job()
    await put(store, job)
    worker, other = await enter(store), await enter(store)

    async def lose():
        if end == "runs out":
            await console.run(f"UPDATE holdfast_workers SET expires_at = 1 WHERE id = {worker}")
        else:
            assert await store.run(lambda tx: tx.depart(worker))

    assert await claim_and_meanwhile(getattr(store, how), worker, lose) == []
    assert await noted(console) == []
    found = await read(store, job)
    assert (found.status, found.fence, found.attempts, found.worker) == (Status.READY, 0, 0, None)
    assert [held.fence for held in await take(store, other)] == [1]


async def test_a_claim_over_shallow_lanes_looks_on_until_it_is_full(store):
    lanes = [Lane("mail", f"t{n}", 0) for n in range(60)]
    await put(store, *(a_job(tenant=lane.tenant) for lane in lanes))
    worker = await enter(store)
    held = await take(store, worker, *(share(lane, quota=10) for lane in lanes), limit=45)
    assert [job.tenant for job in held] == [lane.tenant for lane in lanes[:45]]


async def test_a_deadlock_runs_the_work_again(store):
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


async def test_a_renewal_that_changes_nothing_is_no_lost_lease(database_url):
    """P36: the server counts rows that matched, not those that changed."""
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
async def test_any_text_comes_back_as_it_went_in(store, value):
    job = a_job(concurrency_key=value, payload=value.encode())
    await put(store, job)
    worker = await enter(store)
    (held,) = await take(store, worker)
    await store.run(lambda tx: tx.apply([a_move(held, Status.CANCELLED, reason=value, result=value.encode())]))
    found = await read(store, job)
    assert (found.concurrency_key, found.payload, found.result, found.reason) == (
        value,
        value.encode(),
        value.encode(),
        value,
    )


async def test_texts_that_differ_in_nature_stand_in_one_column(store):
    """Plain and unusual ones, and none at all, moved by one statement."""
    reasons = ["plain", "it's ü", None]
    jobs = some_jobs(3)
    await put(store, *jobs)
    held = await take(store, await enter(store))
    moves = [a_move(job, Status.CANCELLED, reason=reason) for job, reason in zip(held, reasons, strict=True)]
    await store.run(lambda tx: tx.apply(moves))
    assert [job.reason for job in await read_all(store, [job.id for job in jobs])] == reasons


@pytest.mark.parametrize("one, other", [("key", "key "), ("key", "KEY"), ("é", "e"), ("straße", "strasse")])
async def test_keys_are_the_same_only_byte_for_byte(store, one, other):
    made = await put(store, a_job(idempotency_key=one), a_job(idempotency_key=other))
    assert [each.repeats for each in made] == [None, None]


async def test_a_value_that_does_not_fit_is_refused_and_not_cut(store):
    with pytest.raises(Rejected):
        await put(store, a_job(type="x" * 129))
    with pytest.raises(Rejected):
        await put(store, a_job(tenant="ü"))
    assert not await store.run(lambda tx: tx.find(JobFilter(), Page()))


async def test_a_batch_larger_than_a_packet_goes_in_whole(store, console):
    packet = int(await console.value("SELECT @@max_allowed_packet"))
    jobs = some_jobs(5, payload=b"x" * (packet // 8))
    assert sum(2 * len(job.payload) for job in jobs) > packet
    await put(store, *jobs)
    held = await take(store, await enter(store))
    assert [job.id for job in held] == [job.id for job in jobs]
    await store.run(lambda tx: tx.apply([a_move(job, Status.DEAD) for job in held]))
    assert {job.status for job in await read_all(store, [job.id for job in jobs])} == {Status.DEAD}


async def test_a_job_larger_than_a_packet_is_refused_with_the_setting_to_raise(store, console):
    packet = int(await console.value("SELECT @@max_allowed_packet"))
    with pytest.raises(Rejected, match="max_allowed_packet"):
        await put(store, a_job(payload=b"x" * (packet // 2)))
    await put(store, a_job())


def test_a_literal_of_an_unusual_text_holds_no_quote_of_its_own():
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


async def test_rows_in_which_nothing_or_everything_differs_come_back_as_they_went_in(store):
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


# Connections


async def connections(console):
    """Those of the store, by their ids."""
    rows = await console.run(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    )
    return {row[0] for row in rows}


async def test_a_connection_that_died_while_idle_is_not_noticed_by_anybody(store, console, database_url):
    before = await connections(console)
    fresh = await MysqlStore.open(database_url)
    try:
        for died in await connections(console) - before:
            await console.run(f"KILL {died}")
        worker = await enter(fresh)
        assert worker in {row.info.id for row in await fresh.run(lambda tx: tx.workers())}
    finally:
        await fresh.aclose()


async def test_any_number_of_connections_that_died_while_idle_is_not_noticed_by_anybody(database_url):
    """F11: a firewall forgets all of them at once, and each tells only when it is used."""
    size = 15
    everyone = asyncio.Barrier(size)

    async def use(tx):
        await tx.now()
        await everyone.wait()

    async def died(*_):
        raise OperationalError(2013, "Lost connection to MySQL server during query")

    opened = await MysqlStore.open(database_url, pool_size=size)
    try:
        await asyncio.gather(*(opened.run(use) for _ in range(size)))
        idle = list(opened._pool._idle)
        for link in idle:
            link._run = died
        assert await opened.run(lambda tx: tx.now())
        assert len(idle) == size
    finally:
        await opened.aclose()


async def test_a_connection_that_breaks_in_the_work_means_that_nothing_happened(store, console):
    job = a_job()

    async def work(tx):
        await tx.insert([job], key_retention=seconds(60))
        (own,) = await tx.send("SELECT CONNECTION_ID()")
        await console.run(f"KILL {own.rows[0][0]}")
        await tx.now()

    with pytest.raises(Unavailable) as caught:
        await store.run(work)
    assert not isinstance(caught.value, OutcomeUnknown)
    assert not await read_all(store, [job.id])


async def test_a_connection_that_breaks_at_the_commit_leaves_the_outcome_unknown(store, console):
    async def work(tx):
        await tx.insert([a_job()], key_retention=seconds(60))
        (own,) = await tx.send("SELECT CONNECTION_ID()")
        await console.run(f"KILL {own.rows[0][0]}")

    with pytest.raises(OutcomeUnknown):
        await store.run(work)


async def test_a_cancelled_work_leaves_no_lock_and_no_broken_connection_behind(store):
    job = a_job()
    await put(store, job)
    worker = await enter(store)
    holds = asyncio.Event()

    async def work(tx):
        await tx.claim(worker, [share()], 10, None)
        holds.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.run(work))
    await holds.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    held = await eventually(lambda: take(store, worker))  # once the server has noticed that the connection is gone
    assert (held[0].id, held[0].fence) == (job.id, 1)


async def test_who_waits_too_long_for_a_connection_is_told_so(database_url):
    address = read_url(database_url)
    pool = Pool(lambda: Link.connect(address), 1, wait=0.01)
    link = await pool.acquire()
    with pytest.raises(Unavailable, match="no database connection was free"):
        await pool.acquire()
    pool.release(link)
    assert await pool.acquire() is link
    pool.release(link)
    await pool.aclose()
    with pytest.raises(Unavailable, match="closed"):
        await pool.acquire()


def test_a_server_that_resets_a_new_connection_is_unavailable():
    """F10: as one does that is being restarted, or a balancer with nothing behind it."""
    uvloop = pytest.importorskip("uvloop")

    class Late(uvloop.Loop):
        """By the time the driver gets its connection, the reset has been seen."""

        async def create_connection(self, *arguments, **options):
            made = await super().create_connection(*arguments, **options)
            while not made[0].is_closing():
                await asyncio.sleep(0)
            return made

    async def connect():
        server = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1", 0)
        async with server:
            address = read_url(f"mysql://who@127.0.0.1:{server.sockets[0].getsockname()[1]}/holdfast")
            pool = Pool(lambda: Link.connect(address), 1)
            with pytest.raises(Unavailable, match="does not answer"):
                await pool.acquire()

    with asyncio.Runner(loop_factory=Late) as runner:
        runner.run(connect())


async def test_the_server_gives_up_on_a_statement_before_the_client_gives_up_on_the_server(database_url):
    """F11: an answer tells what became of it, a connection that is cut does not."""
    link = await Link.connect(read_url(database_url))
    try:
        (limit,) = await link.send(f"SELECT @@{link.server.statement_limit}")
        unit = 1 if link.server.name == "mariadb" else 1_000
        assert 0 < limit.rows[0][0] / unit == STATEMENT_TIMEOUT < MESSAGE_TIMEOUT
    finally:
        await link.quit()


async def test_a_message_that_takes_too_long_costs_its_connection(database_url):
    link = await Link.connect(read_url(database_url))
    with pytest.raises(TimeoutError):
        await link.send("SELECT SLEEP(30)", timeout=0.05)
    assert not link.usable()


# The schema


async def test_ten_nodes_migrate_at_once(empty_database_url):
    stores = [await MysqlStore.open(empty_database_url) for _ in range(10)]
    try:
        with pytest.raises(SchemaMismatch, match="holdfast migrate"):
            await stores[0].check_schema()
        with pytest.raises(SchemaMismatch, match="holdfast migrate"):
            await put(stores[0], a_job())
        done = await asyncio.gather(*(each.migrate() for each in stores))
        assert sorted(map(len, done))[:-1] == [0] * 9
        for each in stores:
            await each.check_schema()
    finally:
        for each in stores:
            await each.aclose()


async def test_a_newer_schema_is_refused(empty_database_url):
    opened = await MysqlStore.open(empty_database_url)
    try:
        await opened.migrate()
        await opened._on_link(
            lambda link: link.send("INSERT INTO holdfast_schema (version, name, checksum) VALUES (9999, 'later', 'x')")
        )
        with pytest.raises(SchemaMismatch, match="9999"):
            await opened.check_schema()
        with pytest.raises(SchemaMismatch, match="9999"):
            await opened.migrate()
    finally:
        await opened.aclose()


async def test_the_view_for_people_shows_words_and_utc(store, console):
    job = a_job(payload=b'{"to": "you"}')
    await put(store, job)
    await console.run("SET time_zone = '+05:00'")
    row = (await console.run("SELECT id, status, payload, started_at, worker, created_at FROM holdfast_jobs"))[0]
    assert row[:5] == (str(job.id), "ready", '{"to": "you"}', None, None)
    assert abs((row[5] - (await console.value("SELECT UTC_TIMESTAMP(6)"))).total_seconds()) < 3600


# Words


async def refusal(url, kind=Misconfigured):
    with pytest.raises(kind) as caught:
        await MysqlStore.open(url)
    text = str(caught.value)
    assert "HOLDFAST_DATABASE_URL" in text
    assert "\n" not in text
    assert "s3cret" not in text
    return text


async def test_what_is_wrong_with_the_url_is_said_in_one_line(database_url):
    parts = urlsplit(database_url)
    server = f"{parts.hostname}:{parts.port}"
    assert "password" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast")
    assert "names no database" in await refusal(f"mysql://holdfast:s3cret@{server}")
    assert "names no user" in await refusal(f"mysql://{server}/holdfast")
    assert "charset" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast?charset=latin1")
    assert "ssl=perhaps" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast?ssl=perhaps")
    assert "port" in await refusal("mysql://holdfast:s3cret@localhost:port/holdfast")
    assert "CREATE DATABASE" in await refusal(parts._replace(path="/no_such_database").geturl())


async def test_a_server_that_is_away_is_said_in_one_line():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        assert "cannot be reached" in await refusal(f"mysql://holdfast:s3cret@127.0.0.1:{port}/holdfast", Unavailable)
    assert "cannot be reached" in await refusal("mysql://holdfast:s3cret@nowhere.invalid/holdfast", Unavailable)


async def test_a_user_that_may_not_create_tables_is_told_so(empty_database_url):
    parts = urlsplit(empty_database_url)
    database = parts.path.lstrip("/")
    user = f"'{database[-20:]}'@'%'"  # quoted: what begins with digits may be read as a number
    async with Console(empty_database_url) as console:
        await console.run(f"CREATE USER {user} IDENTIFIED BY 's3cret'")
        try:
            await console.run(f"GRANT SELECT ON `{database}`.* TO {user}")
            url = f"mysql://{database[-20:]}:s3cret@{parts.hostname}:{parts.port}/{database}"
            opened = await MysqlStore.open(url)
            with pytest.raises(Misconfigured, match="may not do this"):
                await opened.migrate()
            await opened.aclose()
        finally:
            await console.run(f"DROP USER {user}")


def test_a_percent_sign_in_a_url_is_a_code():
    address = read_url("mariadb://me%40home:p%2Fw%C3%BC@db:3307/jobs?unix_socket=/run/db.sock")
    assert address[:6] == ("db", 3307, "me@home", "p/wü", "jobs", "/run/db.sock")
    assert str(address) == "me@home@/run/db.sock/jobs"


@pytest.mark.parametrize(
    "greeting, expected",
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", ("mariadb", "10.11.6")),
        ("10.6.0-MariaDB", ("mariadb", "10.6.0")),
        ("11.8.2-MariaDB-ubu2404", ("mariadb", "11.8.2")),
        ("8.0.1-dmr", ("mysql", "8.0.1")),
        ("9.4.0", ("mysql", "9.4.0")),
    ],
)
def test_servers_that_are_new_enough(greeting, expected):
    assert Server.read(greeting) == expected


@pytest.mark.parametrize("greeting", ["5.7.44-log", "5.5.5-10.5.29-MariaDB", "8.0.0-dmr", "TiDB"])
def test_servers_that_are_too_old(greeting):
    with pytest.raises(Misconfigured, match="HOLDFAST_DATABASE_URL"):
        Server.read(greeting)


@pytest.mark.parametrize(
    "error, kind",
    [
        (ProgrammingError(1146, "Table 'x.holdfast_live' doesn't exist"), SchemaMismatch),
        (OperationalError(1142, "INSERT command denied"), Misconfigured),
        (OperationalError(1290, "running with the --read-only option"), Unavailable),
        (OperationalError(2013, "Lost connection"), Unavailable),
        (OperationalError(1040, "Too many connections"), Unavailable),
        (IntegrityError(1062, "Duplicate entry"), Rejected),
        (TimeoutError(), Unavailable),
        (ConnectionResetError("reset"), Unavailable),
    ],
)
def test_what_the_errors_of_the_driver_become(error, kind):
    assert type(translate(error)) is kind


def test_which_errors_are_tried_again_and_which_leave_a_commit_unknown():
    assert [code for code in (1213, 1205, 1062, 2013, 1927) if transient(OperationalError(code, ""))] == [1213, 1205]
    assert [code for code in (1213, 1062, 2013, 1927, 1317) if ambiguous(OperationalError(code, ""))] == [
        2013,
        1927,
        1317,
    ]
    assert ambiguous(TimeoutError())


async def test_the_server_is_named(store, console):
    info = await store.info()
    assert info.name == ("mariadb" if "MariaDB" in await console.value("SELECT VERSION()") else "mysql")
    assert (info.pooled, info.listens) == (False, False)
