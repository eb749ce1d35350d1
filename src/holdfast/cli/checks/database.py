"""Database checks of `holdfast doctor`: schema, writes, indexes, durability, clock and more."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from holdfast.cli.checks.findings import Finding
from holdfast.cli.checks.server_settings import fix_setting
from holdfast.cli.checks.writes import check_writes
from holdfast.cli.render import span
from holdfast.compose import is_node, open_store
from holdfast.config import Settings, shown_url
from holdfast.config.connections import max_connections
from holdfast.errors import Misconfigured, SchemaMismatch, Unavailable
from holdfast.store.codes import substitute_codes
from holdfast.store.console import Console, dialect_of, is_new_file, open_console
from holdfast.store.indexes import Index, expected
from holdfast.store.port.store import ServerInfo, Store

MAX_CLOCK_SKEW_S = 1.0
MAX_CHECKED_FILE_BYTES = 200 * 1024 * 1024
"""Size up to which an SQLite file is checked for corruption."""


async def check_database(settings: Settings, *, patience: float) -> AsyncIterator[Finding]:
    """Run all checks, except those that depend on one that failed."""
    url = settings.database_url
    if dialect_of(url) == "sqlite" and is_new_file(url):
        yield Finding("database", "wrong", f"the file {shown_url(url)} does not exist", "holdfast migrate")
        return
    try:
        store = await open_store(url, pool_size=2)
    except (Unavailable, Misconfigured) as error:
        source = settings.sources.get("database_url", "HOLDFAST_DATABASE_URL")
        yield Finding("database", "wrong", f"{source}: {error}", None)
        return
    try:
        console = await open_console(url)
        try:
            async for finding in _checks(settings, store, console, patience):
                yield finding
        finally:
            await console.aclose()
    finally:
        await store.aclose()


async def warn_if_unsafe(settings: Settings, url: str, say: Callable[[str], None]) -> None:
    """Warn at startup if the database may lose commits; with strict durability, refuse to start."""
    problems = [] if is_node(url) else await unsafe_settings(url)
    if problems and settings.strict_durability:
        source = settings.sources.get("strict_durability", "HOLDFAST_STRICT_DURABILITY")
        raise Misconfigured(f"{source} is set: {'; '.join(problems)}")
    for problem in problems:
        say(f"WARNING: {problem}")


async def unsafe_settings(url: str) -> list[str]:
    """List server settings with which commits may be lost, each with the command that fixes it."""
    if dialect_of(url) == "sqlite":
        return []
    console = await open_console(url)
    try:
        return [f"{finding.text}: {finding.fix}" async for finding in _durability(console) if finding.level == "wrong"]
    finally:
        await console.aclose()


async def missing_indexes(console: Console) -> list[Index]:
    """List indexes of the schema that the database lacks, or that are invalid."""
    present = {str(row[0]) for row in await console.rows(_INDEXES[console.dialect])}
    return [index for index in expected(console.dialect) if index.name not in present]


async def _checks(settings: Settings, store: Store, console: Console, patience: float) -> AsyncIterator[Finding]:
    info = await store.info()
    yield Finding("database", "ok", f"{info.name} {info.version}, {shown_url(settings.database_url)}")
    for finding in _pooler(info):
        yield finding
    async for finding in _durability(console):
        yield finding
    yield await _clock(store)
    try:
        await store.check_schema()
    except SchemaMismatch as error:
        yield Finding("schema", "wrong", str(error), "holdfast migrate" if "holdfast migrate" in str(error) else None)
        return
    yield Finding("schema", "ok", "up to date")
    yield await check_writes(store, console)
    missing = [index.name for index in await missing_indexes(console)]
    if missing:
        text = f"missing: {', '.join(missing)}; claims and lists are slow without them"
        yield Finding("indexes", "wrong", text, "holdfast migrate indexes")
    else:
        yield Finding("indexes", "ok", "complete")
    yield await _overdue(store, console, patience)
    if console.dialect != "sqlite":
        yield await _connections(settings, store, console)


async def _connections(settings: Settings, store: Store, console: Console) -> Finding:
    """Compare the connections that all nodes may open with the server's maximum.

    The number of service nodes is unknown; one is assumed.
    """
    workers = [row.info for row in await store.single(lambda tx: tx.workers()) if row.info.tenant is None]
    nodes = {worker.node or str(worker.id) for worker in workers}
    needed = max_connections(settings.pool_size, services=1, supervisors=len(nodes), workers=len(workers))
    ((server_max, used),) = await console.rows(_CONNECTIONS[console.dialect])
    return compare_connections(
        needed, int(server_max), int(used), settings.pool_size, nodes=len(nodes), workers=len(workers)
    )


def compare_connections(
    needed: int, server_max: int, used: int, pool_size: int, *, nodes: int, workers: int
) -> Finding:
    """Compare the connections that nodes may open with those that the server accepts."""
    nodes_text = f"worker processes: {workers}, worker nodes: {nodes}, service nodes: 1"
    text = f"{nodes_text}; they open up to {needed} connections; the server accepts {server_max} and has {used} open"
    if needed <= server_max:
        return Finding("connections", "ok", text)
    smaller = max((size for size in range(1, pool_size) if needed * size <= server_max * pool_size), default=1)
    return Finding(
        "connections", "doubtful",
        f"{text}: when all are in use, jobs wait for the database", f"export HOLDFAST_POOL_SIZE={smaller}",
    )  # fmt: skip


def _pooler(info: ServerInfo) -> Iterator[Finding]:
    if info.pooled:
        yield Finding(
            "pooler", "doubtful",
            "the connection goes through a pooler in transaction mode: everything works, but idle workers poll every "
            "HOLDFAST_POLL_INTERVAL_MS instead of being notified of jobs",
            "export HOLDFAST_DATABASE_URL=postgresql://USER:PASSWORD@SERVER:5432/DATABASE",
        )  # fmt: skip


async def _clock(store: Store) -> Finding:
    before = time.time()
    database_time = await store.single(lambda tx: tx.now()) / 1e6
    after = time.time()
    skew = database_time - (before + after) / 2
    if abs(skew) > MAX_CLOCK_SKEW_S + (after - before):
        offset = f"{span(abs(skew))} {'behind' if skew > 0 else 'ahead of'}"
        text = f"this machine's clock is {offset} the database's, which holdfast uses: times in logs and here are off"
        return Finding("clock", "doubtful", text, "timedatectl set-ntp true")
    return Finding("clock", "ok", f"within {max(abs(skew), after - before):.2f} s of the database's")


async def _overdue(store: Store, console: Console, patience: float) -> Finding:
    now = await store.single(lambda tx: tx.now())
    before = now - int(patience * 1e6)
    ((jobs, oldest),) = await console.rows(substitute_codes(_OVERDUE[console.dialect]).format(before))
    if not jobs:
        return Finding("due jobs", "ok", "no job is overdue")
    return Finding(
        "due jobs", "wrong",
        f"{jobs:,} jobs have been due for up to {span((now - oldest) / 1e6)}, and no node makes them ready: "
        "a running 'holdfast serve' or 'holdfast work' would",
        "holdfast doctor --sweep",
    )  # fmt: skip


async def _durability(console: Console) -> AsyncIterator[Finding]:
    if console.dialect == "sqlite":
        ((verdict,),) = (await _quick_check(console)) or (("ok",),)
        if verdict != "ok":
            yield Finding("durability", "wrong", f"the file is damaged: {verdict}", "cp BACKUP.db DATABASE.db")
        else:
            yield Finding("durability", "ok", "WAL with synchronous=FULL, set by every connection")
        return
    rows = await console.rows(_SETTINGS[console.dialect])
    values = {str(row[0]): str(row[1]).lower() for row in rows}
    origins = {str(row[0]): tuple(map(str, row[2:])) for row in rows}
    unsafe = list(_unsafe(console.dialect, values))
    for name, safe_value in unsafe:
        yield Finding(
            "durability", "wrong",
            f"{name}={values[name]}: accepted jobs can be lost when the server crashes",
            fix_setting(console.dialect, name, safe_value, origins[name]),
        )  # fmt: skip
    if not unsafe:
        yield Finding("durability", "ok", ", ".join(f"{name}={value}" for name, value in sorted(values.items())))


def _unsafe(dialect: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Find settings with which a commit may be lost, each with a safe value."""
    if dialect == "postgres":
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            if values.get(name) == "off":
                yield name, "on"
        return
    if values.get("innodb_flush_log_at_trx_commit", "1") != "1":
        yield "innodb_flush_log_at_trx_commit", "1"
    if values.get("log_bin") == "on" and values.get("sync_binlog", "1") != "1":
        yield "sync_binlog", "1"
    if values.get("innodb_doublewrite", "on") in ("off", "0"):
        yield "innodb_doublewrite", "ON"


async def _quick_check(console: Console) -> list[tuple[str, ...]]:
    pages = int((await console.rows("PRAGMA page_count"))[0][0])
    page_bytes = int((await console.rows("PRAGMA page_size"))[0][0])
    return [] if pages * page_bytes > MAX_CHECKED_FILE_BYTES else await console.rows("PRAGMA quick_check(1)")


_INDEXES = {
    "postgres": "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE i.indisvalid AND n.nspname = ANY (current_schemas(false))",
    "mysql": "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = DATABASE()",
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'index'",
}
_OVERDUE = {
    "postgres": "SELECT count(*), min(scheduled_at) FROM holdfast_live WHERE status IN ({SCHEDULED}, {RETRYING}) "
    "AND scheduled_at < {}",
    "mysql": "SELECT count(*), min(due) FROM holdfast_live WHERE parked = {PARKED_UNTIL_DUE} AND due < {}",
    "sqlite": "SELECT count(*), min(scheduled_at) FROM holdfast_live WHERE status IN ({SCHEDULED}, {RETRYING}) "
    "AND scheduled_at < {}",
}
_CONNECTIONS = {
    "postgres": "SELECT current_setting('max_connections')::int "
    "- current_setting('superuser_reserved_connections')::int, "
    "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')",
    "mysql": "SELECT @@max_connections, (SELECT count(*) FROM information_schema.processlist)",
}
_SETTINGS = {
    "postgres": "SELECT name, setting, source, current_database(), current_user FROM pg_settings "
    "WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')",
    "mysql": "SHOW GLOBAL VARIABLES WHERE variable_name IN "
    "('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_doublewrite')",
}
