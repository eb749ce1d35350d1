"""The database fails under workers: every accepted job ends once, and all workers claim again."""

import asyncio
import itertools
from contextlib import ExitStack

import msgspec
import pytest

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.time import Duration, seconds
from tests.support import nodes
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.outages import Client, all_ended, check_all, outages

SERVERS = ("postgres", "mysql")
SOON = RetryRule(base=Duration(50_000), cap=Duration(200_000), jitter=0.5)
_number = itertools.count()


def pytest_generate_tests(metafunc):
    if "server" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--db") or SERVERS
        metafunc.parametrize("server", [name for name in SERVERS if name in asked], indirect=True, scope="module")


@pytest.fixture(scope="module")
def server(request):
    with outages(request.param) as made:
        if isinstance(made, str):
            pytest.skip(made)
        yield made


@pytest.fixture
async def url(server):
    return await server.new_database()


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
    """Start a node; all are ended with the test."""
    with ExitStack() as stack:

        def one(**options):
            options = {"ledger": ledger.path, "queues": "default:20", "lease": 2.0} | options
            return stack.enter_context(nodes.node(url, tmp_path, **options))

        yield one


def a_job(kind="sink", /, delay=None, **payload):
    key = f"job-{next(_number)}"
    return JobSpec(
        type=kind, payload={"key": key, **payload}, idempotency_key=key, max_attempts=50, retry=SOON, delay=delay
    )  # fmt: skip


def in_every_stage(n):
    """Jobs that wait, are due later, run for long or shortly, and fail at first, in all places a handler runs in."""
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
        await asyncio.sleep(0.03)


async def at_work(engine, *workers):
    """Wait until all these nodes have registered their workers."""

    async def registered():
        pids = {worker.info.pid for worker in await engine.workers()}
        return all(node.children() and pids.issuperset(node.children()) for node in workers)

    await eventually(registered)


async def begun(ledger, more):
    """Wait until so many more handlers have started."""
    before = ledger.count("start")

    async def so_many():
        return ledger.count("start") >= before + more

    await eventually(so_many, within=60)


@pytest.mark.parametrize("end", ["crash", "shut_down"])
async def test_jobs_in_every_stage_outlive_the_end_of_the_database(server, engine, ledger, start, end):
    """F08, F09, P14, S1–S8, L3: away for less and for longer than a lease, while clients go on submitting."""
    workers = [start(processes=1), start(processes=1)]
    await at_work(engine, *workers)
    client = Client(engine)
    for job in in_every_stage(10):
        await client.submit(job)
    stop = asyncio.Event()
    submitting = asyncio.create_task(keep_submitting(client, stop))
    for away in (0.0, 3.0):
        await begun(ledger, 20)
        getattr(server, end)()
        await asyncio.sleep(away)
        server.start()
    await begun(ledger, 20)
    stop.set()
    await submitting
    await all_ended(engine, client.accepted.values())
    await check_all(engine, client.accepted.values(), ledger)
    assert client.unanswered > 0
    assert all(node.alive() for node in workers)
