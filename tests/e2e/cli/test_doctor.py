"""`holdfast doctor` finds the problems that a test creates, and the commands it prints fix them."""

import asyncio
import contextlib
import json
import shlex
import subprocess
import time
from itertools import pairwise

import pytest

from holdfast.cli.checks import database
from holdfast.cli.checks.database import _unsafe
from holdfast.cli.checks.server_settings import fix_setting
from holdfast.compose import open_store
from holdfast.config import Settings
from holdfast.config.connections import max_connections
from holdfast.model.time import micros, seconds
from holdfast.model.worker import Unresponsiveness
from holdfast.store.console import dialect_of, open_console
from holdfast.store.indexes import expected
from tests.support import nodes
from tests.support.builders import a_job, enter, hold, put
from tests.support.eventually import awaited
from tests.support.service_thread import run_service


def on_store(url, work):
    async def main():
        store = await open_store(url)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def sql(url, *statements):
    async def main():
        console = await open_console(url)
        try:
            return [await console.rows(statement) for statement in statements]
        finally:
            await console.aclose()

    return asyncio.run(main())


@pytest.fixture
def doctor(cli):
    """Run `doctor` and return its problems by check; also checks the exit code."""

    def run(*arguments, patience=0, **variables):
        ended = cli("doctor", "--json", "--patience", patience, *arguments, **variables)
        found = json.loads(ended.out)["findings"]
        bad = {each["check"]: each for each in found if each["level"] != "ok"}
        assert ended.code == (1 if any(each["level"] == "wrong" for each in bad.values()) else 0)
        return bad

    return run


@pytest.fixture
def apply_fix(cli):
    """Run the command that a finding names as its fix."""

    def run(fix, url, **placeholders):
        for word, value in placeholders.items():
            fix = fix.replace(word, value)
        program, *arguments = shlex.split(fix)
        if program == "holdfast":
            ended = cli(*arguments, HOLDFAST_DATABASE_URL=url)
            assert ended.code in (0, 1), ended
            return ended
        if program == "chmod":
            return subprocess.run([program, *arguments], check=True)
        assert program in ("psql", "mysql")  # they need not be installed: run the SQL directly
        return sql(url, *[each for flag, each in pairwise(arguments) if flag in ("-c", "-e")])

    return run


def test_doctor_reports_an_outdated_schema(doctor, apply_fix, empty_database_url):
    found = doctor(HOLDFAST_DATABASE_URL=empty_database_url)
    if dialect_of(empty_database_url) == "sqlite":  # the file does not exist
        assert list(found) == ["database"]
        apply_fix(found["database"]["fix"], empty_database_url)
    else:
        assert "version 0" in found["schema"]["text"]
        apply_fix(found["schema"]["fix"], empty_database_url)
    assert not {"schema", "database"} & set(doctor(HOLDFAST_DATABASE_URL=empty_database_url))


def test_doctor_reports_missing_indexes_overdue_and_stuck_jobs_and_paused_queues(doctor, apply_fix, cli, database_url):
    dialect = dialect_of(database_url)
    dropped = "DROP INDEX holdfast_job_keys_expiry" + (" ON holdfast_job_keys" if dialect == "mysql" else "")

    async def create_problems(store):
        await hold(store, await enter(store))
        await put(store, a_job("later", delay=micros(1)), a_job("invoices"))

    on_store(database_url, create_problems)
    sql(database_url, dropped, "UPDATE holdfast_workers SET expires_at = 1")
    cli("queues", "pause", "invoices", HOLDFAST_DATABASE_URL=database_url)

    found = doctor(HOLDFAST_DATABASE_URL=database_url)
    assert "holdfast_job_keys_expiry" in found["indexes"]["text"]
    assert found["stuck jobs"]["text"].startswith("1 running jobs are held by lost workers (worker-1)")
    assert found["due jobs"]["text"].startswith("1 jobs have been due for up to ")
    assert "'invoices' is paused, with 1 ready" in found["paused queues"]["text"]
    assert found["paused queues"]["level"] == "wrong"
    assert "workers" not in found
    cli("queues", "pause", "invoices", "--reason", "audit", HOLDFAST_DATABASE_URL=database_url)
    assert "paused queues" not in doctor(HOLDFAST_DATABASE_URL=database_url)  # on purpose

    for check in ("indexes", "stuck jobs", "paused queues"):
        apply_fix(found[check]["fix"], database_url)
    after = doctor(HOLDFAST_DATABASE_URL=database_url)
    assert found["stuck jobs"]["fix"] == found["due jobs"]["fix"] == "holdfast doctor --sweep"
    assert set(after) == {"workers"}, after


def test_every_index_of_the_schema_can_be_recreated(cli, database_url):
    dialect = dialect_of(database_url)
    known = {index.name: index for index in expected(dialect)}
    (rows,) = sql(database_url, database._INDEXES[dialect])
    present = {name for (name,) in rows if name.startswith("holdfast_") and not name.endswith("_pkey")}
    ours = {name for name in present if not name.startswith(("holdfast_history_default", "holdfast_history_2"))}
    assert set(known) == ours
    if dialect != "mysql":  # MySQL refuses to drop indexes that foreign keys need
        sql(database_url, *[f"DROP INDEX {name}" for name in known])
        ended = cli("migrate", "indexes", "--json", HOLDFAST_DATABASE_URL=database_url)
        assert set(json.loads(ended.out)["made"]) == ours
    assert cli("migrate", "indexes", HOLDFAST_DATABASE_URL=database_url).out == "no index is missing\n"


@pytest.mark.databases("postgres", "mysql")
def test_a_server_that_may_lose_commits_is_reported_and_refused_if_strict(doctor, apply_fix, holdfast, database_url):
    """F18: doctor and every node at startup report it; with strict durability the node refuses to start."""
    if dialect_of(database_url) == "postgres":
        (((name,),),) = sql(database_url, "SELECT current_database()")
        weaken, restore = f'ALTER DATABASE "{name}" SET synchronous_commit = off', f'ALTER DATABASE "{name}" RESET ALL'
    else:
        weaken, restore = [f"SET GLOBAL innodb_flush_log_at_trx_commit = {value}" for value in (2, 1)]
    sql(database_url, weaken)
    try:
        found = doctor(HOLDFAST_DATABASE_URL=database_url)["durability"]
        assert found["level"] == "wrong"
        (warning,) = asyncio.run(database.unsafe_settings(database_url))  # printed by a node at startup
        assert found["fix"] in warning
        messages = []
        asyncio.run(database.warn_if_unsafe(Settings(), database_url, messages.append))
        assert messages == [f"WARNING: {warning}"]
        strict = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_STRICT_DURABILITY": "1"}
        secret = {"HOLDFAST_ADMIN_KEY": "5VxJ2hQp8ZrT4nWc7LmK9bYd3GsF6aEu"}
        for command in (["serve", "--port", "0"], ["up", "--port", "0"], ["work"]):
            refused = holdfast(*command, **strict, **secret)
            assert (refused.code, found["fix"] in refused.err) == (2, True), refused.err
            assert "HOLDFAST_STRICT_DURABILITY is set" in refused.err
        apply_fix(found["fix"], database_url)
        assert "durability" not in doctor(HOLDFAST_DATABASE_URL=database_url)
        assert asyncio.run(database.unsafe_settings(database_url)) == []
    finally:
        sql(database_url, restore)


@pytest.mark.parametrize(
    "dialect, settings, named",
    [
        ("postgres", {"fsync": "off"}, ["fsync"]),
        ("postgres", {"synchronous_commit": "off"}, ["synchronous_commit"]),
        ("postgres", {"full_page_writes": "off"}, ["full_page_writes"]),
        ("postgres", {"synchronous_commit": "local", "fsync": "on"}, []),
        ("mysql", {"innodb_flush_log_at_trx_commit": "2"}, ["innodb_flush_log_at_trx_commit"]),
        ("mysql", {"innodb_flush_log_at_trx_commit": "0"}, ["innodb_flush_log_at_trx_commit"]),
        ("mysql", {"log_bin": "on", "sync_binlog": "0"}, ["sync_binlog"]),
        ("mysql", {"log_bin": "off", "sync_binlog": "0"}, []),
        ("mysql", {"innodb_doublewrite": "off"}, ["innodb_doublewrite"]),
    ],
)  # fmt: skip
def test_unsafe_settings_are_distinguished_from_safe_ones(dialect, settings, named):
    """F18."""
    assert [name for name, _ in _unsafe(dialect, settings)] == named


@pytest.mark.parametrize(
    "source, command",
    [
        ("database", 'ALTER DATABASE "shop" SET'),
        ("user", 'ALTER ROLE "me" SET'),
        ("database user", 'ALTER ROLE "me" IN DATABASE "shop" SET'),
        ("configuration file", "ALTER SYSTEM SET"),
        ("command line", "restart -o -c synchronous_commit=on"),
    ],
)
def test_a_setting_is_fixed_at_the_level_where_it_is_set(source, command):
    fix = shlex.split(fix_setting("postgres", "synchronous_commit", "on", (source, "shop", "me")))
    assert command in " ".join(fix)


@pytest.mark.databases("sqlite")
def test_doctor_reports_queues_without_workers_and_types_without_handlers(doctor, cli, database_url, tmp_path):
    url = {"HOLDFAST_DATABASE_URL": database_url}
    (tmp_path / "later.py").write_text(
        "from holdfast import Holdfast\napp = Holdfast()\n"
        "@app.job(name='unknown_type', queue='default')\ndef unknown_type() -> None: ...\n"
    )
    cli("submit", "sink", '{"key": "a"}', "--idempotency-key", "a", **url)
    found = doctor(**url)["workers"]
    assert found["fix"] == "holdfast work APP"

    def start(fix, app):
        _, _, _, *options = shlex.split(fix)
        queues = options[1] if options else "default"
        return nodes.node(database_url, tmp_path, app=app, queues=f"{queues}:2", environment=None)

    with contextlib.ExitStack() as stack:
        stack.enter_context(start(found["fix"], "tests.support.fault_app:app"))
        awaited(lambda: "workers" not in doctor(**url))
        cli("submit", "unknown_type", "--queue", "default", **url)
        cli("submit", "unknown_type", "--queue", "elsewhere", **url)
        found = awaited(lambda: (bad := doctor(**url)) and {"handlers", "workers"} <= set(bad) and bad)
        assert "'unknown_type' wait in queue 'default'" in found["handlers"]["text"]
        assert "'elsewhere', and no live worker serves it" in found["workers"]["text"]
        for fix in (found["handlers"]["fix"], found["workers"]["fix"]):
            stack.enter_context(start(fix, "later:app"))
        awaited(lambda: not {"handlers", "workers"} & set(doctor(**url)))


@pytest.mark.databases("sqlite")
def test_doctor_reports_secrets_that_other_users_can_read(doctor, apply_fix, database_url, tmp_path):
    """T45."""
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / "holdfast.toml").write_text('admin_key = "a-very-long-admin-key"')
    for name in (".holdfast/admin.key", "holdfast.toml"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    for _ in range(2):
        found = doctor(HOLDFAST_DATABASE_URL=database_url)["secrets"]
        assert found["level"] == "wrong"
        apply_fix(found["fix"], database_url)
    assert "secrets" not in doctor(HOLDFAST_DATABASE_URL=database_url)


@pytest.mark.databases("sqlite")
def test_doctor_reports_an_invalid_key_and_an_unavailable_service(doctor, apply_fix, database_url):
    with run_service(database_url) as node:
        found = doctor(HOLDFAST_API_URL=node.url, HOLDFAST_API_KEY="hf_none")
        assert list(found) == ["key"]
        token = apply_fix(found["key"]["fix"], database_url, DATABASE=database_url).out.strip()
        assert doctor(HOLDFAST_API_URL=node.url, HOLDFAST_API_KEY=token) == {}
    found = doctor(HOLDFAST_API_URL=node.url, HOLDFAST_API_KEY=token)
    assert "cannot be reached" in found["service"]["text"]


@pytest.mark.databases("pgbouncer")
def test_a_pooler_in_transaction_mode_is_doubtful(doctor, database_url):
    """F23."""
    found = doctor(HOLDFAST_DATABASE_URL=database_url)
    assert found["pooler"]["level"] == "doubtful"
    assert "HOLDFAST_DATABASE_URL=" in found["pooler"]["fix"]


@pytest.mark.databases("sqlite")
def test_a_wrong_clock_is_doubtful_and_fails_strict_mode(doctor, cli, database_url, monkeypatch):
    real = time.time
    monkeypatch.setattr(database.time, "time", lambda: real() - 95)
    assert "clock is 1m 3" in doctor(HOLDFAST_DATABASE_URL=database_url)["clock"]["text"]
    assert cli("doctor", "--strict", HOLDFAST_DATABASE_URL=database_url).code == 1


@pytest.mark.parametrize("most, level, fix", [(97, "ok", None), (92, "doubtful", "export HOLDFAST_POOL_SIZE=9")])
def test_connections_that_the_server_may_refuse_are_doubtful(most, level, fix):
    needed = max_connections(10, services=1, supervisors=1, workers=4)
    assert needed == 11 + 8 + 4 * 21 == 103
    found = database.compare_connections(needed - 10, most, 40, 10, nodes=1, workers=4)
    assert (found.check, found.level, found.fix) == ("connections", level, fix)
    assert "worker processes: 4, worker nodes: 1" in found.text


def test_doctor_reports_jobs_that_their_worker_does_not_run(doctor, database_url):
    """F14: a failover lost their outcomes; the worker has fewer slots than jobs."""

    async def prepare(store):
        worker = await enter(store, lease=seconds(3_600), slots=1, name="press")
        return await hold(store, worker, n=2)

    on_store(database_url, prepare)
    assert "unknown jobs" not in doctor(HOLDFAST_DATABASE_URL=database_url)
    sql(database_url, "UPDATE holdfast_live SET started_at = started_at - 600000000")
    found = doctor(HOLDFAST_DATABASE_URL=database_url)["unknown jobs"]
    assert found["level"] == "wrong"
    assert "press" in found["text"]
    assert "more jobs than it has slots" in found["text"]


def test_doctor_and_workers_report_workers_that_do_not_respond(doctor, cli, database_url):
    """F28, F33: no missing handler is blamed for the jobs that wait for them."""

    async def create_problem(store):
        await put(store, a_job("mail"))
        blocked = await enter(store, queues="mail:5", name="one", lease=seconds(600), slots=5)
        silent = await enter(store, queues="mail:5", name="two", lease=seconds(600), slots=5)
        await store.run(
            lambda tx: tx.renew(blocked, seconds(600), unresponsive=Unresponsiveness(seconds(70), "report"))
        )
        return silent

    silent = on_store(database_url, create_problem)
    found = doctor(patience=60, HOLDFAST_DATABASE_URL=database_url)["unresponsive workers"]
    assert found["text"].startswith("worker one, which holds 0 jobs, has not responded for 1m")
    assert "a handler of type 'report' blocks its event loop" in found["text"]
    assert found["level"] == "wrong"
    found = doctor(patience=600, HOLDFAST_DATABASE_URL=database_url)["unresponsive workers"]
    assert found["level"] == "doubtful"
    assert "handlers" in doctor(HOLDFAST_DATABASE_URL=database_url)  # the other worker has free slots

    def report_silence(store):
        return store.run(lambda tx: tx.renew(silent, seconds(600), unresponsive=Unresponsiveness(seconds(5))))

    on_store(database_url, report_silence)
    assert "handlers" not in doctor(HOLDFAST_DATABASE_URL=database_url)
    findings = json.loads(cli("doctor", "--json", HOLDFAST_DATABASE_URL=database_url).out)["findings"]
    texts = [finding["text"] for finding in findings if finding["check"] == "unresponsive workers"]
    assert len(texts) == 2
    assert any("its process gives no sign of life; its node kills and replaces it" in text for text in texts)
    listed = cli("workers", HOLDFAST_DATABASE_URL=database_url).out
    assert "blocked by report" in listed
    assert "no sign of life" in listed


def test_doctor_adds_up_the_connections_of_registered_workers(cli, database_url):
    if dialect_of(database_url) == "sqlite":
        pytest.skip("a file has no connections to run out of")

    def connections(pool_size):
        ended = cli("doctor", "--json", HOLDFAST_DATABASE_URL=database_url, HOLDFAST_POOL_SIZE=str(pool_size))
        (found,) = [each for each in json.loads(ended.out)["findings"] if each["check"] == "connections"]
        return found

    assert "open up to 11 connections" in connections(10)["text"]
    assert connections(1_000)["level"] == "doubtful"


def test_doctor_reports_an_unreachable_database(doctor):
    found = doctor("--url", "postgresql://someone@127.0.0.1:1/none")
    assert list(found) == ["database"]
    assert found["database"]["text"].startswith("--database-url: the database does not respond")


def test_a_fix_repeats_the_flags_of_the_target(doctor, tmp_path):
    found = doctor("--url", f"sqlite:///{tmp_path}/absent.db")
    assert found["database"]["fix"] == f"holdfast migrate --database-url sqlite:///{tmp_path}/absent.db"
