"""An unusable database gives one line that names the setting and the fix, and exit code 2, or 3 if it is away."""

import secrets
import socket
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit

import apsw
import asyncmy
import asyncpg
import pytest

from holdfast.store.console import open_console
from tests.support.databases import at_database
from tests.support.servers.given import mysql_address

COMMANDS = (["migrate"], ["migrate", "status"], ["migrate", "sql"], ["bench", "--jobs", "1"])


def other_user(url, user, password):
    """Return the URL of the same server for another user."""
    at = urlsplit(url)
    return at._replace(netloc=f"{quote(user)}:{quote(password)}@{at.hostname}:{at.port}").geturl()


@pytest.fixture
def server_url(request, run):
    return run.server(request.param).url


each_server = pytest.mark.parametrize("server_url", ["postgres", "mysql"], indirect=True)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_unknown_scheme_is_refused(holdfast, command):
    ended = holdfast(*command, HOLDFAST_DATABASE_URL="oracle://scott:tiger@h/db")
    assert ended.code == 2
    assert ended.complaint.startswith("HOLDFAST_DATABASE_URL: invalid value: expected ")
    assert "postgresql://" in ended.complaint


def test_bench_refuses_an_unknown_scheme(holdfast):
    ended = holdfast("bench", "--url", "oracle://h/db")
    assert ended.code == 2
    assert ended.complaint.startswith("--url: ")


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_unreachable_server_is_reported(holdfast, scheme, command):
    with socket.socket() as taken:  # bound but not listening
        taken.bind(("127.0.0.1", 0))
        url = f"{scheme}://u:hunter2@127.0.0.1:{taken.getsockname()[1]}/db"
        ended = holdfast(*command, DB_DSN=url)
    assert ended.code == 3
    assert "DB_DSN" in ended.complaint
    assert "check" in ended.complaint
    assert "hunter2" not in ended.err


@each_server
def test_a_wrong_password_is_reported_without_the_password(holdfast, server_url):
    user = urlsplit(server_url).username
    ended = holdfast("migrate", "--database-url", other_user(server_url, user, "wrong-hunter2"))
    assert ended.code == 2
    assert ended.complaint.startswith("--database-url: ")
    assert "password" in ended.complaint
    assert "correct" in ended.complaint
    assert "hunter2" not in ended.err


@each_server
def test_a_missing_database_is_reported(holdfast, server_url):
    ended = holdfast("migrate", DATABASE_URL=at_database(server_url, "no_such_database"))
    assert ended.code == 2
    assert ended.complaint.startswith("DATABASE_URL: ")
    assert "no_such_database" in ended.complaint
    assert "create it" in ended.complaint


@asynccontextmanager
async def postgres_guest(server_url):
    """Create a database, and a user who may connect to it and nothing else."""
    name, password = f"guest_{secrets.token_hex(4)}", secrets.token_hex(8)
    server = await asyncpg.connect(server_url)
    try:
        await server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        await server.execute(f"CREATE DATABASE {name}")
        url = at_database(server_url, name)
        owner = await asyncpg.connect(url)
        await owner.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC")
        await owner.close()
        yield other_user(url, name, password), url
    finally:
        await server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await server.execute(f"DROP ROLE IF EXISTS {name}")
        await server.close()


@asynccontextmanager
async def mysql_guest(server_url):
    """Create a database and a user without privileges on MySQL."""
    name, password = f"guest_{secrets.token_hex(4)}", secrets.token_hex(8)
    server = await asyncmy.connect(**mysql_address(server_url), autocommit=True)
    async with server.cursor() as cursor:
        try:
            await cursor.execute(f"CREATE DATABASE {name}")
            await cursor.execute(f"CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'")
            await cursor.execute(f"GRANT SELECT ON {name}.* TO '{name}'@'%'")
            url = at_database(server_url, name)
            yield other_user(url, name, password), url
        finally:
            await cursor.execute(f"DROP USER IF EXISTS '{name}'@'%'")
            await cursor.execute(f"DROP DATABASE IF EXISTS {name}")
    await server.ensure_closed()


@pytest.mark.parametrize("dialect, guest", [("postgres", postgres_guest), ("mysql", mysql_guest)])
async def test_a_user_without_the_right_to_create_tables_is_reported(holdfast, run, dialect, guest):
    async with guest(run.server(dialect).url) as (url, owner_url):
        ended = holdfast("migrate", HOLDFAST_DATABASE_URL=url)
        assert ended.code == 2
        assert ended.complaint.startswith("HOLDFAST_DATABASE_URL: the database user may not do this")
        assert "run 'holdfast migrate' as" in ended.complaint
        assert holdfast("migrate", HOLDFAST_DATABASE_URL=owner_url).code == 0


def test_an_old_sqlite_is_refused(holdfast):
    start = "import apsw; apsw.sqlite_lib_version = lambda: '3.40.1'; from holdfast.cli.main import main; main()"
    ended = holdfast("migrate", start=start)
    assert ended.code == 2
    assert "SQLite 3.40.1" in ended.complaint
    assert "pip install --upgrade apsw" in ended.complaint


@pytest.mark.parametrize(
    "url, message",
    [
        ("sqlite:///absent/jobs.db", "there is no directory"),
        ("sqlite:///notes.txt", "not an SQLite database"),
        ("sqlite:///folder", "is a directory"),
        ("sqlite://jobs.db", "write sqlite:///file.db"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite:///jobs.db?mode=ro", "have no options"),
    ],
)
@pytest.mark.parametrize("command", [["migrate"], ["migrate", "status"]], ids=" ".join)
def test_a_path_that_cannot_be_a_database_is_refused(holdfast, tmp_path, url, message, command):
    (tmp_path / "notes.txt").write_text("Dear diary, this is a text of more than a few bytes.\n" * 40)
    (tmp_path / "folder").mkdir()
    ended = holdfast(*command, HOLDFAST_DATABASE_URL=url)
    assert ended.code == 2
    assert ended.complaint.startswith("HOLDFAST_DATABASE_URL: ")
    assert message in ended.complaint


def test_a_read_only_folder_is_reported(holdfast, tmp_path):
    # Tests may run as root, who may write anywhere, so patch the check itself.
    start = "import os; os.access = lambda *_: False; from holdfast.cli.main import main; main()"
    ended = holdfast("migrate", start=start, HOLDFAST_DATABASE_URL="sqlite:///jobs.db")
    assert ended.code == 2
    assert ended.complaint.startswith("HOLDFAST_DATABASE_URL: ")
    assert "must be writable by this user" in ended.complaint


async def test_a_damaged_migrations_table_is_reported(holdfast, tmp_path):
    db = apsw.Connection(str(tmp_path / "jobs.db"))
    db.execute("CREATE TABLE holdfast_schema (something TEXT)")
    db.close()
    ended = holdfast("migrate", HOLDFAST_DATABASE_URL="sqlite:///jobs.db")
    assert ended.code == 2
    assert "no such column" in ended.complaint


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_schema_newer_than_the_code_is_refused(holdfast, database_url, command):
    await _execute(database_url, "INSERT INTO holdfast_schema (version, name, checksum) VALUES (9999, 'later', 'x')")
    try:
        ended = holdfast(*command, HOLDFAST_DATABASE_URL=database_url)
    finally:
        await _execute(database_url, "DELETE FROM holdfast_schema WHERE version = 9999")
    assert ended.code == 2
    assert "version 9999" in ended.complaint
    assert "upgrade holdfast" in ended.complaint


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "status"]], ids=" ".join)
async def test_a_migration_that_differs_from_the_applied_one_is_refused(holdfast, database_url, command):
    await _execute(database_url, "UPDATE holdfast_schema SET checksum = CONCAT('x', checksum)")
    try:
        ended = holdfast(*command, HOLDFAST_DATABASE_URL=database_url)
    finally:
        await _execute(database_url, "UPDATE holdfast_schema SET checksum = substr(checksum, 2)")
    assert ended.code == 2
    assert "migration 0001_initial in the database differs" in ended.complaint
    assert "use that build" in ended.complaint


async def _execute(url, statement):
    console = await open_console(url)
    try:
        await console.rows(statement)
    finally:
        await console.aclose()
