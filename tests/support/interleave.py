"""Two transactions in an order that a test chooses, and store wrappers that inject faults.

A transaction is parked while others run. SQLite runs one write transaction at a time, so there the parts run in
sequence, each in its own transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import apsw

from tests.support.builders import RolledBack, roll_back
from tests.support.eventually import TIMEOUT_S, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from holdfast.errors import HoldfastError
    from holdfast.store.port.store import Store, Tx, Work
    from tests.support.clock import Console

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Results(NamedTuple, Generic[B, C]):
    """Results of both transactions."""

    parked: B
    meanwhile: C


class Interleaving:
    """Runs transactions of one database in a given order. `possible`: they can overlap."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.possible = console.dialect != "sqlite"

    async def run(
        self,
        store: Store,
        first: Callable[[Tx], Awaitable[A]],
        meanwhile: Callable[[], Coroutine[None, None, C]],
        then: Callable[[Tx, A], Awaitable[B]],
    ) -> Results[B, C]:
        """Run `first` and `then` in one transaction, and in between `meanwhile` until it ends or waits for a lock."""
        if not self.possible:
            seen = await store.run(first)
            between = await meanwhile()
            return Results(await store.run(lambda tx: then(tx, seen)), between)
        return await self._overlap(store.run, first, meanwhile, then)

    async def undo(
        self, store: Store, first: Callable[[Tx], Awaitable[object]], meanwhile: Callable[[], Coroutine[None, None, C]]
    ) -> C:
        """Run `first` in a transaction that is rolled back after `meanwhile` ended or waits for a lock."""
        if not self.possible:
            await roll_back(store, first)
            return await meanwhile()

        async def fail(_tx: Tx, _seen: object) -> None:
            raise RolledBack

        async def run(work: Work[None]) -> None:
            with contextlib.suppress(RolledBack):
                await store.run(work)

        return (await self._overlap(run, first, meanwhile, fail)).meanwhile

    async def _overlap(
        self,
        run: Callable[[Work[B]], Coroutine[None, None, B]],
        first: Callable[[Tx], Awaitable[A]],
        meanwhile: Callable[[], Coroutine[None, None, C]],
        then: Callable[[Tx, A], Awaitable[B]],
    ) -> Results[B, C]:

        parked, go = asyncio.Event(), asyncio.Event()

        async def work(tx: Tx) -> B:
            seen = await first(tx)
            parked.set()
            await go.wait()
            return await then(tx, seen)

        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            holder = group.create_task(run(work))
            await _either(parked.wait(), holder)
            other = group.create_task(meanwhile())
            await self.done_or_blocked(other)
            go.set()
        return Results(holder.result(), other.result())

    async def done_or_blocked(self, other: asyncio.Task[C]) -> None:
        """Wait until the task ends, or a transaction of this database waits for a lock."""
        await eventually(partial(self._done_or_waiting, other))

    async def _done_or_waiting(self, other: asyncio.Task[C]) -> bool:
        return other.done() or await _WAITS[self._console.dialect](self._console)


async def _either(fact: Coroutine[None, None, object], task: asyncio.Task[object]) -> None:
    waiting = asyncio.create_task(fact)
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _postgres_waits(console: Console) -> bool:
    return bool(
        await console.run(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
    )


async def _mysql_waits(console: Console) -> bool:
    if not await console.run("SHOW GLOBAL STATUS WHERE variable_name = 'Innodb_row_lock_current_waits' AND value > 0"):
        return False
    # Find out if it is in this database. INNODB_TRX is stale if it is read often.
    ((*_, status),) = await console.run("SHOW ENGINE INNODB STATUS")
    waiting = [part for part in status.split("---TRANSACTION") if "LOCK WAIT" in part]
    threads = {int(match[1]) for part in waiting if (match := re.search(r"thread id (\d+)", part))}
    ours = await console.run("SELECT id FROM information_schema.processlist WHERE db = DATABASE()")
    return not threads.isdisjoint(thread for (thread,) in ours)


async def _sqlite_waits(console: Console) -> bool:
    """Tell if the write lock is taken: then every writer waits."""
    file = apsw.Connection(console.url.removeprefix("sqlite:///"))
    try:
        file.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return True
    finally:
        file.close()
    return False


_WAITS = {"postgres": _postgres_waits, "mysql": _mysql_waits, "sqlite": _sqlite_waits}


class StoreWrapper:
    """Store wrapper whose transactions go through `transact`, which subclasses override."""

    def __init__(self, store: Store) -> None:
        self.inner = store

    async def run(self, work: Work[A]) -> A:
        return await self.transact(self.inner.run, work)

    async def single(self, work: Work[A]) -> A:
        return await self.transact(self.inner.single, work)

    async def read(self, work: Work[A]) -> A:
        return await self.transact(self.inner.read, work)

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Run the transaction."""
        return await go(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class CountingStore(StoreWrapper):
    """Store wrapper that counts transactions."""

    transactions = 0

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Count and run the transaction."""
        self.transactions += 1
        return await go(work)


class BlockedStore(StoreWrapper):
    """Store wrapper whose transactions wait until `let_go` is set."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Wait, then run the transaction."""
        self.asked.set()
        await self.let_go.wait()
        return await go(work)


class FaultyStore(StoreWrapper):
    """Store wrapper that fails transactions in order: before they start, or after the commit."""

    def __init__(self, store: Store, *faults: Fault | None) -> None:
        super().__init__(store)
        self.faults = list(faults)

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Raise the next fault before or after the transaction, if there is one."""
        fault = self.faults.pop(0) if self.faults else None
        if fault and not fault.committed:
            raise fault.error("injected by the test")
        result = await go(work)
        if fault:
            raise fault.error("injected by the test")
        return result


class Fault(NamedTuple):
    """Error that a transaction raises, and whether it was committed."""

    error: type[HoldfastError]
    committed: bool


def before(error: type[HoldfastError]) -> Fault:
    """Fail before the transaction starts."""
    return Fault(error, committed=False)


def after(error: type[HoldfastError]) -> Fault:
    """Commit the transaction, then raise this error."""
    return Fault(error, committed=True)
