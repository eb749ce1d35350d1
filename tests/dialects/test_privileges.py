"""The grants of the guide on privileges: the migration and a node work with them, and a node needs each of them."""

import asyncio
import re
from urllib.parse import urlsplit

import msgspec
import pytest

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from holdfast.telemetry.events import LoopFailed
from tests.architecture.source import ROOT
from tests.support.builders import a_worker
from tests.support.clock import Console
from tests.support.databases import at_database, migrate
from tests.support.docs_runner import blocks
from tests.support.eventually import eventually
from tests.support.outages import outages

PAGE = ROOT / "docs" / "guide" / "privileges.md"
PASSWORD = "s3cret"
SERVERS = ("postgres", "mysql")
ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE")


def statements(first: str) -> list[str]:
    """Return the SQL statements of the block that begins with this text."""
    (block,) = [block for block in blocks(PAGE) if block.text.startswith(first)]
    return [each.strip().replace("…", PASSWORD) for each in re.split(r";\n", block.text) if each.strip()]


def pytest_generate_tests(metafunc):
    if "server" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("databases")
        chosen = set(metafunc.config.getoption("--db") or SERVERS).intersection(marker.args if marker else SERVERS)
        metafunc.parametrize("server", [name for name in SERVERS if name in chosen], indirect=True, scope="module")


@pytest.fixture(scope="module")
def server(request):
    with outages(request.param) as made:
        if isinstance(made, str):
            pytest.skip(made)
        yield made


def url_of(server, user):
    parts = urlsplit(at_database(server.admin_url, "jobs"))
    return parts._replace(netloc=f"{user}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


@pytest.fixture(scope="module")
def prepared(server):
    """Server with a database that was prepared as the guide says."""
    asyncio.run(prepare(server))
    return server


async def prepare(server):
    async with Console(server.admin_url) as console:
        for statement in statements("CREATE ROLE" if server.dialect == "postgres" else "CREATE DATABASE"):
            await console.run(statement)
    if server.dialect == "postgres":
        async with Console(at_database(server.admin_url, "jobs")) as console:
            for statement in statements("REVOKE ALL ON DATABASE"):
                await console.run(statement)
    await migrate(url_of(server, "holdfast_owner"))


async def work(server):
    """Use the database as nodes do: submit, claim, record, settle, cancel, delete, limit, maintain."""
    failures = []

    def emit(event):
        if isinstance(event, LoopFailed):
            failures.append(event)

    settings = msgspec.structs.replace(Settings(), database_url=url_of(server, "holdfast_node"))
    engine = await open_engine(settings, emit=emit)
    try:
        worker = a_worker()
        await engine.workers.register(worker, seconds(60))
        claims = engine.attempts.claims(worker.id, ["privileges"])
        spec = JobSpec("send", {}, queue="privileges", max_attempts=1)
        receipts = await engine.jobs.submit_many([spec] * 3)
        claims.on_ready([])
        done, dead, *_ = await claims.claim(10)
        held = HeldJob(done.id, done.fence, worker.id)
        assert await engine.attempts.record_step(held, Step("a", StepState.DONE, b"1"))
        assert await engine.attempts.settle(done, Succeeded())
        assert await engine.attempts.settle(dead, Failed(Failure("E", "m")))
        await engine.jobs.apply("delete", done.id, tenant=None)
        assert await engine.jobs.cancel([receipt.id for receipt in receipts], reason="enough")
        await engine.workers.depart(worker.id)
        await maintain(engine)
    finally:
        await engine.aclose()
    assert failures == []


async def maintain(engine):
    """Run all maintenance loops once; the last of them has run when the statistics are there."""
    stop = asyncio.Event()
    before = await engine.store.single(lambda tx: tx.rollup_cursor())

    async def rolled_up():
        return (await engine.store.single(lambda tx: tx.rollup_cursor())).seq > before.seq

    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run_maintenance(stop))
        await eventually(rolled_up)
        stop.set()


async def test_a_node_works_with_the_grants_of_the_guide(prepared):
    await work(prepared)


@pytest.mark.parametrize("privilege", ROWS)
async def test_a_node_needs_each_grant(prepared, privilege):
    tables = "ALL TABLES IN SCHEMA public" if prepared.dialect == "postgres" else "jobs.*"
    async with Console(at_database(prepared.admin_url, "jobs")) as console:
        await console.run(f"REVOKE {privilege} ON {tables} FROM holdfast_node")
        try:
            with pytest.raises(HoldfastError):
                await work(prepared)
        finally:
            await console.run(f"GRANT {privilege} ON {tables} TO holdfast_node")


async def test_a_node_cannot_change_the_schema(prepared):
    async with Console(url_of(prepared, "holdfast_node")) as console:
        for statement in ("CREATE TABLE other (id INTEGER)", "DROP TABLE holdfast_live"):
            with pytest.raises(Exception, match=r"(?i)denied|owner"):
                await console.run(statement)


MYSQL_OWNER = re.search(r"^GRANT (.*) ON jobs\.\* TO holdfast_owner", PAGE.read_text(), re.MULTILINE)[1].split(", ")


@pytest.mark.databases("mysql")  # the owner of a PostgreSQL database needs no grants
@pytest.mark.parametrize("privilege", MYSQL_OWNER)
async def test_the_migration_needs_each_grant_on_mysql(prepared, privilege):
    async with Console(prepared.admin_url) as console:
        await console.run("DROP DATABASE jobs")
        await console.run("CREATE DATABASE jobs")
        await console.run(f"REVOKE {privilege} ON jobs.* FROM holdfast_owner")
        try:
            with pytest.raises(HoldfastError):
                await migrate(url_of(prepared, "holdfast_owner"))
        finally:
            await console.run(f"GRANT {privilege} ON jobs.* TO holdfast_owner")
            await console.run("DROP DATABASE jobs")
            await console.run("CREATE DATABASE jobs")
            await migrate(url_of(prepared, "holdfast_owner"))


@pytest.mark.databases("postgres")  # only it has partitions
async def test_a_node_that_acts_as_the_owner_creates_partitions(prepared):
    partitions = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = 'holdfast_history'::regclass"
    async with Console(at_database(prepared.admin_url, "jobs")) as console:
        await console.run("DROP TABLE IF EXISTS " + ", ".join(await days(console)))
        assert await console.value(partitions) == 1
        for statement in statements("GRANT holdfast_owner TO"):
            await console.run(statement)
        await work(prepared)
        assert await console.value(partitions) > 1


async def days(console):
    """Return the names of the partitions of days, or a name that does not exist."""
    rows = await console.run("SELECT relname::text FROM pg_class WHERE relname ~ '^holdfast_history_[0-9]{8}$'")
    return [name for (name,) in rows] or ["holdfast_history_00000000"]
