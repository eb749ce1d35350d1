"""MySQL and MariaDB: connections, schema and translation of errors."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from asyncmy.errors import IntegrityError, OperationalError, ProgrammingError

from holdfast.errors import Misconfigured, OutcomeUnknown, Rejected, SchemaMismatch, Unavailable
from holdfast.model.time import seconds
from holdfast.store.mysql.driver import MESSAGE_TIMEOUT_S, STATEMENT_TIMEOUT_S, MysqlConnection, ServerVersion
from holdfast.store.mysql.errors import ambiguous, transient, translate
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.store import MysqlStore
from holdfast.store.mysql.url import read_url
from tests.support.builders import a_job, enter, put, read_all, share, take
from tests.support.clock import Console, console
from tests.support.eventually import eventually

__all__ = ["console"]

pytestmark = pytest.mark.databases("mysql")


# Connections


async def connections(console):
    """Return the connection ids of the store."""
    rows = await console.run(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    )
    return {row[0] for row in rows}


async def test_a_connection_that_died_while_idle_is_replaced(store, console, database_url):
    before = await connections(console)
    fresh = await MysqlStore.open(database_url)
    try:
        for died in await connections(console) - before:
            await console.run(f"KILL {died}")
        worker = await enter(fresh)
        assert worker in {row.info.id for row in await fresh.run(lambda tx: tx.workers())}
    finally:
        await fresh.aclose()


async def test_any_number_of_connections_that_died_while_idle_is_replaced(database_url):
    """F11: a firewall drops all connections, and each fails only when it is used."""
    size = 15
    all_processes = asyncio.Barrier(size)

    async def use(tx):
        await tx.now()
        await all_processes.wait()

    async def died(*_):
        raise OperationalError(2013, "Lost connection to MySQL server during query")

    opened = await MysqlStore.open(database_url, pool_size=size)
    try:
        await asyncio.gather(*(opened.run(use) for _ in range(size)))
        idle = list(opened._pool._idle)
        for link in idle:
            link._run = died
        assert await opened.run(lambda tx: tx.now())
        assert len(idle) == size
    finally:
        await opened.aclose()


async def test_a_connection_that_breaks_before_the_commit_has_no_effect(store, console):
    job = a_job()

    async def work(tx):
        await tx.insert([job], key_retention=seconds(60))
        (own,) = await tx.send("SELECT CONNECTION_ID()")
        await console.run(f"KILL {own.rows[0][0]}")
        await tx.now()

    with pytest.raises(Unavailable) as caught:
        await store.run(work)
    assert not isinstance(caught.value, OutcomeUnknown)
    assert not await read_all(store, [job.id])


async def test_a_connection_that_breaks_at_the_commit_leaves_the_outcome_unknown(store, console):
    async def work(tx):
        await tx.insert([a_job()], key_retention=seconds(60))
        (own,) = await tx.send("SELECT CONNECTION_ID()")
        await console.run(f"KILL {own.rows[0][0]}")

    with pytest.raises(OutcomeUnknown):
        await store.run(work)


async def test_cancelled_work_leaves_no_lock_and_no_broken_connection(store):
    job = a_job()
    await put(store, job)
    worker = await enter(store)
    holds = asyncio.Event()

    async def work(tx):
        await tx.claim(worker, [share()], 10, None)
        holds.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.run(work))
    await holds.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    held = await eventually(lambda: take(store, worker))  # once the server has noticed that the connection is closed
    assert (held[0].id, held[0].fence) == (job.id, 1)


async def test_waiting_too_long_for_a_connection_is_an_error(database_url):
    address = read_url(database_url)
    pool = Pool(lambda: MysqlConnection.connect(address), 1, wait=0.01)
    link = await pool.acquire()
    with pytest.raises(Unavailable, match="no database connection was free"):
        await pool.acquire()
    pool.release(link)
    assert await pool.acquire() is link
    pool.release(link)
    await pool.aclose()
    with pytest.raises(Unavailable, match="closed"):
        await pool.acquire()


def test_a_server_that_resets_a_new_connection_is_unavailable():
    """F10: like a server during a restart, or a load balancer without backends."""
    uvloop = pytest.importorskip("uvloop")

    class Late(uvloop.Loop):
        """The reset arrives before the driver gets its connection."""

        async def create_connection(self, *arguments, **options):
            made = await super().create_connection(*arguments, **options)
            while not made[0].is_closing():
                await asyncio.sleep(0)
            return made

    async def connect():
        server = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1", 0)
        async with server:
            address = read_url(f"mysql://who@127.0.0.1:{server.sockets[0].getsockname()[1]}/holdfast")
            pool = Pool(lambda: MysqlConnection.connect(address), 1)
            with pytest.raises(Unavailable, match="does not respond"):
                await pool.acquire()

    with asyncio.Runner(loop_factory=Late) as runner:
        runner.run(connect())


async def test_the_statement_timeout_of_the_server_is_shorter_than_that_of_the_client(database_url):
    """F11: a response has the outcome; a closed connection leaves it unknown."""
    link = await MysqlConnection.connect(read_url(database_url))
    try:
        (limit,) = await link.send(f"SELECT @@{link.server.statement_limit}")
        unit = 1 if link.server.name == "mariadb" else 1_000
        assert 0 < limit.rows[0][0] / unit == STATEMENT_TIMEOUT_S < MESSAGE_TIMEOUT_S
    finally:
        await link.quit()


async def test_a_message_that_times_out_closes_its_connection(database_url):
    link = await MysqlConnection.connect(read_url(database_url))
    with pytest.raises(TimeoutError):
        await link.send("SELECT SLEEP(30)", timeout=0.05)
    assert not link.usable()


# The schema


async def test_ten_nodes_migrate_concurrently(empty_database_url):
    stores = [await MysqlStore.open(empty_database_url) for _ in range(10)]
    try:
        with pytest.raises(SchemaMismatch, match="holdfast migrate"):
            await stores[0].check_schema()
        with pytest.raises(SchemaMismatch, match="holdfast migrate"):
            await put(stores[0], a_job())
        done = await asyncio.gather(*(each.migrate() for each in stores))
        assert sorted(map(len, done))[:-1] == [0] * 9
        for each in stores:
            await each.check_schema()
    finally:
        for each in stores:
            await each.aclose()


async def test_a_newer_schema_is_refused(empty_database_url):
    opened = await MysqlStore.open(empty_database_url)
    try:
        await opened.migrate()
        await opened._on_connection(
            lambda link: link.send("INSERT INTO holdfast_schema (version, name, checksum) VALUES (9999, 'later', 'x')")
        )
        with pytest.raises(SchemaMismatch, match="9999"):
            await opened.check_schema()
        with pytest.raises(SchemaMismatch, match="9999"):
            await opened.migrate()
    finally:
        await opened.aclose()


async def test_the_view_shows_statuses_as_words_and_times_in_utc(store, console):
    job = a_job(payload=b'{"to": "you"}')
    await put(store, job)
    await console.run("SET time_zone = '+05:00'")
    row = (await console.run("SELECT id, status, payload, started_at, worker, created_at FROM holdfast_jobs"))[0]
    assert row[:5] == (str(job.id), "ready", '{"to": "you"}', None, None)
    assert abs((row[5] - (await console.value("SELECT UTC_TIMESTAMP(6)"))).total_seconds()) < 3600


# Error messages


async def refusal(url, kind=Misconfigured):
    with pytest.raises(kind) as caught:
        await MysqlStore.open(url)
    text = str(caught.value)
    assert "HOLDFAST_DATABASE_URL" in text
    assert "\n" not in text
    assert "s3cret" not in text
    return text


async def test_an_invalid_url_is_reported_in_one_line(database_url):
    parts = urlsplit(database_url)
    server = f"{parts.hostname}:{parts.port}"
    assert "password" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast")
    assert "names no database" in await refusal(f"mysql://holdfast:s3cret@{server}")
    assert "names no user" in await refusal(f"mysql://{server}/holdfast")
    assert "charset" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast?charset=latin1")
    assert "ssl=perhaps" in await refusal(f"mysql://holdfast:s3cret@{server}/holdfast?ssl=perhaps")
    assert "port" in await refusal("mysql://holdfast:s3cret@localhost:port/holdfast")
    assert "CREATE DATABASE" in await refusal(parts._replace(path="/no_such_database").geturl())


async def test_an_unreachable_server_is_reported_in_one_line():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        assert "cannot be reached" in await refusal(f"mysql://holdfast:s3cret@127.0.0.1:{port}/holdfast", Unavailable)
    assert "cannot be reached" in await refusal("mysql://holdfast:s3cret@nowhere.invalid/holdfast", Unavailable)


async def test_missing_privileges_are_reported(empty_database_url):
    parts = urlsplit(empty_database_url)
    database = parts.path.lstrip("/")
    user = f"'{database[-20:]}'@'%'"  # quoted, because a name that begins with digits may be read as a number
    async with Console(empty_database_url) as console:
        await console.run(f"CREATE USER {user} IDENTIFIED BY 's3cret'")
        try:
            await console.run(f"GRANT SELECT ON `{database}`.* TO {user}")
            url = f"mysql://{database[-20:]}:s3cret@{parts.hostname}:{parts.port}/{database}"
            opened = await MysqlStore.open(url)
            with pytest.raises(Misconfigured, match="may not do this"):
                await opened.migrate()
            await opened.aclose()
        finally:
            await console.run(f"DROP USER {user}")


def test_percent_encoding_in_a_url_is_decoded():
    address = read_url("mariadb://me%40home:p%2Fw%C3%BC@db:3307/jobs?unix_socket=/run/db.sock")
    assert address[:6] == ("db", 3307, "me@home", "p/wü", "jobs", "/run/db.sock")
    assert str(address) == "me@home@/run/db.sock/jobs"


@pytest.mark.parametrize(
    "greeting, expected",
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", ("mariadb", "10.11.6")),
        ("10.6.0-MariaDB", ("mariadb", "10.6.0")),
        ("11.8.2-MariaDB-ubu2404", ("mariadb", "11.8.2")),
        ("8.0.1-dmr", ("mysql", "8.0.1")),
        ("9.4.0", ("mysql", "9.4.0")),
    ],
)
def test_new_servers_are_accepted(greeting, expected):
    assert ServerVersion.read(greeting) == expected


@pytest.mark.parametrize("greeting", ["5.7.44-log", "5.5.5-10.5.29-MariaDB", "8.0.0-dmr", "TiDB"])
def test_old_servers_are_refused(greeting):
    with pytest.raises(Misconfigured, match="HOLDFAST_DATABASE_URL"):
        ServerVersion.read(greeting)


@pytest.mark.parametrize(
    "error, kind",
    [
        (ProgrammingError(1146, "Table 'x.holdfast_live' doesn't exist"), SchemaMismatch),
        (OperationalError(1142, "INSERT command denied"), Misconfigured),
        (OperationalError(1290, "running with the --read-only option"), Unavailable),
        (OperationalError(2013, "Lost connection"), Unavailable),
        (OperationalError(1040, "Too many connections"), Unavailable),
        (IntegrityError(1062, "Duplicate entry"), Rejected),
        (TimeoutError(), Unavailable),
        (ConnectionResetError("reset"), Unavailable),
    ],
)
def test_driver_errors_are_translated(error, kind):
    assert type(translate(error)) is kind


def test_errors_are_classified_as_transient_or_ambiguous():
    assert [code for code in (1213, 1205, 1062, 2013, 1927) if transient(OperationalError(code, ""))] == [1213, 1205]
    assert [code for code in (1213, 1062, 2013, 1927, 1317) if ambiguous(OperationalError(code, ""))] == [
        2013,
        1927,
        1317,
    ]
    assert ambiguous(TimeoutError())


async def test_the_server_name_and_version_are_reported(store, console):
    info = await store.info()
    assert info.name == ("mariadb" if "MariaDB" in await console.value("SELECT VERSION()") else "mysql")
    assert (info.pooled, info.listens) == (False, False)
