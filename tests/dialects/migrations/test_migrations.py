"""Schema steps on each database: what they lead to, what they refuse, and who they leave in peace."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from holdfast.bench import measures
from holdfast.compose import open_store
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, SchemaMismatch
from holdfast.model.ids import new_job_id
from holdfast.store import migrate
from holdfast.store.console import dialect_of, open_console
from holdfast.store.migrate import Migration
from tests.dialects.migrations import golden
from tests.support.databases import migrate as migrate_url
from tests.support.long import LONG

AT_ONCE = 10
PROCESSES = AT_ONCE if LONG else 4
STEPS = migrate.migrations("sqlite")


def a_step(sql, version=9999):
    return Migration(version, "later", sql, hashlib.sha256(sql.encode()).hexdigest()[:32])


@pytest.fixture
def known(monkeypatch):
    """Make this process know other steps."""
    real = migrate.migrations

    def become(change):
        monkeypatch.setattr(migrate, "migrations", lambda dialect: change(real(dialect)))

    return become


async def ask(url, statement):
    console = await open_console(url)
    try:
        return await console.rows(statement)
    finally:
        await console.aclose()


async def on_store(url, call):
    store = await open_store(url)
    try:
        return await call(store)
    finally:
        await store.aclose()


async def applied(url):
    return [version for (version,) in await ask(url, "SELECT version FROM holdfast_schema ORDER BY version")]


def test_every_dialect_has_the_same_steps():
    names = {dialect: [step[:2] for step in migrate.migrations(dialect)] for dialect in ("postgres", "mysql", "sqlite")}
    assert names["postgres"] == names["mysql"] == names["sqlite"]


async def test_an_empty_database_comes_to_the_golden_schema(empty_database_url):
    await migrate_url(empty_database_url)
    found = await golden.describe(empty_database_url)
    assert found == golden.expected(dialect_of(empty_database_url)), (
        "the schema changed: if it should, run '.venv/bin/python -m tests.dialects.migrations.golden' and review it"
    )


async def test_migrating_again_does_nothing(empty_database_url):
    first = await on_store(empty_database_url, lambda store: store.migrate())
    assert first == [f"{step.version:04d}_{step.name}" for step in STEPS]
    before = await golden.describe(empty_database_url)
    stamps = await ask(empty_database_url, "SELECT version, applied_at FROM holdfast_schema ORDER BY version")
    assert await on_store(empty_database_url, lambda store: store.migrate()) == []
    assert await golden.describe(empty_database_url) == before
    assert await ask(empty_database_url, "SELECT version, applied_at FROM holdfast_schema ORDER BY version") == stamps
    await on_store(empty_database_url, lambda store: store.check_schema())


def test_processes_at_once_apply_each_step_once(empty_database_url, tmp_path):
    environment = os.environ | {"HOLDFAST_DATABASE_URL": empty_database_url}
    command = [sys.executable, "-m", "holdfast", "migrate", "--json"]
    nodes = [
        subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    said = [node.communicate() for node in nodes]
    assert [(node.returncode, complaint) for node, (_, complaint) in zip(nodes, said, strict=True)] == [
        (0, b"")
    ] * PROCESSES
    done = Counter(name for output, _ in said for name in json.loads(output)["applied"])
    assert done == {f"{step.version:04d}_{step.name}": 1 for step in STEPS}


async def test_ten_stores_of_one_process_at_once_apply_each_step_once(empty_database_url):
    done = await asyncio.gather(*[on_store(empty_database_url, lambda store: store.migrate()) for _ in range(AT_ONCE)])
    assert Counter(name for each in done for name in each) == {f"{s.version:04d}_{s.name}": 1 for s in STEPS}


async def test_a_newer_schema_is_refused(empty_database_url, known):
    later = a_step("CREATE TABLE holdfast_later (id INTEGER)")
    known(lambda migrations: [*migrations, later])
    await migrate_url(empty_database_url)
    known(lambda migrations: migrations)
    words = f"version 9999, this holdfast works with {STEPS[-1].version}: upgrade holdfast"
    with pytest.raises(SchemaMismatch, match=words):
        await on_store(empty_database_url, lambda store: store.check_schema())
    with pytest.raises(SchemaMismatch, match=words):
        await on_store(empty_database_url, lambda store: store.migrate())
    assert await applied(empty_database_url) == [*(step.version for step in STEPS), 9999]


async def test_an_older_schema_is_refused_until_it_is_migrated(empty_database_url, known):
    await migrate_url(empty_database_url)
    known(lambda migrations: [*migrations, a_step("CREATE TABLE holdfast_later (id INTEGER)")])
    with pytest.raises(
        SchemaMismatch, match=f"version {STEPS[-1].version}, .* works with 9999: run 'holdfast migrate'"
    ):
        await on_store(empty_database_url, lambda store: store.check_schema())
    assert await on_store(empty_database_url, lambda store: store.migrate()) == ["9999_later"]
    await on_store(empty_database_url, lambda store: store.check_schema())


async def test_a_database_without_tables_is_refused(empty_database_url):
    with pytest.raises(SchemaMismatch, match=r"version 0, .*: run 'holdfast migrate'"):
        await on_store(empty_database_url, lambda store: store.check_schema())


async def test_a_step_that_was_another_when_it_was_applied_is_refused(empty_database_url, known):
    await migrate_url(empty_database_url)
    known(lambda migrations: [migrations[0]._replace(checksum="another"), *migrations[1:]])
    for call in (lambda store: store.check_schema(), lambda store: store.migrate()):
        with pytest.raises(SchemaMismatch, match=r"step 0001_jobs .* differs .*use the build that made them"):
            await on_store(empty_database_url, call)


async def test_a_step_that_fails_is_not_recorded_and_can_be_mended(empty_database_url, known):
    await migrate_url(empty_database_url)
    table = "CREATE TABLE IF NOT EXISTS holdfast_later (id INTEGER);\n"
    known(lambda migrations: [*migrations, a_step(table + "INSERT INTO holdfast_absent VALUES (1);\n")])
    with pytest.raises(HoldfastError):
        await on_store(empty_database_url, lambda store: store.migrate())
    assert await applied(empty_database_url) == [step.version for step in STEPS]
    known(lambda migrations: [*migrations, a_step(table)])
    assert await on_store(empty_database_url, lambda store: store.migrate()) == ["9999_later"]
    assert await ask(empty_database_url, "SELECT * FROM holdfast_later") == []


async def test_a_running_node_is_not_disturbed_by_a_newer_one_that_migrates(empty_database_url, known):
    await migrate_url(empty_database_url)
    old = await Engine.open(await open_store(empty_database_url))
    try:
        await measures.enqueue_many(old, 50, tenants=3, progress=measures.quiet)
        known(lambda migrations: [*migrations, a_step("CREATE TABLE holdfast_later (id INTEGER)")])
        draining = asyncio.create_task(measures.drain(old, 100, progress=measures.quiet))
        assert await on_store(empty_database_url, lambda store: store.migrate()) == ["9999_later"]
        await measures.enqueue_many(old, 50, tenants=3, progress=measures.quiet)
        await draining
        assert await old.counts() == []
    finally:
        await old.aclose()


@pytest.mark.parametrize("version", [step.version for step in STEPS])
async def test_jobs_of_an_older_version_are_there_after_the_upgrade(empty_database_url, known, version):
    known(lambda migrations: [step for step in migrations if step.version <= version])
    await migrate_url(empty_database_url)
    job = new_job_id()
    given = {
        "id": {"postgres": f"'{job}'"}.get(dialect_of(empty_database_url), f"x'{job.hex}'"),
        "created_at": "1000000",
        "status": "0",
        "max_attempts": "5",
        "tenant": "'acme'",
        "queue": "'mail'",
        "type": "'send'",
        "payload": {"postgres": r"'\x7b7d'"}.get(dialect_of(empty_database_url), "x'7b7d'"),
    }
    given |= {"parked": "0", "seq": "1"} if dialect_of(empty_database_url) == "mysql" else {}
    await ask(
        empty_database_url, f"INSERT INTO holdfast_live ({', '.join(given)}) VALUES ({', '.join(given.values())})"
    )
    known(lambda migrations: migrations)
    await migrate_url(empty_database_url)
    (found,) = await on_store(empty_database_url, lambda store: store.single(lambda tx: tx.get([job])))
    assert (found.tenant, found.queue, found.payload) == ("acme", "mail", b"{}")
