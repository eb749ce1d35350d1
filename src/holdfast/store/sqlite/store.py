"""Store on SQLite."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from holdfast.model.job import HeldJob
from holdfast.store import migrate
from holdfast.store.migrate import AppliedMigration
from holdfast.store.notify.wakeup import Bus, Hub
from holdfast.store.port.store import PoolUse, Retention, ServerInfo, Session, Store, Work
from holdfast.store.port.wakeups import Subscription
from holdfast.store.sqlite.batched_statements import BatchedStatements, load_statements
from holdfast.store.sqlite.connection import connect, file_of
from holdfast.store.sqlite.errors import FAILED, translate
from holdfast.store.sqlite.session import Sessions
from holdfast.store.sqlite.thread import ConnectionThread
from holdfast.store.sqlite.transaction import TransactionAttempt, WriteNeeded, roll_back
from holdfast.store.sqlite.tx import AccessMode

T = TypeVar("T")

_MAX_POLL_INTERVAL_S = 0.05
_CHECKPOINT_INTERVAL_S = 60.0


class SqliteStore(Store):
    """Store on an SQLite file, with one writer and one reader thread per process."""

    def __init__(self, file: Path, statements: BatchedStatements, connections: Sequence[apsw.Connection]) -> None:
        writing, reading, watching = connections
        watching.set_busy_handler(None)  # used on the event loop, which must not block
        self._file = str(file)
        self._absolute = file.absolute()
        self._statements = statements
        self._writer = ConnectionThread(writing, "holdfast sqlite writer")
        self._reader = ConnectionThread(reading, "holdfast sqlite reader")
        self._watch = watching
        self._sessions = Sessions(file, statements)
        self._hub = Hub(probe=self._probe, max_poll_interval_s=_MAX_POLL_INTERVAL_S)
        self._version = _version(watching)
        self._next_checkpoint = time.monotonic() + _CHECKPOINT_INTERVAL_S

    @classmethod
    async def open(cls, url: str, *, clock: str | None = None) -> Self:
        """Open the file, creating it if needed; raise `Misconfigured` if it cannot be used."""
        file = file_of(url)
        return cls(file, load_statements(clock), await asyncio.to_thread(_connect, file))

    async def run(self, work: Work[T]) -> T:
        transaction = TransactionAttempt(work, self._statements, self._file)
        try:
            if transaction.start() is AccessMode.READ:
                try:
                    return await self._reader.call(lambda db: transaction.finish(db, AccessMode.READ))
                except WriteNeeded:
                    transaction = TransactionAttempt(work, self._statements, self._file)
                    transaction.start()
        except StopIteration as end:  # the work ran no statement
            result: T = end.value
            return result
        return await self._writer.call(
            lambda db: transaction.finish(db, AccessMode.WRITE),
            after=lambda: self._hub.publish(transaction.ready_lanes),
        )

    async def read(self, work: Work[T]) -> T:
        return await self.run(work)

    async def single(self, work: Work[T]) -> T:
        return await self.run(work)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        return self._sessions.open(held, key)

    @property
    def has_push(self) -> bool:
        return self._hub.probe is None

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        return self._hub.listen(queues)

    def join(self, bus: Bus) -> None:
        """Do nothing: every process sees commits in the file itself."""

    async def installation(self) -> str:
        query = "SELECT applied_at FROM holdfast_schema ORDER BY version LIMIT 1"
        (found,) = await self._reader.call(self._translating(lambda db: db.execute(query).fetchall()))
        return f"{found[0]} {self._absolute}"

    async def migrate(self) -> list[str]:
        return await self._writer.call(self._translating(_migrate))

    async def check_schema(self) -> None:
        applied = await self._reader.call(self._translating(_applied))
        migrate.require_current(migrate.migrations("sqlite"), applied)

    async def maintain_tables(self, rule: Retention) -> None:  # noqa: ARG002 - `prune` applies the retention
        if time.monotonic() < self._next_checkpoint:
            return
        self._next_checkpoint = time.monotonic() + _CHECKPOINT_INTERVAL_S
        # Commits do this too, but the last ones before a quiet period would stay in the log until the next write.
        await self._writer.call(self._translating(lambda db: db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)))

    async def info(self) -> ServerInfo:
        return ServerInfo("sqlite", apsw.sqlite_lib_version(), pooled=False, listens=True)

    def pool(self) -> PoolUse:
        # One thread writes and one reads; both start with the store.
        busy = self._writer.busy + self._reader.busy
        return PoolUse(busy, 2 - busy, 2)

    async def aclose(self) -> None:
        await self._hub.aclose()
        if self._writer.in_owner_process:  # a forked child that closes its parent's connections could corrupt the file
            await self._sessions.aclose()
            self._watch.close()
            await self._reader.aclose()
            await self._writer.aclose()

    async def _probe(self, queues: frozenset[str]) -> Collection[str]:  # noqa: ARG002 - the file has one version
        """Wake all subscriptions if any process committed since the last call; takes microseconds."""
        try:
            version = _version(self._watch)
        except apsw.BusyError:  # another process recovers the log: try again later
            return ()
        except FAILED as error:
            raise translate(error, self._file) from error
        if version != self._version:
            self._version = version
            self._hub.publish_unknown()  # subscriptions that are not polled now have to learn of it too
        return ()

    def _translating(self, work: Callable[[apsw.Connection], T]) -> Callable[[apsw.Connection], T]:
        def run(db: apsw.Connection) -> T:
            try:
                return work(db)
            except FAILED as error:
                raise translate(error, self._file) from error

        return run


def _connect(file: Path) -> list[apsw.Connection]:
    return [connect(file) for _ in range(3)]


def _version(db: apsw.Connection) -> int:
    """Return a number that changes whenever another connection commits."""
    version: int = db.pragma("data_version")
    return version


def _migrate(db: apsw.Connection) -> list[str]:
    try:
        db.execute("BEGIN IMMEDIATE")  # concurrent processes wait here, then find the work done
        todo = migrate.pending(migrate.migrations("sqlite"), _applied(db))
        if todo:
            db.execute(
                "CREATE TABLE IF NOT EXISTS holdfast_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                "checksum TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))) STRICT"
            )
        for migration in todo:
            db.execute(migration.sql)
            db.execute(
                "INSERT INTO holdfast_schema (version, name, checksum) VALUES (?, ?, ?)",
                (migration.version, migration.name, migration.checksum),
            )
        db.execute("COMMIT")
    finally:
        roll_back(db)
    return [f"{migration.version:04d}_{migration.name}" for migration in todo]


def _applied(db: apsw.Connection) -> list[AppliedMigration]:
    # Query the file: the connection's cached schema may be outdated.
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_schema'").fetchall():
        return []
    rows: Sequence[Sequence[Any]] = db.execute(
        "SELECT version, name, checksum FROM holdfast_schema ORDER BY version"
    ).fetchall()
    return [AppliedMigration(*row) for row in rows]
