"""PostgreSQL behind a pooler in transaction mode: each transaction may run on another server connection.

`./dev test --db pgbouncer tests/conformance` runs the conformance suite behind a pooler; this module has the rest.
"""

import asyncio
import contextlib
import random
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import pytest

from holdfast.compose import open_store
from holdfast.errors import HoldfastError, OutcomeUnknown, Rejected, Unavailable
from holdfast.model.job import HeldJob, JobFilter, Page
from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import days, seconds
from holdfast.store.migrate import migrations
from holdfast.store.port.store import Retention
from holdfast.store.postgres import pool as pools
from tests.support.builders import (
    KEY_RETENTION,
    MAIL,
    a_job,
    enter,
    error,
    hold,
    put,
    read,
    read_all,
    reap_all,
    report,
    roll_back,
    share,
    some_jobs,
    take,
)
from tests.support.clock import Console, clock, console, manual_store
from tests.support.databases import at_database
from tests.support.eventually import TIMEOUT_S, eventually
from tests.support.servers import Server, keep_servers
from tests.support.servers.given import VARIABLES
from tests.support.servers.recipes import PgBouncer

__all__ = ["clock", "console", "manual_store"]

pytestmark = pytest.mark.databases("pgbouncer")

RULE = Retention(history=days(7), dead=days(30))
POOLED_SERVERS = PgBouncer.POOL_SIZE


@pytest.fixture
async def other(database_url):
    """Return a store of another node."""
    opened = await open_store(database_url)
    yield opened
    await opened.aclose()


@pytest.fixture
async def direct(database_url, postgres_server):
    """Return a console on the server itself."""
    url = at_database(postgres_server.url, urlsplit(database_url).path.lstrip("/"))
    async with Console(url) as opened:
        yield opened


async def ask(tx, statement):
    """Return a value, read in a transaction of the store."""
    return await tx._connection.fetchval(statement)


def server_process(tx):
    """Return the server process of the transaction."""
    return ask(tx, "SELECT pg_backend_pid()")


@contextlib.asynccontextmanager
async def everywhere(store):
    """Open a transaction on each server connection of the pooler; yield their server processes."""
    found = set()
    together = asyncio.Barrier(POOLED_SERVERS + 1)

    async def work(tx):
        found.add(await server_process(tx))
        await together.wait()
        await together.wait()

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        for _ in range(POOLED_SERVERS):
            group.create_task(store.run(work))
        await together.wait()
        yield found
        await together.wait()


@contextlib.asynccontextmanager
async def traffic(store):
    """Run other clients of the pooler, so that successive messages reach different server processes."""
    over = asyncio.Event()

    async def keep_busy(dice):
        while not over.is_set():
            await store.single(lambda tx: ask(tx, f"SELECT {dice.randrange(1_000)}"))

    async with asyncio.TaskGroup() as group:
        for seed in range(8):
            group.create_task(keep_busy(random.Random(seed)))
        try:
            yield
        finally:
            over.set()


@contextlib.asynccontextmanager
async def neighbours(database_url):
    """Open other clients of the pooler; yield a function that runs statements on each server process."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [await asyncpg.connect(database_url, statement_cache_size=0) for _ in range(POOLED_SERVERS)]
        for each in clients:
            stack.push_async_callback(each.close)

        async def run_on_each(statements):
            for each in clients:
                await each.execute("BEGIN")  # concurrently, so that each runs on its own process
            for each in clients:
                await each.execute("; ".join(statements))
            for each in clients:
                await each.execute("COMMIT")

        yield run_on_each


def names_of_others():
    """Return PREPARE statements with the names that the driver of this process would use next."""
    next_number = asyncpg.connection._uid
    names = [f"__asyncpg_stmt_{number:x}__" for number in range(next_number, next_number + 200)]
    return [f"PREPARE {name} AS SELECT 'of another client'" for name in names]


# Detection


async def test_a_pooler_is_detected(store, direct):
    """P21: without a setting."""
    info = await store.info()
    assert (info.name, info.pooled, info.listens) == ("postgresql", True, False)
    straight = await open_store(direct.url)
    try:
        info = await straight.info()
        assert (info.pooled, info.listens) == (False, True)
    finally:
        await straight.aclose()


async def test_a_busy_pooler_is_detected(store, database_url):
    """P21: the messages of the detection may reach different servers too."""
    async with traffic(store):
        for _ in range(10):
            opened = await asyncio.gather(*(open_store(database_url) for _ in range(4)))
            pooled = [(await each.info()).pooled for each in opened]
            await asyncio.gather(*(each.aclose() for each in opened))
            assert pooled == [True] * 4


async def test_a_database_that_the_pooler_cannot_reach_is_reported_as_unavailable(database_url):
    with pytest.raises(HoldfastError):
        await open_store(at_database(database_url, "no_such_database"))


async def test_ten_nodes_migrate_concurrently_through_a_pooler(empty_database_url):
    nodes = await asyncio.gather(*(open_store(empty_database_url) for _ in range(10)))
    try:
        applied = await asyncio.gather(*(node.migrate() for node in nodes))
        assert sorted(name for names in applied for name in names) == [
            f"{step.version:04d}_{step.name}" for step in migrations("postgres")
        ]
        await asyncio.gather(*(node.check_schema() for node in nodes))
        await put(nodes[0], a_job())
    finally:
        await asyncio.gather(*(node.aclose() for node in nodes))


# Settings of a transaction


@pytest.mark.parametrize("how", ["run", "single", "read"])
async def test_every_transaction_sets_its_own_settings(store, how):
    """P20: session settings would belong to another client."""
    wanted = dict(pools.PLANNER) | (dict(pools.READER) if how == "read" else {})

    async def work(tx):
        return {name: await ask(tx, f"SHOW {name}") for name in wanted}

    for shown in await asyncio.gather(*(getattr(store, how)(work) for _ in range(20))):
        assert shown == wanted


async def test_settings_do_not_outlive_their_transaction(store, database_url):
    """Clients that share the server process keep their planner settings."""
    await put(store, *some_jobs(10))
    async with everywhere(store):
        pass
    async with Console(database_url) as neighbour:
        for name, setting in {"enable_seqscan": "on", "plan_cache_mode": "auto", "statement_timeout": "0"}.items():
            assert {await neighbour.value(f"SHOW {name}") for _ in range(20)} == {setting}


async def test_a_claim_uses_its_index_behind_a_pooler(store):
    """The settings apply to the next statement, which gets a generic plan."""
    await put(store, *some_jobs(10))
    claim = store._statements["claim"]
    values = {"worker": "1", "types": "NULL", "limit": "10", "queues": "'{mail}'", "tenants": "'{acme}'"}
    values |= {"priorities": "'{0}'", "max_jobs": "'{10}'", "floors": "'{0}'"}
    values |= {"counted_queues": "'{}'", "counted_tenants": "'{}'", "without": "NULL"}

    async def plan(tx):
        await tx._connection.execute(f"PREPARE claim AS {claim.text}")
        given = ", ".join(values[name] for name in claim.parameters)
        shown = await tx._connection.fetch(f"EXPLAIN EXECUTE claim ({given})")
        await tx._connection.execute("DEALLOCATE claim")
        return "\n".join(row[0] for row in shown)

    shown = await store.run(plan)
    assert "Index Scan using holdfast_live_ready" in shown
    assert "Seq Scan on holdfast_live" not in shown
    assert "$1" in shown


async def test_a_statement_that_takes_too_long_is_cancelled_behind_a_pooler(store, monkeypatch):
    """Timeouts apply as without a pooler; the test sets shorter ones in the same way."""
    short = pools._begin("BEGIN", {**pools.PLANNER, "statement_timeout": "200ms"})
    monkeypatch.setattr(pools, "BEGIN_POOLED", short)
    for how in (store.run, store.single):
        with pytest.raises(Unavailable, match="took too long"):
            await how(lambda tx: ask(tx, "SELECT pg_sleep(30)"))
    await enter(store)


async def test_lock_waits_time_out_behind_a_pooler(store, monkeypatch):
    """A transaction that times out is retried until the lock is free."""
    monkeypatch.setattr(pools, "BEGIN_POOLED", pools._begin("BEGIN", {**pools.PLANNER, "lock_timeout": "50ms"}))
    worker = await enter(store)
    tries = 0
    locked, go = asyncio.Event(), asyncio.Event()

    async def holder(tx):
        await tx.rows("lock_worker", worker=worker)
        locked.set()
        await go.wait()

    async def waiter(tx):
        nonlocal tries
        tries += 1
        if tries == 3:
            go.set()
        return await tx.renew(worker, seconds(15))

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        group.create_task(store.run(holder))
        await locked.wait()
        renewed = group.create_task(store.run(waiter))
    assert renewed.result()
    assert tries >= 3


# State left by other clients


async def test_prepared_statements_of_other_clients_are_never_used(store, database_url, direct):
    """P21: every server process has statements with the names that our driver would use."""
    async with everywhere(store) as processes:
        pass
    async with neighbours(database_url) as run_on_each:
        await run_on_each(names_of_others())
        jobs = some_jobs(50)
        await put(store, *jobs)
        worker = await enter(store)
        taken = await asyncio.gather(*(take(store, worker, share(max_jobs=5)) for _ in range(10)))
        assert sorted(job.id for held in taken for job in held) == [job.id for job in jobs]
        assert len(set().union(*await asyncio.gather(*(report(store, held) for held in taken)))) == 50
        assert await store.read(lambda tx: tx.counts(JobFilter())) == []
        await run_on_each(["DEALLOCATE ALL"])
    rows = await direct.run("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
    assert processes <= {pid for (pid,) in rows}  # all of them were used, none was closed


async def test_a_session_uses_and_leaves_no_prepared_statements(store, database_url):
    """P21: the next process would use the same names, and meet them on the same server."""
    jobs = await hold(store, await enter(store), n=20)

    async def handle(job):
        async with store.session(HeldJob(job.id, job.fence, job.worker), "step") as session:
            session.record(b"1")
            await session.execute("SELECT $1::int", 1)
            return await session.fetch("SELECT $1::text", str(job.id))

    async with neighbours(database_url) as run_on_each:
        await run_on_each(names_of_others())
        assert await asyncio.gather(*map(handle, jobs)) == [[(str(job.id),)] for job in jobs]
        await run_on_each(["DEALLOCATE ALL"])
    jobs = await hold(store, await enter(store), n=20)
    await asyncio.gather(*map(handle, jobs))
    async with Console(database_url) as neighbour:
        for _ in range(20):
            assert await neighbour.run("SELECT name FROM pg_prepared_statements") == []


async def test_the_store_leaves_no_prepared_statements_and_no_locks(store, direct, database_url):
    """P20: nothing that remains on a server process is ours."""
    await put(store, *some_jobs(20, idempotency_key=None), a_job(idempotency_key="order-1"))
    worker = await enter(store)
    await report(store, await take(store, worker))
    await store.maintain_tables(RULE)
    await store.migrate()
    async with Console(database_url) as neighbour:
        for _ in range(20):
            assert await neighbour.value("SELECT count(*) FROM pg_prepared_statements") == 0
    assert await direct.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_failed_transaction_does_not_affect_the_next(store, direct):
    """P21: refused by the server, rolled back by its work, cancelled, or disconnected; the next one works."""
    worker = await enter(store)
    await put(store, *some_jobs(5))

    async def refused(tx):
        await tx.claim(worker, [share()], 1, None)
        await ask(tx, "SELECT 1 / 0")

    async def wander_off(tx):
        await tx.claim(worker, [share()], 1, None)
        await asyncio.Event().wait()

    for _ in range(2 * POOLED_SERVERS):
        with pytest.raises(Rejected):
            await store.run(refused)
        await roll_back(store, lambda tx: tx.claim(worker, [share()], 1, None))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.run(wander_off), 0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.run(lambda tx: ask(tx, "SELECT pg_sleep(5)")), 0.05)

    async def none_is_open():
        states = await direct.run(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return not [state for (state,) in states if state and state.startswith("idle in transaction")]

    await eventually(none_is_open)

    async def free():
        return sum([len(await take(store, worker)) for _ in range(POOLED_SERVERS)])

    assert await eventually(free) == 5


async def test_a_server_process_that_dies_before_the_commit_has_no_effect(store, direct):
    job = a_job()

    async def work(tx):
        await tx.insert([job], key_retention=KEY_RETENTION)
        await direct.run(f"SELECT pg_terminate_backend({await server_process(tx)})")
        await tx.now()

    with pytest.raises(Unavailable) as caught:
        await store.run(work)
    assert not isinstance(caught.value, OutcomeUnknown)
    assert await read_all(store, [job.id]) == []


async def test_a_server_process_that_dies_at_the_commit_leaves_the_outcome_unknown(store, direct):
    """The pooler responds, but does not know the outcome either."""

    async def work(tx):
        await tx.insert([a_job()], key_retention=KEY_RETENTION)
        await direct.run(f"SELECT pg_terminate_backend({await server_process(tx)}, 5000)")

    with pytest.raises(OutcomeUnknown):
        await store.run(work)
    await put(store, a_job())


async def test_a_server_process_that_dies_in_the_commit_leaves_the_outcome_unknown(store, direct):
    """Its last message reaches the client and must not be taken for the result of the commit."""
    await direct.run(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'"
    )
    await direct.run(
        "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON holdfast_live DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION dawdle()"
    )

    async def committing():
        return await direct.run(
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND query = 'COMMIT' AND wait_event = 'PgSleep'"
        )

    try:
        task = asyncio.create_task(put(store, a_job()))
        ((pid,),) = await eventually(committing)
        await direct.run(f"SELECT pg_terminate_backend({pid})")
        with pytest.raises(OutcomeUnknown):
            await task
    finally:
        await direct.run("DROP FUNCTION dawdle CASCADE")
    await put(store, a_job())


# Work


async def test_a_job_passes_through_all_states_behind_a_pooler(manual_store, clock):
    """Insert, keys, claim, renew, retry, promote, reap, settle, find; each transaction on any free server."""
    store = manual_store
    job = a_job(idempotency_key="order-1", max_attempts=3)
    later = a_job(delay=seconds(60))
    async with traffic(store):
        await put(store, job, later)
        assert (await put(store, a_job(idempotency_key="order-1")))[0].id == job.id
        worker = await enter(store)
        assert [lane for lane, _ in await store.single(lambda tx: tx.lanes(["mail"], 10))] == [MAIL]
        (held,) = await take(store, worker)
        assert await store.single(lambda tx: tx.renew(worker, seconds(15)))
        assert await report(store, held, error()) == {job.id}
        assert (await read(store, job)).status is Status.RETRYING
        await clock.advance(seconds(10))
        assert await store.single(lambda tx: tx.promote(10)) == 1
        (held,) = await take(store, worker)
        await clock.expire()
        assert not await store.single(lambda tx: tx.renew(worker, seconds(15)))
        assert await reap_all(store) == 1
        assert await report(store, held) == set()
        successor = await enter(store)
        (held,) = await take(store, successor)
        assert await report(store, held) == {job.id}
        found = await store.read(lambda tx: tx.find(JobFilter(), Page()))
        assert {each.id: each.status for each in found} == {job.id: Status.SUCCEEDED, later.id: Status.SCHEDULED}
        assert (await read(store, job)).attempts == 3
        assert await store.single(lambda tx: tx.depart(successor))


async def test_concurrent_submissions_with_one_key_create_one_job_behind_a_pooler(store, other):
    """S10"""
    asked = [a_job(idempotency_key=f"order-{number % 20}") for number in range(200)]
    answers = await asyncio.gather(*(put(random.choice((store, other)), job) for job in asked))
    assert len({answer.id for (answer,) in answers}) == 20
    assert sum(answer.repeats is None for (answer,) in answers) == 20
    assert len(await store.read(lambda tx: tx.find(JobFilter(), Page(limit=500)))) == 20


async def test_many_tasks_share_a_few_server_connections_without_loss_or_duplicates(store, other):
    """P20, F23: statements of one client reach different servers."""
    jobs = [a_job(tenant=f"t{number % 10}") for number in range(1_000)]
    lanes = [Lane("mail", f"t{number}", 0) for number in range(10)]
    processes = set()
    starts, ends = Counter(), Counter()

    async def submit(batch):
        async def work(tx):
            processes.add(await server_process(tx))
            return await tx.insert(batch, key_retention=KEY_RETENTION)

        await random.choice((store, other)).run(work)

    async def work(node, dice):
        worker = await enter(node)
        while ends.total() < len(jobs):
            shares = [share(lane, max_jobs=4) for lane in dice.sample(lanes, 10)]
            held = await take(node, worker, *shares, limit=20)
            starts.update(job.id for job in held)
            assert len(held) <= 20
            assert await node.single(lambda tx: tx.renew(worker, seconds(15)))
            ends.update(await report(node, held) if held else ())
        assert await node.single(lambda tx: tx.depart(worker))

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        for start in range(0, len(jobs), 20):
            group.create_task(submit(jobs[start : start + 20]))
        for seed in range(20):
            group.create_task(work((store, other)[seed % 2], random.Random(seed)))
    assert len(processes) > 1
    assert starts == ends == Counter(job.id for job in jobs)
    assert {job.status for job in await read_all(store, [job.id for job in jobs])} == {Status.SUCCEEDED}


async def test_a_subscriber_behind_a_pooler_finds_work_by_polling(store, other):
    """P37: a pooler does not forward notifications, so the store does not rely on them."""
    subscription = store.listen(["mail"])
    worker = await enter(store)
    waits = asyncio.Event()

    async def wait_for_one():
        while not (held := await take(store, worker)):
            waits.set()
            await subscription.wait(600)
        return held[0].id

    for _ in range(3):
        waits.clear()
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            found = group.create_task(wait_for_one())
            await waits.wait()
            job = a_job()
            await put(other, job)
        assert found.result() == job.id
        subscription.reset()
    assert store._listener._task is None


async def test_table_maintenance_works_behind_a_busy_pooler(store, other, direct):
    """Partitions are created and dropped, and the live table is vacuumed, each on one server."""
    today = f"{datetime.now(UTC):%Y%m%d}"
    await direct.run(f"DROP TABLE holdfast_history_{today}")
    async with traffic(other):
        for _ in range(20):
            store._maintenance._next_partitions = store._maintenance._next_vacuum = 0.0
            await store.maintain_tables(RULE)
    assert await direct.value(f"SELECT to_regclass('holdfast_history_{today}') IS NOT NULL")


async def test_table_maintenance_times_out_on_a_lock_behind_a_pooler(store, direct):
    """Without a timeout it would queue for the table lock, and all other statements behind it."""
    today = f"{datetime.now(UTC):%Y%m%d}"
    await direct.run(f"DROP TABLE holdfast_history_{today}")
    holder = await asyncpg.connect(direct.url)
    try:
        await holder.execute("BEGIN; LOCK TABLE holdfast_history IN ACCESS EXCLUSIVE MODE")
        async with asyncio.timeout(8):
            await store._maintenance.create_partitions()
    finally:
        await holder.close()
    assert not await direct.value(f"SELECT to_regclass('holdfast_history_{today}') IS NOT NULL")
    await store.migrate()  # creates it again for the tests that follow


# Outages of the pooler


class Load:
    """Producers, workers and a reaper on some nodes, which continue after any outage."""

    def __init__(self, nodes, jobs):
        self.nodes = nodes
        self.jobs = jobs
        self.accepted = []
        self.settled = Counter()
        self.faults = 0
        self.over = asyncio.Event()

    async def insist(self, attempt):
        """Retry until it succeeds, also after an unknown outcome; any other error fails the test."""
        while True:
            try:
                return await attempt()
            except Unavailable:
                self.faults += 1
                await asyncio.sleep(0.05)  # pause of a client before it tries again

    async def submit(self, node, name, batches):
        for number in range(batches):
            keys = [f"{name}-{number}-{each}" for each in range(10)]
            answers = await self.insist(partial(self._put, node, keys))
            self.accepted.extend(answer.id for answer in answers)
            await asyncio.sleep(0.01)  # the submission rate

    async def _put(self, node, keys):
        return await put(node, *(a_job(idempotency_key=key, max_attempts=50) for key in keys))

    async def work(self, node):
        while not self.over.is_set():
            worker = await self.insist(partial(enter, node, seconds(1)))
            with contextlib.suppress(Unavailable):  # the reaper recovers its jobs
                await self._work_as(node, worker)

    async def _work_as(self, node, worker):
        while not self.over.is_set() and await node.single(lambda tx: tx.renew(worker, seconds(1))):
            held = await take(node, worker, share(max_jobs=10))
            self.settled.update(await report(node, held) if held else ())
            await asyncio.sleep(0.01)  # the interval at which a worker polls

    async def run_maintenance(self):
        while not self.over.is_set():
            await self.insist(partial(reap_all, self.nodes[0]))
            counts = await self.insist(lambda: self.nodes[0].read(lambda tx: tx.counts(JobFilter())))
            if len(self.accepted) == self.jobs and not counts:
                self.over.set()
            await asyncio.sleep(0.1)  # the interval of maintenance

    async def run(self, meanwhile):
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(4):
                node = self.nodes[number % 2]
                group.create_task(self.submit(node, f"producer-{number}", batches=self.jobs // 4 // 10))
            for number in range(6):
                group.create_task(self.work(self.nodes[number % 2]))
            group.create_task(self.run_maintenance())
            await meanwhile()


async def test_a_pooler_restart_under_load_causes_no_loss_and_no_duplicates(run, database_url, store):
    """F23: kill the pooler three times while jobs are submitted and run; all clients recover by themselves."""
    environment = run.servers.beside("pgbouncer")
    assert isinstance(environment, dict)
    with keep_servers(["pgbouncer"], environment) as keeper:
        pooler = keeper.found["pgbouncer"]
        assert isinstance(pooler, Server)
        url = at_database(pooler.url, urlsplit(database_url).path.lstrip("/"))
        nodes = [await open_store(url) for _ in range(2)]

        async def restart():
            for outage in range(3):
                # A part of the jobs before each outage, and the rest after it.
                await eventually(lambda jobs=300 * (outage + 1): has_settled(jobs))
                faults = load.faults
                await asyncio.to_thread(keeper.stop, "pgbouncer")
                await eventually(lambda faults=faults: has_failed(faults))
                await asyncio.to_thread(keeper.start, "pgbouncer")

        async def has_settled(jobs):
            return len(load.settled) >= jobs

        async def has_failed(faults):
            return load.faults > faults

        load = Load(nodes, jobs=2_000)
        try:
            await load.run(meanwhile=restart)
        finally:
            await asyncio.gather(*(node.aclose() for node in nodes))
    assert load.faults  # the outage was noticed
    assert len(set(load.accepted)) == load.jobs
    assert set(load.settled) <= set(load.accepted)
    assert set(load.settled.values()) == {1}
    found = await store.read(lambda tx: tx.find(JobFilter(), Page(limit=2 * load.jobs)))
    assert sorted(job.id for job in found) == sorted(load.accepted)  # each job is in one table, and there are no others
    assert {job.status for job in found} == {Status.SUCCEEDED}


async def test_a_database_that_is_down_behind_its_pooler_is_unavailable_until_it_returns(database_url):
    """The pooler still accepts connections."""
    with keep_servers(["postgres", "pgbouncer"], dict.fromkeys(VARIABLES.values(), "")) as keeper:
        pooler = keeper.found["pgbouncer"]
        assert isinstance(pooler, Server)
        store = await open_store(pooler.url)
        try:
            await store.migrate()
            await asyncio.to_thread(keeper.stop, "postgres")
            with pytest.raises(Unavailable):
                await open_store(pooler.url)
            await asyncio.to_thread(keeper.start, "postgres")

            async def back():
                with contextlib.suppress(Unavailable):
                    return await put(store, a_job())

            assert await eventually(back)
        finally:
            await store.aclose()
