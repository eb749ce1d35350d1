"""Database of a benchmark, optionally with history, a backlog or a pinned snapshot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from holdfast import tasks
from holdfast.bench import measures
from holdfast.bench.measures import Progress
from holdfast.engine.engine import Engine
from holdfast.store.console import Console, has_table, open_console

TABLES = (
    "holdfast_live",
    "holdfast_dead",
    "holdfast_history",
    "holdfast_job_keys",
    "holdfast_workers",
    "holdfast_claims",
    "holdfast_steps",
)
"""Tables that jobs and workers fill; some databases lack some of them."""

_SEED = 1_000
_COPIES = 50
_DAY = 86_400_000_000

# Expression for a UUIDv7 of a time in microseconds.
_NEW_ID = {
    "postgres": "(lpad(to_hex(({at}) / 1000), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || "
    "substr(md5(random()::text), 1, 15))::uuid",
    # RAND() repeats within a million rows, UUID() does not.
    "mysql": "UNHEX(CONCAT(LPAD(HEX(({at}) DIV 1000), 12, '0'), '7', SUBSTR(SHA2(RAND(), 256), 1, 3), '8', "
    "SUBSTR(SHA2(UUID(), 256), 1, 15)))",
    "sqlite": "unhex(printf('%012x', ({at}) / 1000) || '7' || substr(hex(randomblob(2)), 1, 3) || '8' || "
    "substr(hex(randomblob(8)), 1, 15))",
}
_COLUMNS = {
    "postgres": "SELECT column_name::text FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND table_name = 'holdfast_history' ORDER BY ordinal_position",
    "mysql": "SELECT column_name FROM information_schema.columns "
    "WHERE table_schema = DATABASE() AND table_name = 'holdfast_history' ORDER BY ordinal_position",
    "sqlite": "SELECT name FROM pragma_table_info('holdfast_history')",
}
_PIN = {
    "postgres": ("BEGIN ISOLATION LEVEL REPEATABLE READ",),
    "mysql": ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT"),
    "sqlite": ("BEGIN",),
}
_RUN_MAINTENANCE = {
    "postgres": ("VACUUM (ANALYZE) holdfast_history", "VACUUM (ANALYZE) holdfast_live"),
    "mysql": ("ANALYZE TABLE holdfast_history", "ANALYZE TABLE holdfast_live"),
    "sqlite": ("PRAGMA wal_checkpoint(TRUNCATE)",),
}
_DURABILITY = {
    "postgres": "SELECT name, current_setting(name) FROM pg_settings "
    "WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers') ORDER BY name",
    "mysql": "SHOW VARIABLES WHERE Variable_name IN "
    "('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_buffer_pool_size', 'innodb_doublewrite')",
}


class ServerDescription(NamedTuple):
    """Name, version and durability settings of a database server."""

    name: str
    version: str
    durability: dict[str, str]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.durability.items())
        return f"{self.name} {self.version} ({settings})"


async def has_jobs(console: Console) -> bool:
    """Tell if a database contains any job, in any version of the schema."""
    for table in ("holdfast_live", "holdfast_dead", "holdfast_history"):
        if await has_table(console, table) and await console.rows(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608
            return True
    return False


class BenchDatabase:
    """Database that a benchmark may fill and empty."""

    def __init__(self, url: str, engine: Engine, console: Console) -> None:
        self.url = url
        self.engine = engine
        self._console = console

    async def server(self) -> ServerDescription:
        """Describe the server."""
        info = await self.engine.store.info()
        if self._console.dialect == "sqlite":
            # The store sets these on every connection.
            return ServerDescription(info.name, info.version, {"journal_mode": "wal", "synchronous": "full"})
        rows = await self._console.rows(_DURABILITY[self._console.dialect])
        return ServerDescription(info.name, info.version, {str(name): str(value) for name, value in rows})

    @asynccontextmanager
    async def in_service(self) -> AsyncIterator[None]:
        """Run maintenance within the block, as in production."""
        stop = asyncio.Event()
        maintenance = tasks.start(self.engine.run_maintenance(stop), name="holdfast maintenance", awaited=True)
        try:
            yield
        finally:
            stop.set()
            await maintenance

    async def wipe(self) -> None:
        """Delete all jobs. Only outside `in_service`, and if the database was empty at first."""
        verb = "DELETE FROM" if self._console.dialect == "sqlite" else "TRUNCATE TABLE"
        for table in TABLES:
            if await has_table(self._console, table):
                await self._console.rows(f"{verb} {table}")
        await self._settle()

    async def add_history(self, jobs: int, progress: Progress) -> None:
        """Add finished jobs of the last day: run some, then copy their rows under new ids."""
        seed = min(jobs, _SEED)
        await measures.enqueue_many(self.engine, seed, tenants=100, progress=measures.no_progress)
        await measures.drain(self.engine, seed, progress=progress)
        columns = [str(name) for (name,) in await self._console.rows(_COLUMNS[self._console.dialect])]
        await self._console.rows("CREATE TEMPORARY TABLE bench_seed AS SELECT * FROM holdfast_history LIMIT 1000")
        remaining = jobs - seed
        while remaining > 0:
            rows = min(_SEED, remaining)
            copies = max(1, min(_COPIES, remaining // _SEED))
            await self._console.rows(self._copy(columns, rows, copies))
            remaining -= rows * copies
            progress(rows * copies)
        await self._console.rows("DROP TABLE bench_seed")
        await self._settle()

    async def add_backlog(self, jobs: int, *, tenants: int, progress: Progress) -> None:
        """Submit ready jobs."""
        await measures.enqueue_many(self.engine, jobs, tenants=tenants, progress=progress, batch=10_000)
        await self._settle()

    @asynccontextmanager
    async def pinned(self) -> AsyncIterator[None]:
        """Hold a snapshot open in another session within the block."""
        pin = await open_console(self.url)
        try:
            for statement in _PIN[pin.dialect]:
                await pin.rows(statement)
            await pin.rows("SELECT count(*) FROM holdfast_workers")
            yield
        finally:
            await pin.aclose()

    def _copy(self, columns: list[str], rows: int, copies: int) -> str:
        at = "h.finished_at - c.ago"
        replaced = {"finished_at": at, "id": _NEW_ID[self._console.dialect].format(at=at)}
        numbers = " UNION ALL ".join(f"SELECT {n * (_DAY // _COPIES)} AS ago" for n in range(copies))
        return (
            f"INSERT INTO holdfast_history ({', '.join(columns)}) "  # noqa: S608 - names from the catalogue
            f"SELECT {', '.join(replaced.get(name, f'h.{name}') for name in columns)} "
            f"FROM (SELECT * FROM bench_seed LIMIT {rows}) AS h "
            f"CROSS JOIN ({numbers}) AS c"
        )

    async def _settle(self) -> None:
        """Run vacuum, analyze or checkpoint now, so that they do not run during a measurement."""
        for statement in _RUN_MAINTENANCE[self._console.dialect]:
            await self._console.rows(statement)
