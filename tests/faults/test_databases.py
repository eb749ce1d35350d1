"""The database fails under workers: every accepted job ends once, and all workers claim again."""

import asyncio
import itertools
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from signal import SIGKILL

import msgspec
import pytest

from holdfast.compose import open_engine, open_store
from holdfast.config import Settings
from holdfast.errors import Unavailable
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.state import Status
from holdfast.model.time import Duration, seconds
from tests.support import effects, nodes
from tests.support.builders import enter, hold, read, reap_once, share
from tests.support.clock import Console, dialect_of
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.lossy_proxy import lossy_proxy
from tests.support.outages import Client, all_ended, check_all
from tests.support.proxy import proxied

SOON = RetryRule(base=Duration(50_000), cap=Duration(200_000), jitter=0.5)
_number = itertools.count()


@pytest.fixture
async def url(private_server):
    return await private_server.new_database()


@pytest.fixture
async def engine(url):
    opened = await open_engine(msgspec.structs.replace(Settings(), database_url=url))
    yield opened
    await opened.aclose()


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db").create()


@pytest.fixture
def start(url, tmp_path, ledger):
    """Start a node that ends with the test."""
    with ExitStack() as stack:

        def one(at=url, **options):
            options = {"ledger": ledger.path, "queues": "default:20", "lease": 2.0} | options
            return stack.enter_context(nodes.node(at, tmp_path, **options))

        yield one


def a_job(kind="sink", /, delay=None, queue="default", **payload):
    key = f"job-{next(_number)}"
    payload = {"key": key, **payload}
    return JobSpec(kind, payload, queue=queue, idempotency_key=key, max_attempts=200, retry=SOON, delay=delay)


def in_every_stage(n):
    """Submit waiting, delayed, long, short and first failing jobs for each isolation."""
    for number in range(n):
        yield a_job(sleep=0.01)
        yield a_job("sink_thread", sleep=0.02)
        yield a_job(action="fail_times", amount=2)
        if number % 8 == 0:
            yield a_job(delay=seconds(2))
            yield a_job(sleep=3)
            yield a_job("sink_process", sleep=0.5)


async def keep_submitting(client, stop):
    for job in in_every_stage(10_000):
        if stop.is_set():
            return
        await client.submit(job)
        await asyncio.sleep(0.03)  # the submission rate, independent of the database


async def at_work(engine, *workers):
    """Wait until all these nodes have registered their workers."""

    async def registered():
        pids = {worker.info.pid for worker in await engine.workers.all()}
        return all(node.children() and pids.issuperset(node.children()) for node in workers)

    await eventually(registered)


async def started_more(ledger, more):
    """Wait until this many more handlers have started."""
    before = ledger.count("start")

    async def so_many():
        return ledger.count("start") >= before + more

    await eventually(so_many, within=60)


@pytest.mark.parametrize("ends", [("crash", 0.0, 3.0), ("shut_down", 3.0)], ids=["crash", "shut down"])
async def test_jobs_in_every_state_survive_the_end_of_the_database(private_server, engine, ledger, start, ends):
    """F08, F09, P14, S1–S8, L3: unavailable for less and for more than a lease, while clients keep submitting."""
    workers = [start(processes=1), start(processes=1)]
    await at_work(engine, *workers)
    client = Client(engine)
    for job in in_every_stage(10):
        await client.submit(job)
    stop = asyncio.Event()
    submitting = asyncio.create_task(keep_submitting(client, stop))
    end, *lengths = ends
    for away in lengths:
        await started_more(ledger, 20)
        getattr(private_server, end)()
        await asyncio.sleep(away)  # the length of the fault
        private_server.start()
    await started_more(ledger, 20)
    stop.set()
    await submitting
    await all_ended(engine, client.accepted.values())
    await check_all(engine, client.accepted.values(), ledger)
    assert client.unanswered > 0
    assert all(node.alive() for node in workers)


async def test_nothing_is_lost_when_all_processes_of_a_machine_are_killed_at_once(
    private_server, engine, ledger, start
):
    """F44: the database and all nodes are killed together while clients submit, and started again."""
    workers = [start(processes=1), start(processes=1)]
    await at_work(engine, *workers)
    client = Client(engine)
    for job in in_every_stage(10):
        await client.submit(job)
    stop = asyncio.Event()
    submitting = asyncio.create_task(keep_submitting(client, stop))
    await started_more(ledger, 20)
    for node in workers:
        node.signal_all(SIGKILL)
    private_server.crash()
    private_server.start()
    for _ in workers:
        start(processes=1)
    await started_more(ledger, 20)
    stop.set()
    await submitting
    await all_ended(engine, client.accepted.values())
    await check_all(engine, client.accepted.values(), ledger)


async def test_all_workers_claim_again_after_repeated_resets_of_every_connection(
    private_server, url, engine, ledger, start
):
    """P05, F09, L3: twenty times, as soon as a worker is back; no job is lost and every worker claims again."""
    workers = [start(processes=2), start()]
    await at_work(engine, *workers)
    client = Client(engine)
    stop = asyncio.Event()
    submitting = asyncio.create_task(keep_submitting(client, stop))
    await started_more(ledger, 10)
    cut = 0
    for one_in in [1, 2] * 10:
        cut += await eventually(partial(private_server.reset, url, one_in=one_in))
    assert cut >= 20
    before = {entry.job for entry in ledger.entries("start")}
    children = {child for node in workers for child in node.children()}

    async def everybody_claims():
        for job in [a_job(sleep=0.2) for _ in range(20)]:
            await client.submit(job)
        return children <= {entry.pid for entry in ledger.entries("start") if entry.job not in before}

    await eventually(everybody_claims)
    stop.set()
    await submitting
    await all_ended(engine, client.accepted.values())
    await check_all(engine, client.accepted.values(), ledger)
    assert all(node.alive() for node in workers)


async def test_requests_with_lost_responses_take_effect_once(url, engine, ledger, start):
    """F10, S2, S4, S11: lost requests and lost responses to commits of submits, claims, settles and steps."""
    async with Console(url) as console:
        await console.run(effects.TABLE)
    sql = effects.INSERT[dialect_of(url)]
    async with lossy_proxy(url, seed=7) as (proxy, through):
        workers = [start(through), start(through)]
        await at_work(engine, *workers)
        other = await open_engine(msgspec.structs.replace(Settings(), database_url=through))
        client = Client(other)
        proxy.chance = 0.03
        submitted = 0
        while proxy.lost_requests < 40 or proxy.lost_responses < 40:
            submitted += 1
            await client.submit(a_job("effect", sql=sql, args=[f"e{submitted}", "write"]))
            await client.submit(a_job(sleep=0.01))
        proxy.chance = 0.0
        await all_ended(engine, client.accepted.values())
        await other.aclose()
    await check_all(engine, client.accepted.values(), ledger)
    async with Console(url) as console:
        rows = await console.run("SELECT job, count(*) FROM ledger_tx GROUP BY job")
    assert sorted(rows) == sorted((f"e{n + 1}", 1) for n in range(submitted))


@pytest.mark.parametrize("place", ["sink", "sink_process"])
async def test_a_node_with_silent_connections_stops_before_others_take_over(url, engine, ledger, start, place):
    """F11, P22, P39, S6: no error is reported; only the lease ends the handlers, in time."""
    client = Client(engine)
    async with proxied(url) as first, proxied(url) as second:
        pairs = [
            (start(through, queues=f"default:2,of-{n}:1"), proxy, f"of-{n}")
            for n, (proxy, through) in enumerate((first, second))
        ]
        await at_work(engine, *[node for node, *_ in pairs])
        spec = a_job(place, sleep=600, held=True)
        await client.submit(spec)
        await started_more(ledger, 1)
        (begin,) = ledger.entries("start")
        ((node, proxy, its_queue),) = [pair for pair in pairs if begin.pid in pair[0].all_processes()]
        proxy.black_hole()
        await started_more(ledger, 1)
        ledger.write("go", job="", key=spec.payload["key"], attempt=0, fence=0, pid=0)
        await all_ended(engine, client.accepted.values())
        (_, again) = ledger.entries("start")
        assert again.fence > begin.fence
        stopped = ledger.entries("cancelled")
        assert [entry.at < again.at for entry in stopped] == ([] if place == "sink_process" else [True])
        assert begin.pid not in node.all_processes()
        proxy.heal()
        await client.submit(a_job(queue=its_queue))
        await all_ended(engine, client.accepted.values())
        assert node.alive()
    await check_all(engine, client.accepted.values())


@pytest.mark.databases("postgres", "mysql")
async def test_a_client_silent_in_a_transaction_blocks_its_jobs_for_seconds_only(store, database_url):
    """F11: a connection dies in a transaction; its lock on the worker would block the reaper for hours."""
    other = await open_store(database_url)
    worker = await enter(store, lease=seconds(3))
    (job,) = await hold(store, worker)
    locked, silence = asyncio.Event(), asyncio.Event()

    async def lock(tx):
        await tx.claim(worker, [share()], 1, None)
        await tx.depart(worker)  # PostgreSQL locks the row to claim, MySQL to read the held jobs
        locked.set()
        await silence.wait()

    silent = asyncio.create_task(store.run(lock))
    await locked.wait()

    async def reaped():
        return await reap_once(other)

    assert await eventually(reaped) == 1
    assert not silent.done()
    silence.set()
    with pytest.raises(Unavailable):
        await silent
    assert (await read(other, job)).status is Status.READY
    await other.aclose()


# SQLite has no server that could die, but other processes can lock the file


@pytest.fixture
def file_of_its_own(database_url, tmp_path, ledger):
    """Return a node on the test's SQLite file, and that file."""
    with nodes.node(database_url, tmp_path, ledger=ledger.path, queues="default:10", lease=2.0) as node:
        yield node, database_url.removeprefix("sqlite:///")


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("end", ["release", "kill"])
async def test_a_file_locked_for_longer_than_a_lease_loses_nothing(database_url, file_of_its_own, ledger, end):
    """F08, F21, P14: another process holds the write lock; it releases it or is killed during its transaction.

    Jobs become due meanwhile and start afterwards.
    """
    node, file = file_of_its_own
    engine = await open_engine(msgspec.structs.replace(Settings(), database_url=database_url))
    client = Client(engine)
    await at_work(engine, node)
    stop = asyncio.Event()
    submitting = asyncio.create_task(keep_submitting(client, stop))
    await started_more(ledger, 10)
    program = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None); "
        "db.execute('BEGIN IMMEDIATE'); db.execute('DELETE FROM holdfast_live'); print('locked', flush=True); "
        "sys.stdin.read(); db.execute('ROLLBACK')"
    )
    locker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, file, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert await locker.stdout.readline() == b"locked\n"

    async def leases_are_over():
        now = await engine.store.read(lambda tx: tx.now())
        return all(worker.expires_at < now for worker in await engine.workers.all())

    await eventually(leases_are_over)
    if end == "kill":
        locker.kill()
    else:
        locker.stdin.close()
    await locker.wait()
    await started_more(ledger, 10)
    stop.set()
    await submitting
    await all_ended(engine, client.accepted.values())
    await check_all(engine, client.accepted.values(), ledger)
    assert node.alive()
    await engine.aclose()
