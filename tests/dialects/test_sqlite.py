"""SQLite: one file, many processes, one writer at a time."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import apsw
import pytest

from holdfast.compose import open_store
from holdfast.errors import Contention, Misconfigured, Rejected, SchemaMismatch, Unavailable
from holdfast.model.ids import new_worker_id
from holdfast.model.job import JobFilter, Page
from holdfast.model.state import Status
from holdfast.model.time import days, seconds
from holdfast.store.port.store import Retention
from holdfast.store.sqlite import connection
from holdfast.store.sqlite.batched_statements import BatchedStatements
from tests.support.builders import KEY_RETENTION, a_job, a_transition, enter, put, some_jobs, take
from tests.support.long import LONG

pytestmark = pytest.mark.databases("sqlite")

PRELUDE = """
import asyncio, json, sys
from holdfast.compose import open_store
from holdfast.model.state import Status
from holdfast.model.time import seconds
from tests.support.builders import a_job, a_transition, enter, put, share, some_jobs, take

async def main():
    store = await open_store(sys.argv[1])
    try:
        print(json.dumps(await act(store)))
    finally:
        await store.aclose()
"""

CLAIM_ALL = """
async def act(store):
    worker = await enter(store, lease=seconds(600))
    mine = []
    while jobs := await take(store, worker, share(max_jobs=10)):
        mine += [str(job.id) for job in jobs]
        await store.run(lambda tx: tx.apply([a_transition(job, Status.SUCCEEDED) for job in jobs]))
    return mine
"""


class Process:
    """Process that opens the same file and runs `act`, whose result must be JSON."""

    def __init__(self, url, act):
        script = PRELUDE + act + "asyncio.run(main())\n"
        self._running = subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE)

    async def result(self):
        output, _ = await asyncio.to_thread(self._running.communicate)
        assert self._running.returncode == 0
        return json.loads(output)


def file_in(url):
    return url.removeprefix("sqlite:///")


def console(url):
    """Return a connection that bypasses the store."""
    return apsw.Connection(file_in(url))


def wal_size(url):
    return Path(file_in(url) + "-wal").stat().st_size


# Many processes


async def test_eight_processes_claim_thousands_of_jobs_each_once(store, database_url):
    """P42. Ten thousand with HOLDFAST_LONG_TESTS=1."""
    jobs = some_jobs(10_000 if LONG else 2_000)
    await put(store, *jobs)
    processes = [Process(database_url, CLAIM_ALL) for _ in range(8)]
    claimed = [job_id for process in processes for job_id in await process.result()]
    assert sorted(claimed) == sorted(str(job.id) for job in jobs)
    assert await store.run(lambda tx: tx.counts(JobFilter())) == []


async def test_a_worker_is_woken_by_another_process(store, database_url):
    subscription = store.listen(["mail"])
    act = "async def act(store):\n    return [str(job.id) for job in await put(store, a_job())]\n"
    process = Process(database_url, act)
    assert await subscription.wait(60) == []
    (job_id,) = await process.result()
    found = await store.run(lambda tx: tx.find(JobFilter(), Page()))
    assert [str(job.id) for job in found] == [job_id]


async def test_every_worker_of_a_process_is_woken_by_another_process(store, database_url):
    subscriptions = [store.listen(["mail"]), store.listen(["mail", "sms"]), store.listen(["sms"])]
    waits = [asyncio.create_task(subscription.wait(60)) for subscription in subscriptions]
    other = await open_store(database_url)
    await put(other, a_job())
    assert await asyncio.gather(*waits) == [[], [], []]
    await other.aclose()


async def test_readers_do_not_wait_for_writers_and_see_committed_data(store, database_url):
    job = a_job()
    await put(store, job)
    with console(database_url) as writer:  # holds the write lock until the end of the block
        writer.execute("DELETE FROM holdfast_live")
        act = (
            f"async def act(store):\n    return len(await store.run(lambda tx: tx.find({JobFilter()!r}, {Page()!r})))\n"
        )
        imports = "from holdfast.model.job import JobFilter, Page\n"
        assert await Process(database_url, imports + act).result() == 1
        assert len(await store.run(lambda tx: tx.get([job.id]))) == 1
    assert await store.run(lambda tx: tx.get([job.id])) == []


async def test_a_lock_timeout_is_reported_as_contention(store, database_url, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)
    job = a_job()
    with console(database_url) as other:
        other.execute("DELETE FROM holdfast_live")
        with pytest.raises(Contention, match="locked by another process"):
            await put(store, job)
    await put(store, job)


# Positions


async def test_positions_are_unique(store, database_url):
    worker = await enter(store)
    highest = 0
    for _ in range(3):
        await put(store, *some_jobs(3))
        jobs = await take(store, worker)
        assert min(job.seq for job in jobs) > highest
        highest = max(job.seq for job in jobs)
        await store.run(lambda tx: tx.apply([a_transition(job, Status.SUCCEEDED) for job in jobs]))  # noqa: B023
        with console(database_url) as db:
            db.execute("DELETE FROM holdfast_history")
        reopened = await open_store(database_url)
        await put(reopened, a_job())
        (job,) = await take(reopened, worker)
        assert job.seq > highest
        highest = job.seq
        await reopened.aclose()


# Work on the writer thread


async def test_work_that_awaits_something_else_is_refused_and_rolled_back(store):
    first, second = some_jobs(2)

    async def before_the_first_statement(tx):
        await asyncio.sleep(0)
        return await tx.insert([first], key_retention=KEY_RETENTION)

    async def after_it(tx):
        await tx.insert([second], key_retention=KEY_RETENTION)
        await asyncio.sleep(0)

    for work in (before_the_first_statement, after_it):
        with pytest.raises(RuntimeError, match="awaited something other than its transaction"):
            await store.run(work)
    assert await store.run(lambda tx: tx.get([first.id, second.id])) == []
    await put(store, first)


async def test_work_without_a_statement_returns_its_result(store):
    async def work(tx):
        return 7

    assert await store.run(work) == 7


async def test_work_that_reads_and_then_writes_runs_again_with_the_write_lock(store):
    job = a_job()
    runs = []

    async def work(tx):
        there = await tx.get([job.id])
        runs.append(len(there))
        if not there:
            await tx.insert([job], key_retention=KEY_RETENTION)

    await asyncio.gather(*[store.run(work) for _ in range(20)])
    assert len(await store.run(lambda tx: tx.get([job.id]))) == 1


async def test_a_cancelled_caller_does_not_stop_its_transaction(store):
    subscription = store.listen(["mail"])
    job = a_job()
    caller = asyncio.create_task(put(store, job))
    await asyncio.sleep(0)  # now it is running
    caller.cancel()
    (news,) = await subscription.wait(60)
    assert news.lane.queue == "mail"
    assert caller.cancelled()
    assert len(await store.run(lambda tx: tx.get([job.id]))) == 1


async def test_a_forked_process_cannot_use_the_store_of_its_parent(store):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test needs a fork in a process with threads
        child = os.fork()
    if child == 0:
        try:
            store.run(lambda tx: tx.now()).send(None)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    await store.run(lambda tx: tx.now())


async def test_a_closed_store_raises_an_error(database_url):
    store = await open_store(database_url)
    await store.aclose()
    await store.aclose()
    with pytest.raises(Unavailable, match="closed"):
        await store.run(lambda tx: tx.now())


# The file


async def test_work_that_changes_nothing_writes_nothing(store, database_url):
    worker = await enter(store)
    await put(store, a_job())
    (job,) = await take(store, worker)
    stale = a_transition(job, Status.SUCCEEDED, fence=job.fence + 1)
    before = wal_size(database_url)
    for _ in range(3):
        assert await take(store, worker) == []
        assert await store.run(lambda tx: tx.apply([stale])) == set()
        assert await store.run(lambda tx: tx.promote(10)) == 0
        assert await store.run(lambda tx: tx.prune(Retention(days(1), days(1)), 10)) == 0
        assert not await store.run(lambda tx: tx.renew(new_worker_id(), seconds(1)))
        assert not await store.run(lambda tx: tx.depart(worker))
    assert wal_size(database_url) == before


async def test_only_the_owner_can_read_the_file(tmp_path):
    store = await open_store(f"sqlite:///{tmp_path}/new.db")
    await store.migrate()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"new.db": 0o600, "new.db-wal": 0o600, "new.db-shm": 0o600}
    await store.aclose()
    assert [file.name for file in tmp_path.iterdir()] == ["new.db"]


async def test_a_relative_path_is_resolved_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = await open_store("sqlite:///some%20name.db")
    await store.aclose()
    assert (tmp_path / "some name.db").exists()


@pytest.mark.parametrize(
    "url, says",
    [
        ("sqlite://", "name a file"),
        ("sqlite:///", "name a file"),
        ("sqlite://:memory:", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite://holdfast.db", "sqlite:///file.db"),
        ("sqlite:///{folder}/a.db?mode=ro", "have no options"),
        ("sqlite:///{folder}/absent/a.db", "there is no directory"),
        ("sqlite:///{folder}", "is a directory"),
        ("sqlite:////proc/a.db", "must be writable"),
        ("sqlite:///{folder}/text.db", "is not an SQLite database"),
    ],
)
async def test_an_unusable_file_is_reported_with_a_remedy(tmp_path, url, says):
    (tmp_path / "text.db").write_text("no database, but a text that is long enough to look like one" * 100)
    with pytest.raises(Misconfigured, match=says) as caught:
        await open_store(url.format(folder=tmp_path))
    assert str(caught.value).startswith("HOLDFAST_DATABASE_URL: ")
    assert "\n" not in str(caught.value)


async def test_an_sqlite_version_that_corrupts_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(Misconfigured, match="pip install --upgrade apsw"):
        await open_store(f"sqlite:///{tmp_path}/a.db")


async def test_a_full_disk_is_reported_as_unavailable_and_nothing_is_stored(store):
    pages = await store._writer.call(lambda db: db.pragma("page_count"))
    await store._writer.call(lambda db: db.pragma("max_page_count", pages + 2))
    jobs = some_jobs(100, payload=b'"' + b"x" * 10_000 + b'"')
    with pytest.raises(Unavailable, match="full"):
        await put(store, *jobs)
    assert await store.run(lambda tx: tx.counts(JobFilter())) == []
    await store._writer.call(lambda db: db.pragma("max_page_count", 1_000_000))
    await put(store, *jobs)


async def test_a_corrupt_file_is_reported(store, database_url):
    await store.aclose()
    with open(file_in(database_url), "r+b") as file:  # noqa: ASYNC230, PTH123
        file.seek(4096)
        file.write(b"\xff" * 4096 * 20)
    with pytest.raises(Unavailable, match="is corrupt"):
        await open_store(database_url)


@pytest.mark.parametrize("changes", [{"tenant": "\ud800"}, {"cost": 2**64}], ids=["text", "number"])
async def test_a_value_that_cannot_be_stored_is_rejected(store, changes):
    with pytest.raises(Rejected):
        await put(store, a_job(), a_job(**changes))
    assert await store.run(lambda tx: tx.counts(JobFilter())) == []


async def test_missing_tables_are_reported_with_a_remedy(empty_database_url):
    store = await open_store(empty_database_url)
    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await store.check_schema()
    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await put(store, a_job())
    await store.aclose()


async def test_the_view_shows_jobs_in_readable_form(store, database_url):
    job = a_job(payload=b'{"to":"a"}')
    (made,) = await put(store, job)
    with console(database_url) as db:
        row = db.execute("SELECT id, status, payload, created_at FROM holdfast_jobs").fetchone()
    assert row[:3] == (str(job.id), "ready", '{"to":"a"}')
    assert row[3].endswith(f".{made.created_at // 1000 % 1000:03d}Z")


# Plans


SMALL = {
    "workers", "worker_page", "count_workers_of", "next_positions", "orphans", "queues", "api_keys", "valid_api_key",
    "limited_tenants", "breakers", "prune_breakers",
    "failing_breakers", "pauses", "prune_limits", "uncounted_queue", "uncounted_tenant", "weights",
    "types", "types_seen_by", "prune_types", "overlong_leases",
}  # fmt: skip
"""Statements that read a small table or index."""

SELDOM = {"counts_live", "counts_dead", "census", "dead_census", "held_counts"}
"""Statements that count everything; the interval of a census is at least twenty times its duration."""


BOUNDED = {"ready_ids", "ready_ids_of", "running_ids", "queue_backlog", "tenant_backlog", "departed"}
"""Statements that scan an index up to a limit."""


@pytest.mark.parametrize("name", sorted(set(BatchedStatements(None)) - SMALL - SELDOM - BOUNDED))
async def test_no_statement_reads_a_whole_table(store, database_url, name):
    statement = BatchedStatements(None)[name]
    with console(database_url) as db:
        plan = db.execute("EXPLAIN QUERY PLAN " + statement.text, [None] * len(statement.parameters)).fetchall()
    assert not [step[3] for step in plan if step[3].startswith("SCAN holdfast") or "TEMP B-TREE" in step[3]]


async def test_the_cost_of_finding_lanes_grows_with_lanes_not_with_jobs(store):
    async def cost():
        steps = []

        def look(db):
            db.trace_v2(
                apsw.SQLITE_TRACE_PROFILE,
                lambda event: steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
            )

        await store._reader.call(look)
        found = await store.run(lambda tx: tx.lanes(["mail"], 100))
        assert [(lane.tenant, lane.priority) for lane, _ in found] == [("a", 0), ("a", 1), ("b", 0)]
        return max(steps)

    await put(store, a_job(tenant="a"), a_job(tenant="a", priority=1), a_job(tenant="b"))
    few = await cost()
    await put(store, *some_jobs(1_000, tenant="a"), *some_jobs(1_000, tenant="b"))
    assert await cost() == few
