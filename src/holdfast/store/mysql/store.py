"""The store on MySQL and MariaDB."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Self, TypeVar

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, SchemaMismatch
from holdfast.model.job import HeldJob
from holdfast.store import migrate
from holdfast.store.migrate import AppliedMigration
from holdfast.store.mysql.driver import Link
from holdfast.store.mysql.errors import DRIVER, ambiguous, transient, translate
from holdfast.store.mysql.literal import literal
from holdfast.store.mysql.pipeline import Mode
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.session import Sessions
from holdfast.store.mysql.tx import MysqlTx
from holdfast.store.mysql.url import read_url
from holdfast.store.notify.wakeup import Bus, Hub, always
from holdfast.store.port.store import PoolUse, Retention, ServerInfo, Session, Subscription, Work
from holdfast.store.statements import Statements

T = TypeVar("T")

OnTx = Callable[[MysqlTx], Awaitable[T]]
"""Work that may also use what is special to this database."""

CLOCK = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
"""Read once per statement, and the same whatever the session's time zone."""

_TRIES = 10
_TRY_FOR = 20.0
"""Seconds after which a conflict is not tried again."""

_LONGEST_POLL = 0.5
_TIDIED_AT_ONCE = 20
"""Claims looked through in one transaction."""

_MIGRATION_TIMEOUT = 3600.0
# The lock's name holds for the whole server, so it carries the database's.
_MIGRATION_LOCK = "CONCAT('holdfast_migrate_', LEFT(MD5(DATABASE()), 16))"
_RECORD = "INSERT INTO holdfast_schema (version, name, checksum) VALUES (%s, %s, %s)"


class _Again(Exception):
    """The transaction came to nothing and may be run again."""

    def __init__(self, cause: BaseException, *, at_once: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.at_once = at_once


class MysqlStore:
    """See `holdfast.store.port.store.Store`."""

    def __init__(self, pool: Pool, sessions: Pool, statements: Statements) -> None:
        self._pool = pool
        self._sessions = Sessions(sessions, statements)
        self._statements = statements
        self._hub = Hub(probe=always, longest_poll=_LONGEST_POLL)

    @classmethod
    async def open(cls, url: str, *, clock: str | None = None, pool_size: int = 10) -> Self:
        """Connect; raises `Misconfigured` or `Unavailable` with what to do."""
        address = read_url(url)
        statements = _statements(clock or CLOCK)
        pool = Pool(lambda: Link.connect(address), pool_size)
        pool.release(await pool.acquire())
        sessions = Pool(lambda: Link.connect(address, idle_in_transaction=None), pool_size, wait=30.0)
        return cls(pool, sessions, statements)

    async def run(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.WHOLE)

    async def read(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.SNAPSHOT)

    async def single(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.SINGLE)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        return self._sessions.open(held, key)

    @property
    def has_push(self) -> bool:
        return self._hub.probe is None

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        return self._hub.listen(queues)

    def join(self, bus: Bus) -> None:
        bus.join(self._hub)

    async def installation(self) -> str:

        async def born(link: Link) -> str:
            (found,) = await link.send("SELECT CAST(applied_at AS CHAR) FROM holdfast_schema ORDER BY version LIMIT 1")
            return str(found.rows[0][0])

        return await self._on_link(born)

    async def migrate(self) -> list[str]:
        return await self._on_link(_migrate)

    async def check_schema(self) -> None:
        migrate.require_current(migrate.migrations("mysql"), await self._on_link(_applied))

    async def maintain_tables(self, rule: Retention) -> None:
        """InnoDB reuses what was deleted, and the statements name their indexes; claims need tidying."""
        del rule
        while await self._transact(lambda tx: tx.compact_claims(_TIDIED_AT_ONCE), Mode.WHOLE) == _TIDIED_AT_ONCE:
            pass

    async def info(self) -> ServerInfo:

        async def server(link: Link) -> ServerInfo:
            return ServerInfo(link.server.name, link.server.version, pooled=False, listens=False)

        return await self._on_link(server)

    def pool(self) -> PoolUse:
        return PoolUse(self._pool.busy, self._pool.idle, self._pool.size)

    async def aclose(self) -> None:
        await self._sessions.aclose()
        await self._pool.aclose()

    async def _transact(self, work: OnTx[T], mode: Mode) -> T:
        loop = asyncio.get_running_loop()
        until = loop.time() + _TRY_FOR
        conflicts = 0
        while True:
            try:
                return await self._attempt(work, mode)
            except _Again as again:
                if again.at_once:  # ends: there is one dead connection less in the pool, and a new one is not stale
                    continue
                conflicts += 1
                if conflicts == _TRIES or loop.time() > until:
                    raise Contention(
                        f"the database gave up on a conflict {conflicts} times ({again}); try again"
                    ) from again.cause
                await asyncio.sleep(random.uniform(0, 0.0025 * 2**conflicts))

    async def _attempt(self, work: OnTx[T], mode: Mode) -> T:
        link = await self._pool.acquire()
        before = link.used
        tx = MysqlTx(link, self._statements, mode)
        try:
            result = await work(tx)
            await tx.commit()
        except HoldfastError:
            await self._give_back(link)
            raise
        except DRIVER as error:
            stale = 0 < before == link.used - 1
            await self._give_back(link)
            raise self._verdict(error, tx, stale=stale) from error
        except BaseException:  # cancelled or failed: discard its effects
            link.close()
            self._pool.release(link)
            raise
        self._pool.release(link)
        self._hub.committed(tx.ready_lanes, changed=tx.changed)
        return result

    @staticmethod
    def _verdict(error: BaseException, tx: MysqlTx, *, stale: bool) -> Exception:
        """What a failure of the driver means: run it again, or tell the caller."""
        if transient(error):
            return _Again(error)
        if tx.committing and ambiguous(error):
            return OutcomeUnknown(f"the connection broke while the database was committing: {translate(error)}")
        if stale and ambiguous(error) and not isinstance(error, TimeoutError):
            # The first message on a connection that had lain idle: it was dead before.
            return _Again(error, at_once=True)
        return translate(error)

    async def _give_back(self, link: Link) -> None:
        """Roll back and release a connection after a failure; close it if its state is unknown."""
        try:
            if link.usable():
                await link.send("ROLLBACK", timeout=2)
        except DRIVER:
            link.close()
        finally:
            self._pool.release(link)

    async def _on_link(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Run schema or admin work on a connection, outside a transaction."""
        link = await self._pool.acquire()
        try:
            return await work(link)
        except DRIVER as error:
            link.close()
            raise translate(error) from error
        except BaseException:
            link.close()
            raise
        finally:
            self._pool.release(link)


async def _migrate(link: Link) -> list[str]:
    await link.send(f"SET SESSION {link.server.statement_limit} = 0")
    (lock,) = await link.send(f"SELECT GET_LOCK({_MIGRATION_LOCK}, 60)", timeout=_MIGRATION_TIMEOUT)
    if lock.rows[0][0] != 1:
        raise Contention("another node has been changing the schema for a minute; try again when it is done")
    await link.send(
        "CREATE TABLE IF NOT EXISTS holdfast_schema (version INT PRIMARY KEY, name VARCHAR(128) NOT NULL, "
        "checksum VARCHAR(64) NOT NULL, applied_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE = InnoDB"
    )
    todo = migrate.pending(migrate.migrations("mysql"), await _applied(link))
    for step in todo:
        for statement in step.statements():
            await link.send(statement, timeout=_MIGRATION_TIMEOUT)
        await link.send(_RECORD % tuple(map(literal, (step.version, step.name, step.checksum))))
    link.close()  # gives the lock back, and the session's settings with it
    return [f"{step.version:04d}_{step.name}" for step in todo]


async def _applied(link: Link) -> list[AppliedMigration]:
    try:
        (found,) = await link.send("SELECT version, name, checksum FROM holdfast_schema ORDER BY version")
    except DRIVER as error:
        if isinstance(translate(error), SchemaMismatch):  # no such table: version 0
            return []
        raise
    return [AppliedMigration(*row) for row in found.rows]


@cache
def _statements(clock: str) -> Statements:
    """Load the statements once per process and clock."""
    return Statements("mysql", placeholder=lambda *_: "%s", clock=clock, repeat_positions=True)
