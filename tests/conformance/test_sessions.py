"""Transactions of handlers: writes, guard row and fence check are atomic."""

# ruff: noqa: PT012 - what is tested is how a block ends

import asyncio
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from datetime import date, datetime
from decimal import Decimal

import pytest
import pytest_asyncio

from holdfast.engine.engine import Engine
from holdfast.engine.jobs import actions
from holdfast.errors import (
    Conflict,
    Contention,
    HoldfastError,
    Invalid,
    LeaseLost,
    NonDeterministic,
    OutcomeUnknown,
    Rejected,
    TransactionEnded,
    Unavailable,
)
from holdfast.model.state import Status
from holdfast.model.time import Duration
from holdfast.store.port.store import Retention
from holdfast.worker.context.context import Context
from tests.conformance.test_steps import done, held, next_attempt, record, recorded
from tests.support.builders import (
    a_transition,
    enter,
    hold,
    move,
    put,
    read,
    reap_once,
    report,
    roll_back,
    running,
    some_jobs,
)
from tests.support.eventually import eventually

MARKS = {"postgres": "$1 $2 $3 $4", "mysql": "%s %s %s %s", "sqlite": "? ? ? ?"}


class Shop:
    """User table in the same database."""

    def __init__(self, console):
        self.console = console
        self.marks = MARKS[console.dialect].split()
        self.insert = f"INSERT INTO shop (id, note) VALUES ({self.marks[0]}, {self.marks[1]})"
        self.select = "SELECT id, note FROM shop ORDER BY id"

    async def rows(self):
        return await self.console.run(self.select)


@pytest_asyncio.fixture
async def shop(console):
    await console.run("CREATE TABLE shop (id BIGINT PRIMARY KEY, note VARCHAR(100))")
    return Shop(console)


async def sell(context, shop, number=1, key=None):
    """Run the transaction of a handler."""
    async with context.transaction(key) as tx:
        sold = await tx.execute(shop.insert, number, f"attempt {context.attempt}")
        return sold, await tx.fetch(shop.select)


# Effect, guard and fence


async def test_writes_and_guard_are_visible_after_the_block_and_not_before(store, shop):
    job = await running(store)
    async with store.session(held(job), "sell") as session:
        assert session.recorded is None
        assert await session.execute(shop.insert, 1, "it's 100 % ✓") == 1
        assert await session.fetch(shop.select) == [(1, "it's 100 % ✓")]
        assert await shop.rows() == []
        session.record(b"remember")
    assert await shop.rows() == [(1, "it's 100 % ✓")]
    assert {key: result for key, (_, result) in (await recorded(store, job)).items()} == {"sell": b"remember"}
    async with store.session(held(job), "sell") as session:
        assert session.recorded == b"remember"
        with pytest.raises(Conflict):
            await session.execute(shop.insert, 2, "twice")


async def test_a_block_that_fails_is_rolled_back(store, shop):
    job = await running(store)
    with pytest.raises(ZeroDivisionError):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            raise ZeroDivisionError
    assert await shop.rows() == []
    assert await recorded(store, job) == {}
    assert await sell(Context(job, Engine(store).attempts), shop) == (1, [(1, "attempt 1")])


async def test_a_block_that_is_cancelled_is_rolled_back(store, shop):
    job = await running(store)
    inside = asyncio.Event()

    async def handler():
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            inside.set()
            await asyncio.Event().wait()  # never set

    task = asyncio.create_task(handler())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await shop.rows() == []
    assert await eventually(lambda: report(store, job)) == {job.id}, "nothing is locked any more"


async def test_an_attempt_that_dies_after_its_commit_is_not_repeated(manual_store, clock, shop):
    """S11, trap A: effect and guard row commit together."""
    engine = Engine(manual_store)
    job = await running(manual_store)
    first = await sell(Context(job, engine.attempts), shop)
    again = await next_attempt(manual_store, clock, job)
    assert await sell(Context(again, engine.attempts), shop) == first == (1, [(1, "attempt 1")])
    assert await report(manual_store, again) == {job.id}
    assert await shop.rows() == [(1, "attempt 1")]


@pytest.mark.databases("postgres", "mysql")
async def test_an_attempt_that_ends_before_its_commit_has_no_effect(manual_store, clock, shop, console):
    """S11, trap A: the connection breaks while the block is open."""
    engine = Engine(manual_store)
    job = await running(manual_store)
    me = {"postgres": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}[console.dialect]
    kill = {"postgres": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}[console.dialect]
    with pytest.raises(Unavailable):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute(shop.insert, 1, "never")
            ((connection,),) = await tx.fetch(me)
            await console.run(kill.format(connection))
    assert await shop.rows() == []
    again = await next_attempt(manual_store, clock, job)
    assert await sell(Context(again, engine.attempts), shop) == (1, [(1, "attempt 2")])


DIES = """
import asyncio, os, sys
from uuid import UUID
from holdfast.compose import open_store
from holdfast.model.job import HeldJob

async def main(url, job, fence, worker):
    store = await open_store(url)
    async with store.session(HeldJob(UUID(job), int(fence), int(worker)), "sell") as session:
        await session.execute("INSERT INTO shop (id, note) VALUES (1, 'never')")
        os._exit(9)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_process_that_dies_inside_its_block_leaves_no_rows_and_no_locks(store, shop, database_url):
    """S11, trap A"""
    job = await running(store)
    command = [sys.executable, "-c", DIES, database_url, str(job.id), str(job.fence), str(job.worker)]
    died = await asyncio.to_thread(subprocess.run, command, check=False, timeout=60)
    assert died.returncode == 9
    assert await shop.rows() == []
    assert await sell(Context(job, Engine(store).attempts), shop) == (1, [(1, "attempt 1")])
    assert await report(store, job) == {job.id}


class LostResponses:
    """Store whose commits take effect or not, and whose responses are lost."""

    def __init__(self, engine, *, committed):
        self.engine = engine
        self.committed = committed

    @asynccontextmanager
    async def session(self, held, key):
        async with self.engine.attempts.session(held, key) as session:
            yield session
            if not self.committed:
                raise OutcomeUnknown("the connection broke at the commit")
        raise OutcomeUnknown("the connection broke at the commit")


@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_whose_response_is_lost_takes_effect_once(manual_store, clock, shop, committed):
    """S2, S11"""
    engine = Engine(manual_store)
    job = await running(manual_store)
    with pytest.raises(OutcomeUnknown):
        await sell(Context(job, LostResponses(engine, committed=committed)), shop)
    again = await next_attempt(manual_store, clock, job)
    expected = (1, [(1, "attempt 1" if committed else "attempt 2")])
    assert await sell(Context(again, engine.attempts), shop) == expected
    assert await shop.rows() == expected[1]


async def test_a_stale_holder_cannot_open_a_transaction(manual_store, clock, shop):
    """S7, S11, P29"""
    job = await running(manual_store)
    stale = Context(job, Engine(manual_store).attempts)
    await next_attempt(manual_store, clock, job)
    with pytest.raises(LeaseLost):
        await sell(stale, shop)
    assert await shop.rows() == []
    assert await recorded(manual_store, job) == {}
    assert stale.cancelled


async def test_a_transaction_does_not_start_after_a_cancel(store, shop):
    """S17"""
    job = await running(store)
    assert await actions.cancel(store, [job.id], reason="enough") == {job.id}
    with pytest.raises(LeaseLost):
        await sell(Context(job, Engine(store).attempts), shop)
    assert await shop.rows() == []


@pytest.mark.parametrize("rival", ["cancel", "settle", "progress", "step"])
async def test_a_transition_of_the_job_waits_for_the_block(manual_store, shop, interleaving, rival):
    """S17, S7: the row lock decides; never both succeed."""
    job = await running(manual_store)
    waiting = {
        "cancel": lambda: actions.cancel(manual_store, [job.id], reason="enough"),
        "settle": lambda: report(manual_store, job),
        "progress": lambda: manual_store.single(lambda tx: tx.save_progress(held(job), b"1")),
        "step": lambda: record(manual_store, job, done("beside")),
    }[rival]
    async with manual_store.session(held(job), "sell") as session:
        await session.execute(shop.insert, 1, "first")
        other = asyncio.create_task(waiting())
        await interleaving.done_or_blocked(other)
        assert not other.done()
    assert await other
    assert await shop.rows() == [(1, "first")]
    assert "sell" in await recorded(manual_store, job)


async def test_the_reaper_recovers_a_job_after_its_block(manual_store, clock, shop, interleaving):
    """S17, S7: it skips locked jobs, or waits for the lock of the whole database."""
    job = await running(manual_store)
    await clock.expire()
    async with manual_store.session(held(job), "sell") as session:
        await session.execute(shop.insert, 1, "first")
        reaper = asyncio.create_task(reap_once(manual_store))
        await interleaving.done_or_blocked(reaper)
        assert not reaper.done() or reaper.result() == 0
    assert await reaper + await reap_once(manual_store) == 1
    assert await shop.rows() == [(1, "first")]
    assert "sell" in await recorded(manual_store, job)


async def test_a_cancel_inside_the_block_rolls_it_back(store, shop):
    """S17: the worker knows that it lost the job."""
    job = await running(store)
    context = Context(job, Engine(store).attempts)
    with pytest.raises(LeaseLost):
        async with context.transaction() as tx:
            await tx.execute(shop.insert, 1, "undone")
            context.cancel("cancelled by hand")
    assert await shop.rows() == []


async def test_no_transaction_commits_after_a_concurrent_cancel(store, shop):
    """S17: many concurrent cancels and transactions."""
    engine = Engine(store)
    jobs = await hold(store, await enter(store), n=30)
    cancelled_at, sold = {}, set()
    begun = [asyncio.Event() for _ in jobs]

    async def cancel(number, job):
        await begun[7 * number % len(jobs)].wait()  # before some blocks start, after others
        if await actions.cancel(store, [job.id], reason="enough"):
            cancelled_at[job.id] = {row[0] for row in await shop.rows()}

    async def work(number, job):
        begun[number].set()
        try:
            await sell(Context(job, engine.attempts), shop, number)
        except LeaseLost:
            return
        sold.add(number)

    await asyncio.gather(*(action(n, job) for n, job in enumerate(jobs) for action in (cancel, work)))
    assert {row[0] for row in await shop.rows()} == sold
    for number, job in enumerate(jobs):
        assert (number in sold) is (number in cancelled_at[job.id])


async def test_the_engine_keeps_working_while_many_transactions_are_open(store, shop, dialect):
    engine = Engine(store)
    # The maximum of concurrent transactions: SQLite has one writer, a pooler a few server connections.
    size = {"sqlite": 1, "pgbouncer": 4}.get(dialect, 10)
    jobs = await hold(store, await enter(store), n=size)
    inside = asyncio.Barrier(size)

    async def handler(number, job):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute(shop.insert, number, "")
            await inside.wait()
            assert (await engine.jobs.get(job.id)).status is Status.RUNNING
            if size > 1:
                await put(store, *some_jobs(2))

    async with asyncio.timeout(20):
        await asyncio.gather(*(handler(number, job) for number, job in enumerate(jobs)))
    assert len(await shop.rows()) == size


# Replay


async def test_results_of_every_type_are_restored(manual_store, clock, console):
    query = {
        "postgres": "SELECT 1.10::numeric, 1.5::float8, 'NaN'::float8, true, NULL, '\\x00ff'::bytea, 'ü'::text, "
        "'2026-03-29 01:30:00+00'::timestamptz, '2026-03-29 01:30:00.000001'::timestamp, '2026-03-29'::date, "
        "'01:30:00'::time, '1 day 2 hours'::interval, gen_random_uuid(), ARRAY[1, NULL, 3], "
        "9223372036854775807::bigint, '{\"a\": 1}'::jsonb",
        "mysql": "SELECT CAST(1.10 AS DECIMAL(9, 2)), 1.5e0, NULL, x'00ff', 'ü', "
        "TIMESTAMP '2026-03-29 01:30:00.000001', DATE '2026-03-29', TIME '26:30:00', "
        "9223372036854775807, 18446744073709551615, RAND()",
        "sqlite": "SELECT 1.5, 9e999, NULL, x'00ff', 'ü', 9223372036854775807, random()",
    }[console.dialect]
    engine, seen = Engine(manual_store), []
    job = await running(manual_store)
    for _ in range(2):
        async with Context(job, engine.attempts).transaction() as tx:
            seen.append(await tx.fetch(query))
            seen.append(await tx.execute(query))
        job = await next_attempt(manual_store, clock, job)
    assert seen[1] == seen[3] == 1
    assert repr(seen[0]).replace("asyncpg.pgproto.pgproto.", "") == repr(seen[2])
    kinds = {type(value) for value in seen[0][0]}
    expected = {"postgres": {Decimal, datetime, date}, "mysql": {Decimal, datetime, date}, "sqlite": {bytes, float}}
    assert expected[console.dialect] <= kinds


async def test_a_handler_that_runs_other_statements_than_before_gets_an_error(manual_store, clock, shop):
    engine = Engine(manual_store)
    job = await running(manual_store)
    await sell(Context(job, engine.attempts), shop)
    job = await next_attempt(manual_store, clock, job)
    with pytest.raises(NonDeterministic, match="statement 1 was not"):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute("DELETE FROM shop")
    with pytest.raises(NonDeterministic, match="ran 1 statements, the one that committed 2"):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute(shop.insert, 1, "")
    with pytest.raises(NonDeterministic, match="no statement 3"):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute(shop.insert, 1, "")
            await tx.fetch(shop.select)
            await tx.fetch(shop.select)
    with pytest.raises(NonDeterministic, match="used this key for a transaction"):
        await Context(job, engine.attempts).step("transaction-1", lambda: 1)
    assert await shop.rows() == [(1, "attempt 1")]


async def test_transactions_are_identified_by_number_or_key(manual_store, clock, shop):
    engine = Engine(manual_store)
    job = await running(manual_store)
    context = Context(job, engine.attempts)
    await sell(context, shop, 1)
    await sell(context, shop, 2, key="extra")
    await sell(context, shop, 3)
    assert set(await recorded(manual_store, job)) == {"transaction-1", "extra", "transaction-2"}
    job = await next_attempt(manual_store, clock, job)
    context = Context(job, engine.attempts)
    await sell(context, shop, 1)
    await sell(context, shop, 3)
    await sell(context, shop, 4)
    assert [row[0] for row in await shop.rows()] == [1, 2, 3, 4]


async def test_guard_rows_are_pruned_with_their_job(manual_store, clock, shop):
    job = await running(manual_store)
    await sell(Context(job, Engine(manual_store).attempts), shop)
    await report(manual_store, job)
    await clock.advance(Duration(1))
    assert await manual_store.run(lambda tx: tx.prune(Retention(Duration(0), Duration(0)), 10)) == 2
    assert await recorded(manual_store, job) == {}


# Statements that are not allowed


ENDS = ["COMMIT", "commit;", " /* x */ COMMIT", "-- x\nROLLBACK", "BEGIN", "START TRANSACTION", "END", "SAVEPOINT a",
        "ROLLBACK TO a", "RELEASE a", "(COMMIT)"]  # fmt: skip


@pytest.mark.parametrize("statement", ENDS)
async def test_a_statement_that_would_end_the_transaction_is_refused(store, shop, statement):
    job = await running(store)
    with pytest.raises(TransactionEnded, match="was rolled back because"):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            with pytest.raises(Invalid):
                await session.execute(statement)
    assert await shop.rows() == []
    assert await recorded(store, job) == {}


async def test_several_statements_in_one_text_are_refused(store, shop):
    job = await running(store)
    with pytest.raises(Invalid, match="one statement at a time"):
        async with store.session(held(job), "sell") as session:
            await session.execute("INSERT INTO shop (id, note) VALUES (1, 'a'); COMMIT")
    assert await shop.rows() == []
    async with store.session(held(job), "sell") as session:
        await session.execute("INSERT INTO shop (id, note) VALUES (1, 'a; b -- c') -- ; d\n ; ")
    assert await shop.rows() == [(1, "a; b -- c")]


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "INSERT INTO shop (id, note) VALUES (2, 'a'); COMMIT"])
async def test_a_transaction_that_a_statement_ended_is_detected(store, shop, statement, monkeypatch):
    monkeypatch.setattr("holdfast.store.sql.session.check", lambda *_: False)
    job = await running(store)
    with pytest.raises(HoldfastError) as caught:
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "perhaps")
            await session.execute(statement)
            raise AssertionError("should not come here")
    assert isinstance(caught.value, TransactionEnded | Rejected)
    assert await recorded(store, job) == {}
    assert await report(store, job) == {job.id}, "its connection is not used again"


@pytest.mark.databases("mysql")
@pytest.mark.parametrize(
    "statement", ["CREATE TABLE other (id INT)", "TRUNCATE shop", "SET autocommit = 1", "LOCK TABLES shop READ"]
)
async def test_statements_that_mysql_commits_implicitly_are_refused(store, shop, statement):
    job = await running(store)
    with pytest.raises(Invalid, match="this database would commit"):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            await session.execute(statement)
    assert await shop.rows() == []


@pytest.mark.databases("mysql")
@pytest.mark.parametrize("statement", ["CREATE TABLE other (id INT)", "COMMIT AND CHAIN", "COMMIT; START TRANSACTION"])
async def test_an_implicit_commit_of_mysql_is_detected(store, shop, statement, monkeypatch):
    monkeypatch.setattr("holdfast.store.sql.session.check", lambda *_: False)
    job = await running(store)
    with pytest.raises(TransactionEnded, match="may be committed without the guard row"):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "perhaps")
            await session.execute(statement)
    assert await recorded(store, job) == {}


@pytest.mark.databases("postgres", "sqlite")
async def test_tables_created_in_a_transaction_are_rolled_back_with_it(store, shop):
    job = await running(store)
    with pytest.raises(ZeroDivisionError):
        async with store.session(held(job), "sell") as session:
            await session.execute("CREATE TABLE other (id INTEGER)")
            raise ZeroDivisionError
    async with store.session(held(job), "sell") as session:
        await session.execute("CREATE TABLE other (id INTEGER)")
        await session.execute("INSERT INTO other (id) VALUES (7)")
    assert await shop.console.run("SELECT id FROM other") == [(7,)]


async def test_a_statement_that_fails_fails_the_transaction(store, shop):
    """The same on every database, even if it could continue."""
    job = await running(store)
    with pytest.raises(TransactionEnded, match="statement 2 failed"):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            with pytest.raises(Rejected):
                await session.execute(shop.insert, 1, "the same key")
            with pytest.raises(TransactionEnded):
                await session.execute(shop.insert, 2, "after it")
    assert await shop.rows() == []
    assert await recorded(store, job) == {}


@pytest.mark.parametrize("fault", ["syntax", "table", "too many", "too few", "type"])
async def test_a_statement_that_the_database_refuses_is_rejected(store, shop, fault):
    job = await running(store)
    with pytest.raises(Rejected, match="transaction 'sell'"):
        async with store.session(held(job), "sell") as session:
            match fault:
                case "syntax":
                    await session.execute("SELEKT 1")
                case "table":
                    await session.execute("SELECT * FROM nowhere")
                case "too many":
                    await session.execute(shop.insert, 1, "a", 2)
                case "too few":
                    await session.execute(shop.insert, 1)
                case "type":
                    await session.execute(shop.insert, object(), "a")
    assert await sell(Context(job, Engine(store).attempts), shop) == (1, [(1, "attempt 1")])


async def test_execute_returns_the_number_of_rows(store, shop):
    job = await running(store)
    async with store.session(held(job), "sell") as session:
        for number in range(5):
            assert await session.execute(shop.insert, number, "a") == 1
        assert await session.execute("UPDATE shop SET note = 'b' WHERE id < 3") == 3
        assert await session.execute("UPDATE shop SET note = 'b' WHERE id < 3") == 3
        assert await session.execute("UPDATE shop SET note = 'b' WHERE id > 30") == 0
        assert await session.execute("SELECT id FROM shop") == 5
        assert await session.execute("SELECT id FROM shop WHERE id > 30") == 0
        assert await session.execute("DELETE FROM shop WHERE id = 4") == 1
        assert await session.fetch("DELETE FROM shop WHERE id = 3") == []
    assert len(await shop.rows()) == 3


@pytest.mark.databases("postgres")
async def test_callers_statements_use_default_planner_settings_and_leave_none(store, shop):
    job = await running(store)
    seen = []
    for key in "ab":
        async with store.session(held(job), key) as session:
            seen += await session.fetch("SELECT current_setting('enable_seqscan'), current_setting('work_mem')")
            await session.execute("SET LOCAL work_mem = '1MB'")
    assert seen[0] == seen[1]
    assert seen[0][0] == "on"
    assert await store.single(lambda tx: tx._connection.fetchval("SHOW enable_seqscan")) == "off"


@pytest.mark.databases("mysql")
async def test_a_deadlock_is_reported_as_contention_and_nothing_is_committed(store, shop):
    engine = Engine(store)
    one, other = await hold(store, await enter(store), n=2)
    for number in (1, 2):
        await shop.console.run(f"INSERT INTO shop (id, note) VALUES ({number}, '')")
    inside = asyncio.Barrier(2)

    async def handler(job, first, second):
        async with Context(job, engine.attempts).transaction() as tx:
            await tx.execute("UPDATE shop SET note = %s WHERE id = %s", str(job.id), first)
            await inside.wait()
            await tx.execute("UPDATE shop SET note = %s WHERE id = %s", str(job.id), second)

    ends = await asyncio.gather(handler(one, 1, 2), handler(other, 2, 1), return_exceptions=True)
    assert sorted(type(end) for end in ends if end) == [Contention]
    assert len({note for _, note in await shop.rows()}) == 1


@pytest.mark.databases("postgres", "mysql")
async def test_an_idle_transaction_is_ended(store, shop, console, monkeypatch):
    """A worker that hangs blocks its job only briefly."""
    monkeypatch.setattr("holdfast.store.postgres.session.IDLE_TIMEOUT", "1s")
    monkeypatch.setattr("holdfast.store.mysql.session._SET_IDLE_TIMEOUT", "SET SESSION wait_timeout = 1")
    job = await running(store)
    with pytest.raises(Unavailable):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            assert await actions.cancel(store, [job.id], reason="enough") == {job.id}
            await session.execute(shop.insert, 2, "too late")
    assert await shop.rows() == []


# The single write lock of SQLite


@pytest.mark.slow
@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("block", [asyncio.sleep, None])
async def test_a_transaction_that_is_open_too_long_is_rolled_back(store, shop, block, monkeypatch):
    monkeypatch.setattr("holdfast.store.sqlite.session.MAX_DURATION_S", 0.2)
    job = await running(store)
    with pytest.raises(TransactionEnded, match=r"longer than 0\.2 s"):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            if block is None:
                time.sleep(0.4)  # noqa: ASYNC251 - the fault: the handler blocks the event loop for longer than allowed
                await shop.console.run("INSERT INTO shop (id, note) VALUES (9, 'another')")
            else:
                await asyncio.gather(block(0.4), put(store, *some_jobs(3)))
            await session.execute(shop.insert, 2, "too late")
    assert await shop.rows() == ([(9, "another")] if block is None else [])
    assert await recorded(store, job) == {}
    monkeypatch.undo()
    assert (await sell(Context(job, Engine(store).attempts), shop))[0] == 1


@pytest.mark.databases("sqlite")
async def test_a_statement_that_takes_too_long_is_stopped(store, shop, monkeypatch):
    monkeypatch.setattr("holdfast.store.sqlite.session.MAX_DURATION_S", 0.2)
    job = await running(store)
    began = time.monotonic()
    with pytest.raises(TransactionEnded):
        async with store.session(held(job), "sell") as session:
            await session.fetch(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0"
            )
    assert time.monotonic() - began < 5
    assert await report(store, job) == {job.id}


@pytest.mark.databases("sqlite")
async def test_a_conflict_that_rolls_back_ends_the_transaction(store, shop):
    job = await running(store)
    with pytest.raises(TransactionEnded):
        async with store.session(held(job), "sell") as session:
            await session.execute(shop.insert, 1, "undone")
            with pytest.raises(Rejected):
                await session.execute("INSERT OR ROLLBACK INTO shop (id, note) VALUES (1, 'again')")
    assert await shop.rows() == []


async def test_transitions_and_rollbacks_do_not_affect_a_session(store, shop):
    job, other = await running(store), await running(store)
    await roll_back(store, lambda tx: tx.apply([a_transition(job, Status.CANCELLED)]))
    assert (await sell(Context(job, Engine(store).attempts), shop))[0] == 1
    await move(store, a_transition(other, Status.CANCELLED))
    assert (await read(store, job)).status is Status.RUNNING
