"""Migrations on each database: the resulting schema, refused schemas, upgrades, and concurrent nodes."""

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
from holdfast.model.state import Status
from holdfast.store import migrate
from holdfast.store.console import dialect_of, open_console
from holdfast.store.migrate import Migration
from tests.dialects.migrations import golden, pins
from tests.support.databases import migrate as migrate_url
from tests.support.long import LONG

STORES = 10
PROCESSES = STORES if LONG else 4
MIGRATIONS = migrate.migrations("sqlite")
NAMES = [f"{migration.version:04d}_{migration.name}" for migration in MIGRATIONS]
NEXT = MIGRATIONS[-1].version + 1
NEXT_NAME = f"{NEXT:04d}_next"


def next_migration(sql):
    """Return a synthetic migration that follows the released ones."""
    return Migration(NEXT, "next", sql, hashlib.sha256(sql.encode()).hexdigest()[:32])


@pytest.fixture
def known(monkeypatch):
    """Return a function that changes which migrations this process knows."""
    real = migrate.migrations

    def become(change):
        monkeypatch.setattr(migrate, "migrations", lambda dialect: change(real(dialect)))

    return become


async def query(url, statement):
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
    return [version for (version,) in await query(url, "SELECT version FROM holdfast_schema ORDER BY version")]


def test_every_dialect_has_the_same_migrations():
    names = {
        dialect: [(migration.version, migration.name) for migration in migrate.migrations(dialect)]
        for dialect in ("postgres", "mysql", "sqlite")
    }
    assert names["postgres"] == names["mysql"] == names["sqlite"]


def test_every_schema_step_has_its_pinned_checksum():
    """F38: nodes refuse a database whose step has another checksum, so a released step never changes."""
    released, pinned = pins.read()
    assert pins.changed(released, pinned, pins.current()) == [], "undo the change and add a step"
    assert pins.current() == pinned, "run .venv/bin/python -m tests.dialects.migrations.golden and review the diff"


def test_a_changed_or_removed_released_step_is_found():
    pinned = {"sqlite": {"0001_initial": "a", "0002_next": "b"}, "mysql": {"0001_initial": "c"}}
    now = {"sqlite": {"0001_initial": "x", "0002_next": "y"}}
    assert pins.changed(["0001_initial"], pinned, now) == ["sqlite/0001_initial", "mysql/0001_initial"]
    assert pins.changed([], pinned, now) == []


async def test_migrating_an_empty_database_creates_the_golden_schema(empty_database_url):
    await migrate_url(empty_database_url)
    found = await golden.describe(empty_database_url)
    assert found == golden.expected(dialect_of(empty_database_url)), (
        "the schema changed; if this is intended, run 'python -m tests.dialects.migrations.golden'"
    )


async def test_migrating_twice_changes_nothing(empty_database_url):
    first = await on_store(empty_database_url, lambda store: store.migrate())
    assert first == NAMES
    before = await golden.describe(empty_database_url)
    stamps = await query(empty_database_url, "SELECT version, applied_at FROM holdfast_schema ORDER BY version")
    assert await on_store(empty_database_url, lambda store: store.migrate()) == []
    assert await golden.describe(empty_database_url) == before
    assert await query(empty_database_url, "SELECT version, applied_at FROM holdfast_schema ORDER BY version") == stamps
    await on_store(empty_database_url, lambda store: store.check_schema())


def test_concurrent_processes_apply_each_migration_once(empty_database_url, tmp_path):
    environment = os.environ | {"HOLDFAST_DATABASE_URL": empty_database_url}
    command = [sys.executable, "-m", "holdfast", "migrate", "--json"]
    nodes = [
        subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    outputs = [node.communicate() for node in nodes]
    assert [(node.returncode, stderr) for node, (_, stderr) in zip(nodes, outputs, strict=True)] == [
        (0, b"")
    ] * PROCESSES
    applied_names = Counter(name for stdout, _ in outputs for name in json.loads(stdout)["applied"])
    assert applied_names == Counter(NAMES)


async def test_ten_concurrent_stores_of_one_process_apply_each_migration_once(empty_database_url):
    results = await asyncio.gather(
        *[on_store(empty_database_url, lambda store: store.migrate()) for _ in range(STORES)]
    )
    assert Counter(name for names in results for name in names) == Counter(NAMES)


async def test_a_newer_schema_is_refused(empty_database_url, known):
    known(lambda migrations: [*migrations, next_migration("CREATE TABLE holdfast_later (id INTEGER)")])
    await migrate_url(empty_database_url)
    known(lambda migrations: migrations)
    message = f"version {NEXT}, this holdfast works with {MIGRATIONS[-1].version}: upgrade holdfast"
    with pytest.raises(SchemaMismatch, match=message):
        await on_store(empty_database_url, lambda store: store.check_schema())
    with pytest.raises(SchemaMismatch, match=message):
        await on_store(empty_database_url, lambda store: store.migrate())
    assert await applied(empty_database_url) == [*(migration.version for migration in MIGRATIONS), NEXT]


async def test_an_older_schema_is_refused_until_it_is_migrated(empty_database_url, known):
    """F38"""
    await migrate_url(empty_database_url)
    known(lambda migrations: [*migrations, next_migration("CREATE TABLE holdfast_later (id INTEGER)")])
    message = f"version {MIGRATIONS[-1].version}, .* works with {NEXT}: run 'holdfast migrate'"
    with pytest.raises(SchemaMismatch, match=message):
        await on_store(empty_database_url, lambda store: store.check_schema())
    assert await on_store(empty_database_url, lambda store: store.migrate()) == [NEXT_NAME]
    await on_store(empty_database_url, lambda store: store.check_schema())


async def test_a_database_without_tables_is_refused(empty_database_url):
    with pytest.raises(SchemaMismatch, match=r"version 0, .*: run 'holdfast migrate'"):
        await on_store(empty_database_url, lambda store: store.check_schema())


async def test_a_migration_that_changed_after_it_was_applied_is_refused(empty_database_url, known):
    await migrate_url(empty_database_url)
    known(lambda migrations: [migrations[0]._replace(checksum="another"), *migrations[1:]])
    for call in (lambda store: store.check_schema(), lambda store: store.migrate()):
        with pytest.raises(SchemaMismatch, match=rf"migration {NAMES[0]} .* differs .*use that build"):
            await on_store(empty_database_url, call)


async def test_a_failed_migration_is_not_recorded_and_can_be_repeated(empty_database_url, known):
    await migrate_url(empty_database_url)
    table = "CREATE TABLE IF NOT EXISTS holdfast_later (id INTEGER);\n"
    known(lambda migrations: [*migrations, next_migration(table + "INSERT INTO holdfast_absent VALUES (1);\n")])
    with pytest.raises(HoldfastError):
        await on_store(empty_database_url, lambda store: store.migrate())
    assert await applied(empty_database_url) == [migration.version for migration in MIGRATIONS]
    known(lambda migrations: [*migrations, next_migration(table)])
    assert await on_store(empty_database_url, lambda store: store.migrate()) == [NEXT_NAME]
    assert await query(empty_database_url, "SELECT * FROM holdfast_later") == []


async def test_a_running_node_keeps_working_while_a_newer_node_migrates(empty_database_url, known):
    """F38: it submits, claims and settles during and after the migration, and no job is lost."""
    await migrate_url(empty_database_url)
    old = await Engine.open(await open_store(empty_database_url))
    try:
        await measures.enqueue_many(old, 50, tenants=3, progress=measures.no_progress)
        known(lambda migrations: [*migrations, next_migration("CREATE TABLE holdfast_later (id INTEGER)")])
        draining = asyncio.create_task(measures.drain(old, 100, progress=measures.no_progress))
        assert await on_store(empty_database_url, lambda store: store.migrate()) == [NEXT_NAME]
        await measures.enqueue_many(old, 50, tenants=3, progress=measures.no_progress)
        await draining
        assert await old.jobs.counts() == []
    finally:
        await old.aclose()


async def test_jobs_survive_an_upgrade_that_changes_their_table(empty_database_url, known):
    await migrate_url(empty_database_url)
    job = new_job_id()
    row = {
        "id": {"postgres": f"'{job}'"}.get(dialect_of(empty_database_url), f"x'{job.hex}'"),
        "created_at": "1000000",
        "status": str(Status.READY.code),
        "max_attempts": "5",
        "tenant": "'acme'",
        "queue": "'mail'",
        "type": "'send'",
        "payload": {"postgres": r"'\x7b7d'"}.get(dialect_of(empty_database_url), "x'7b7d'"),
    }
    row |= {"parked": "0", "seq": "1"} if dialect_of(empty_database_url) == "mysql" else {}
    await query(empty_database_url, f"INSERT INTO holdfast_live ({', '.join(row)}) VALUES ({', '.join(row.values())})")
    change = "ALTER TABLE holdfast_live ADD COLUMN later INTEGER NOT NULL DEFAULT 7;\n"
    known(lambda migrations: [*migrations, next_migration(change)])
    assert await on_store(empty_database_url, lambda store: store.migrate()) == [NEXT_NAME]
    assert await applied(empty_database_url) == [*(migration.version for migration in MIGRATIONS), NEXT]
    assert await query(empty_database_url, "SELECT later FROM holdfast_live") == [(7,)]
    (found,) = await on_store(empty_database_url, lambda store: store.single(lambda tx: tx.get([job])))
    assert (found.tenant, found.queue, found.payload) == ("acme", "mail", b"{}")
