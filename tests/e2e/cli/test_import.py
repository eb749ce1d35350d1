"""`holdfast import` takes over unfinished rows of the source systems' tables, once."""

import asyncio
import json

import pytest

from holdfast.store.console import open_console
from tests.e2e.compat.conftest import go_dsn

A_ID = "0123456789abcdef0123456789abcd{:02d}"

A_TABLE = """CREATE TABLE jobs (id CHAR(32) PRIMARY KEY, type VARCHAR(64) NOT NULL, payload JSON,
    status VARCHAR(16) NOT NULL, attempts INT NOT NULL DEFAULT 0, max_attempts INT NOT NULL DEFAULT 3,
    idempotency_key VARCHAR(255) UNIQUE, run_at DATETIME(6) NOT NULL, locked_by VARCHAR(64),
    locked_until DATETIME(6), created_at DATETIME(6) NOT NULL)"""
C_TABLE = """CREATE TABLE tasks (id INTEGER PRIMARY KEY, tenant_id VARCHAR(64) NOT NULL, type VARCHAR(64) NOT NULL,
    payload JSON, status VARCHAR(16) NOT NULL, priority INT NOT NULL DEFAULT 0, cost INT NOT NULL DEFAULT 1,
    attempts INT NOT NULL DEFAULT 0, max_attempts INT NOT NULL DEFAULT 3, created_at {time} NOT NULL)"""
D_TABLE = """CREATE TABLE jobs (id {uuid} PRIMARY KEY, type TEXT NOT NULL, payload {json} NOT NULL,
    status {status} NOT NULL, attempts INT NOT NULL DEFAULT 0, max_attempts INT NOT NULL DEFAULT 3,
    scheduled_at {time} NOT NULL, started_at {time}, completed_at {time},
    created_at {time} NOT NULL, updated_at {time} NOT NULL)"""
E_TABLE = """CREATE TABLE tasks (id INTEGER PRIMARY KEY, payload {json} NOT NULL, due_at {time} NOT NULL,
    status TEXT NOT NULL, updated_at {time})"""
KINDS = {
    "postgres": {"uuid": "UUID", "json": "JSONB", "time": "TIMESTAMPTZ", "status": "job_status"},
    "mysql": {"time": "TIMESTAMP"},
    "sqlite": {"uuid": "TEXT", "json": "TEXT", "time": "TEXT", "status": "TEXT"},
}


@pytest.fixture
def execute(database_url):
    """Run statements in the database of the test."""

    async def run(statements):
        console = await open_console(database_url)
        try:
            return [await console.rows(statement) for statement in statements]
        finally:
            await console.aclose()

    return lambda *statements: asyncio.run(run(statements))


@pytest.fixture
def imports(cli, database_url):
    """Import from the database of the test into the same one; return the exit code and the JSON output."""

    def run(layout, *flags, source=None, code=0):
        done = cli(
            "import", "--from", source or go_dsn(database_url), "--layout", layout, "--json", *flags,
            HOLDFAST_DATABASE_URL=database_url,
        )  # fmt: skip
        assert done.code == code, done
        return json.loads(done.out)

    return run


@pytest.fixture
def jobs(cli, database_url):
    """Return the imported jobs by type."""

    def run():
        done = cli("jobs", "list", "--json", "--limit", "100", HOLDFAST_DATABASE_URL=database_url)
        assert done.code == 0, done
        return sorted(json.loads(done.out)["items"], key=lambda job: (job["type"], str(job["payload"])))

    return run


@pytest.mark.databases("mysql", "sqlite")
def test_rows_of_a_keep_their_keys_and_the_attempts_that_are_left(execute, imports, jobs):
    row = "INSERT INTO jobs VALUES ('{}', '{}', '{}', '{}', {}, {}, {}, '{}', {}, {}, '2026-01-20 12:00:00.000000')"
    start = "2026-01-20 12:00:00"
    execute(
        A_TABLE,
        row.format(A_ID.format(1), "demo", '{"msg": "hello"}', "PENDING", 0, 3, "'demo-1'", start, "NULL", "NULL"),
        row.format(A_ID.format(2), "retry", "[1]", "PENDING", 2, 3, "NULL", "2099-01-31 12:00:00.5", "NULL", "NULL"),
        row.format(A_ID.format(3), "lost", "1", "RUNNING", 1, 3, "NULL", start, "'w'", "'2026-01-20 12:00:30'"),
        row.format(A_ID.format(4), "held", "1", "RUNNING", 1, 3, "NULL", start, "'w'", "'2099-01-01 00:00:00'"),
        row.format(A_ID.format(5), "done", "1", "SUCCESS", 1, 3, "NULL", start, "NULL", "NULL"),
        row.format(A_ID.format(6), "failed", "1", "FAILED", 3, 3, "NULL", start, "NULL", "NULL"),
    )
    dry = imports("a", "--dry-run", code=1)
    assert (dry["imported"], dry["ids"], jobs()) == (3, {}, [])
    first = imports("a", code=1)
    assert (first["imported"], first["existing"], first["held"], first["invalid"]) == (3, 0, [A_ID.format(4)], [])
    assert [(job["type"], job["status"], job["max_attempts"]) for job in jobs()] == [
        ("demo", "ready", 3), ("lost", "ready", 2), ("retry", "scheduled", 1),
    ]  # fmt: skip
    demo, _, retry = jobs()
    assert (demo["payload"], demo["idempotency_key"], demo["id"]) == (
        {"msg": "hello"}, "demo-1", first["ids"][A_ID.format(1)],
    )  # fmt: skip
    assert retry["scheduled_at"] == "2099-01-31T12:00:00.500000Z"
    assert imports("a", code=1) == first | {"imported": 0, "existing": 3}
    execute(f"UPDATE jobs SET attempts = 1, locked_until = NULL WHERE id <> '{A_ID.format(5)}'")
    again = imports("a")  # changed rows are still the same jobs
    assert (again["imported"], again["existing"], again["held"], len(jobs())) == (1, 3, [], 4)


@pytest.mark.databases("mysql", "sqlite")
def test_rows_of_c_keep_tenant_priority_and_cost(execute, imports, jobs, dialect):
    row = "INSERT INTO tasks VALUES ({}, '{}', '{}', '{}', '{}', {}, {}, 0, 3, '2026-01-20 12:00:00')"
    execute(
        C_TABLE.format(**KINDS[dialect]),
        row.format(1, "acme", "report", '{"n": 1}', "pending", 7, 3),
        row.format(2, "globex", "report", '{"n": 2}', "running", 0, 1),
        row.format(3, "globex", "report", '{"n": 3}', "completed", 0, 1),
        row.format(4, "no such name", "report", '{"n": 4}', "pending", 0, 1),
        row.format(5, "globex", "report", '{"n": 5}', "paused", 0, 1),
        row.format(6, "globex", "not a type", '{"n": 6}', "pending", 0, 1),
    )
    first = imports("c", code=1)
    assert (first["imported"], sorted(fault["id"] for fault in first["invalid"])) == (2, ["4", "5", "6"])
    assert "'no such name' is not a tenant" in first["invalid"][0]["reason"]
    assert "'paused'" in first["invalid"][1]["reason"]
    assert [(job["tenant"], job["payload"], job["priority"], job["cost"]) for job in jobs()] == [
        ("acme", {"n": 1}, 7, 3), ("globex", {"n": 2}, 0, 1),
    ]  # fmt: skip
    execute("DELETE FROM tasks WHERE id > 3")
    assert imports("c")["existing"] == 2


@pytest.mark.databases("postgres", "sqlite")
def test_rows_of_d_and_e_become_jobs_as_their_calls_would(execute, imports, jobs, dialect):
    kinds = KINDS[dialect]
    if dialect == "postgres":
        execute("DROP TYPE IF EXISTS job_status", "CREATE TYPE job_status AS ENUM ('pending', 'running', 'completed')")
    uuid = "018bcfe5-6800-7000-8000-00000000000{}"
    at, later = "2026-01-20 12:00:00+00:00", "2099-01-31 12:00:00+00:00"
    row = "INSERT INTO jobs VALUES ('{}', 'email', '{}', '{}', {}, 3, '{}', NULL, NULL, '{}', '{}')"
    mail = '{"to": "a@b.example", "subject": "s", "body": "b"}'
    task = "INSERT INTO tasks VALUES ({}, '{}', '{}', '{}', NULL)"
    execute(
        D_TABLE.format(**kinds),
        row.format(uuid.format(1), mail, "pending", 0, at, at, at),
        row.format(uuid.format(2), mail, "running", 1, later, at, at),
        row.format(uuid.format(3), mail, "completed", 1, at, at, at),
        E_TABLE.format(**kinds),
        task.format(1, '{"action": "email_user", "user_id": 42}', later, "PENDING"),
        task.format(2, "[]", at, "RUNNING"),
        task.format(3, "{}", at, "COMPLETED"),
    )
    assert imports("d")["imported"] == 2
    of_d = sorted(jobs(), key=lambda job: job["status"])
    assert [(job["status"], job["max_attempts"], job["payload"]["body"]) for job in of_d] == [
        ("ready", 3, "b"), ("scheduled", 2, "b"),
    ]  # fmt: skip
    first = imports("e", "--tenant", "acme", "--queue", "tasks")
    assert (first["imported"], set(first["ids"])) == (2, {"1", "2"})
    of_e = [job for job in jobs() if job["tenant"] == "acme"]
    assert [(job["type"], job["queue"], job["status"]) for job in of_e] == [
        ("email_user", "tasks", "scheduled"), ("task", "tasks", "ready"),
    ]  # fmt: skip
    assert imports("e", "--tenant", "acme", "--queue", "tasks")["existing"] == 2
    if dialect == "postgres":
        execute("DROP TABLE jobs", "DROP TYPE job_status")


@pytest.mark.databases("sqlite")
def test_bad_input_is_named_with_its_fix(execute, cli, database_url, tmp_path):
    execute("CREATE TABLE jobs (id INTEGER, status TEXT)")

    def complaint(*flags, source=database_url, layout="a"):
        done = cli("import", "--from", source, "--layout", layout, *flags, HOLDFAST_DATABASE_URL=database_url)
        assert (done.code, done.out) in ((2, ""), (3, "")), done
        return done.err

    assert "has no column 'payload', but id, status" in complaint()
    assert "has no table 'tasks': name the right one with --table" in complaint(layout="e")
    assert "is not the name of a table" in complaint("--table", "jobs; DROP TABLE jobs")
    assert "there is no file" in complaint(source=f"sqlite:///{tmp_path}/missing.db")
    assert "this is not a database: write postgresql://" in complaint(source="oracle://u:hunter2@h/db")
    unreachable = complaint(source="u:hunter2@tcp(127.0.0.1:1)/jobs")
    assert "--from: cannot connect to mysql://u:***@127.0.0.1:1/jobs" in unreachable
    assert "hunter2" not in unreachable


@pytest.mark.databases("sqlite")
def test_a_person_reads_how_many_were_imported_and_which_were_not(execute, cli, database_url):
    execute(
        E_TABLE.format(**KINDS["sqlite"]),
        "INSERT INTO tasks VALUES (1, '{}', '2026-01-20 12:00:00', 'PENDING', NULL)",
        "INSERT INTO tasks VALUES (2, 'no json', '2026-01-20 12:00:00', 'PENDING', NULL)",
        "INSERT INTO tasks VALUES (3, '{}', 'tomorrow', 'PENDING', NULL)",
        f"INSERT INTO tasks VALUES (4, '{json.dumps('x' * 1_100_000)}', '2026-01-20 12:00:00', 'PENDING', NULL)",
    )
    arguments = ("import", "--from", database_url, "--layout", "e")
    for flags, line in [
        (["--dry-run"], "would import 1 jobs"),
        ([], "imported 1 jobs"),
        ([], "1 were imported before"),
    ]:
        done = cli(*arguments, *flags, HOLDFAST_DATABASE_URL=database_url)
        assert (done.code, line in done.out) == (1, True), done
        assert "row 2 was not imported: payload: it is not JSON" in done.err
        assert "row 3 was not imported: 'tomorrow' is not a time" in done.err
        assert "row 4 was not imported: it has 1,100,1" in done.err
