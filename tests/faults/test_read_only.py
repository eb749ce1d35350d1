"""F15, P30: sessions that began while the database was read-only keep that setting, and are replaced."""

import asyncio

import msgspec
import pytest

from holdfast.cli.checks.database import check_database
from holdfast.compose import open_engine, open_store
from holdfast.config import Settings
from holdfast.errors import Unavailable
from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.time import seconds
from tests.support import nodes
from tests.support.builders import a_job, enter, hold, put
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.outages import Client, all_ended, check_all

_SESSIONS = 4


@pytest.fixture
async def url(private_server):
    url = await private_server.new_database()
    yield url
    await private_server.set_read_only(url, False)


async def read_at_once(store):
    """Open several connections."""
    together = asyncio.Barrier(_SESSIONS)

    async def read(tx):
        await tx.now()
        await together.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(_SESSIONS):
            group.create_task(store.read(read))


async def test_a_store_writes_again_after_its_database_was_read_only(private_server, url):
    store = await open_store(url, pool_size=_SESSIONS)
    try:
        await put(store, a_job())
        await private_server.set_read_only(url, True)
        await private_server.reset(url)
        await eventually(lambda: raises_read_only(store))
        await read_at_once(store)
        await private_server.set_read_only(url, False)
        for _ in range(_SESSIONS + 1):
            await put(store, a_job())
    finally:
        await store.aclose()


async def raises_read_only(store):
    try:
        await put(store, a_job())
    except Unavailable as error:
        return "read-only" in str(error)
    return False


async def test_the_transaction_of_a_handler_reports_a_read_only_database_as_unavailable(private_server, url):
    store = await open_store(url)
    try:
        worker = await enter(store, lease=seconds(600))
        (job,) = await hold(store, worker)
        held = HeldJob(job.id, job.fence, worker)
        async with store.session(held, "first") as session:
            await session.fetch("SELECT 1")
        await private_server.set_read_only(url, True)
        await private_server.reset(url)

        async def open_session(key):
            async with store.session(held, key) as session:
                await session.fetch("SELECT 1")

        async def is_read_only():
            try:
                await open_session("second")
            except Unavailable as error:
                return "read-only" in str(error)
            return False

        await eventually(is_read_only)
        await private_server.set_read_only(url, False)
        await open_session("third")
    finally:
        await store.aclose()


async def findings(url):
    settings = msgspec.structs.replace(Settings(), database_url=url)
    return {finding.check: finding async for finding in check_database(settings, patience=60)}


async def test_doctor_names_the_setting_that_makes_a_database_read_only(private_server, url):
    assert (await findings(url))["writes"].level == "ok"
    await private_server.set_read_only(url, True)
    finding = (await findings(url))["writes"]
    await private_server.set_read_only(url, False)
    assert finding.level == "wrong"
    assert "read_only" in finding.text
    assert "read_only = off" in finding.fix.lower()


async def test_doctor_reports_a_standby(private_server, url):
    if private_server.dialect != "postgres":
        pytest.skip("the test has no replica of MySQL")
    private_server.become_standby()
    finding = (await findings(url))["writes"]
    await private_server.promote()
    assert finding.level == "wrong"
    assert "standby" in finding.text
    assert "PRIMARY" in finding.fix
    assert (await findings(url))["writes"].level == "ok"


async def test_workers_claim_again_after_the_database_was_read_only(private_server, url, tmp_path):
    """L3: for longer than a lease; no process is restarted by hand, and no job is lost."""
    ledger = Ledger(tmp_path / "ledger.db").create()
    engine = await open_engine(msgspec.structs.replace(Settings(), database_url=url))
    client = Client(engine)
    try:
        with nodes.node(url, tmp_path, ledger=ledger.path, queues="default:4", lease=2.0) as node:
            await client.submit(JobSpec("sink", {"key": "before"}, idempotency_key="before", max_attempts=9))
            await all_ended(engine, client.accepted.values())
            await private_server.set_read_only(url, True)
            await private_server.reset(url)

            async def leases_are_over():
                now = await engine.store.read(lambda tx: tx.now())
                return all(worker.expires_at < now for worker in await engine.workers.all())

            await eventually(leases_are_over)
            await eventually(lambda: raises_read_only(engine.store))
            await private_server.set_read_only(url, False)
            for number in range(20):
                key = f"after-{number}"
                await client.submit(JobSpec("sink", {"key": key}, idempotency_key=key, max_attempts=9))
            await all_ended(engine, client.accepted.values())
            assert node.alive()
        await check_all(engine, client.accepted.values(), ledger)
    finally:
        await engine.aclose()
