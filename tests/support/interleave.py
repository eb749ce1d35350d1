"""Two transactions in an order that a test chooses.

A transaction is parked where it stands while others run. Where a database runs one transaction at a time to its
end, nothing can come in between: there the same parts run one after the other, each in a transaction of its own,
which is what any interleaving amounts to.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from tests.support.eventually import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from holdfast.store.port import Store, Tx
    from tests.support.clock import Console

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Both(NamedTuple, Generic[B, C]):
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
    ) -> Both[B, C]:
        """Do `first` and `then` in one transaction, and `meanwhile` in between, until it is done or has to wait."""
        if not self.possible:
            seen = await store.run(first)
            between = await meanwhile()
            return Both(await store.run(lambda tx: then(tx, seen)), between)

        parked, go = asyncio.Event(), asyncio.Event()

        async def work(tx: Tx) -> B:
            seen = await first(tx)
            parked.set()
            await go.wait()
            return await then(tx, seen)

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            holder = group.create_task(store.run(work))
            await _either(parked.wait(), holder)
            other = group.create_task(meanwhile())
            await eventually(partial(self._stands, other))
            go.set()
        return Both(holder.result(), other.result())

    async def _stands(self, other: asyncio.Task[C]) -> bool:
        """Whether it is done, or a transaction of this database waits for a lock that another holds."""
        return other.done() or bool(await self._console.value(_WAITING[self._console.dialect]))


async def _either(fact: Coroutine[None, None, object], task: asyncio.Task[object]) -> None:
    waiting = asyncio.create_task(fact)
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


_WAITING = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mysql": (
        "SELECT count(*) FROM information_schema.innodb_trx t "
        "JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id "
        "WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
    ),
}
