"""Two transactions in an order that a test chooses.

A transaction is parked where it stands while others run. Where a database runs one transaction at a time to its
end, nothing can come in between: there the same parts run one after the other, each in a transaction of its own,
which is what any interleaving amounts to.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import apsw

from tests.support.builders import Undone, undone
from tests.support.eventually import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from holdfast.errors import HoldfastError
    from holdfast.store.port.store import Store, Tx, Work
    from tests.support.clock import Console

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class WorkerEngine(NamedTuple, Generic[B, C]):
    """What came of both sides."""

    parked: B
    meanwhile: C


class Interleaving:
    """Forces orders on one database. `possible` tells whether its transactions can overlap at all."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.possible = console.dialect != "sqlite"

    async def run(
        self,
        store: Store,
        first: Callable[[Tx], Awaitable[A]],
        meanwhile: Callable[[], Coroutine[None, None, C]],
        then: Callable[[Tx, A], Awaitable[B]],
    ) -> WorkerEngine[B, C]:
        """Do `first` and `then` in one transaction, and `meanwhile` in between, until it is done or has to wait."""
        if not self.possible:
            seen = await store.run(first)
            between = await meanwhile()
            return WorkerEngine(await store.run(lambda tx: then(tx, seen)), between)
        return await self._overlap(store.run, first, meanwhile, then)

    async def undo(
        self, store: Store, first: Callable[[Tx], Awaitable[object]], meanwhile: Callable[[], Coroutine[None, None, C]]
    ) -> C:
        """Do `first` in a transaction that is rolled back after `meanwhile` is done or has to wait."""
        if not self.possible:
            await undone(store, first)
            return await meanwhile()

        async def fail(_tx: Tx, _seen: object) -> None:
            raise Undone

        async def run(work: Work[None]) -> None:
            with contextlib.suppress(Undone):
                await store.run(work)

        return (await self._overlap(run, first, meanwhile, fail)).meanwhile

    async def _overlap(
        self,
        run: Callable[[Work[B]], Coroutine[None, None, B]],
        first: Callable[[Tx], Awaitable[A]],
        meanwhile: Callable[[], Coroutine[None, None, C]],
        then: Callable[[Tx, A], Awaitable[B]],
    ) -> WorkerEngine[B, C]:

        parked, go = asyncio.Event(), asyncio.Event()

        async def work(tx: Tx) -> B:
            seen = await first(tx)
            parked.set()
            await go.wait()
            return await then(tx, seen)

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            holder = group.create_task(run(work))
            await _either(parked.wait(), holder)
            other = group.create_task(meanwhile())
            await self.stands(other)
            go.set()
        return WorkerEngine(holder.result(), other.result())

    async def stands(self, other: asyncio.Task[C]) -> None:
        """Wait until this is done, or a transaction of this database waits for a lock that another holds."""
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
    # One of ours? The table of transactions does not tell: it is not renewed for as long as it is asked for often.
    ((*_, status),) = await console.run("SHOW ENGINE INNODB STATUS")
    waiting = [part for part in status.split("---TRANSACTION") if "LOCK WAIT" in part]
    threads = {int(match[1]) for part in waiting if (match := re.search(r"thread id (\d+)", part))}
    ours = await console.run("SELECT id FROM information_schema.processlist WHERE db = DATABASE()")
    return not threads.isdisjoint(thread for (thread,) in ours)


async def _sqlite_waits(console: Console) -> bool:
    """Nobody can tell who waits; but while the write lock is taken, everybody does who wants to write."""
    file = apsw.Connection(console.url.removeprefix("sqlite:///"))
    try:
        file.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return True
    finally:
        file.close()
    return False


_WAITS = {"postgres": _postgres_waits, "mysql": _mysql_waits, "sqlite": _sqlite_waits}


class Around:
    """A store whose every transaction goes through `transact`, which a test overrides."""

    def __init__(self, store: Store) -> None:
        self.inner = store

    async def run(self, work: Work[A]) -> A:
        """See the port."""
        return await self.transact(self.inner.run, work)

    async def single(self, work: Work[A]) -> A:
        """See the port."""
        return await self.transact(self.inner.single, work)

    async def read(self, work: Work[A]) -> A:
        """See the port."""
        return await self.transact(self.inner.read, work)

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Do the transaction."""
        return await go(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Counting(Around):
    """Counts transactions."""

    transactions = 0

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Do it and count it."""
        self.transactions += 1
        return await go(work)


class Held(Around):
    """Lets no transaction begin until it is let go."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Wait, then do it."""
        self.asked.set()
        await self.let_go.wait()
        return await go(work)


class Faulty(Around):
    """Fails the transactions whose turn it is, in order: before they begin, or after they were committed."""

    def __init__(self, store: Store, *turns: Fault | None) -> None:
        super().__init__(store)
        self.turns = list(turns)

    async def transact(self, go: Callable[[Work[A]], Awaitable[A]], work: Work[A]) -> A:
        """Fail, or do it and say that it failed, or do it."""
        turn = self.turns.pop(0) if self.turns else None
        if turn and not turn.committed:
            raise turn.error("so the test wants it")
        result = await go(work)
        if turn:
            raise turn.error("so the test wants it")
        return result


class Fault(NamedTuple):
    """What happens to a transaction, and what is told of it."""

    error: type[HoldfastError]
    committed: bool


def before(error: type[HoldfastError]) -> Fault:
    """It fails before it began."""
    return Fault(error, committed=False)


def after(error: type[HoldfastError]) -> Fault:
    """It is committed, but this is what is heard."""
    return Fault(error, committed=True)
