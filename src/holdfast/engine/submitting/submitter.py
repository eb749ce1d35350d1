"""The ways in: one for all tenants without limits, and for each tenant with limits one of its own.

Whoever submits for a tenant with limits waits for others who do so, on this node and elsewhere. Behind a door of its
own that holds up nobody else: at each door one transaction is under way, and behind all of them together a few.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from holdfast.engine.batcher import Batcher
from holdfast.engine.submitting.cache import Shortcuts
from holdfast.engine.submitting.quotas import Limited
from holdfast.engine.submitting.receipts import Receipt, submit_all, submit_each
from holdfast.errors import HoldfastError, TooMany
from holdfast.model.job import NewJob
from holdfast.model.time import Duration
from holdfast.policy.quotas import Limits
from holdfast.store.port.store import Store

FLUSHED_AT_ONCE = 500
_AT_ONCE = 4
"""Transactions of tenants with limits: what they wait for must not take all connections."""

Flushed = Batcher[NewJob, Receipt]


class _Door:
    """Where jobs of one tenant go in."""

    def __init__(self, batcher: Flushed) -> None:
        self.batcher = batcher
        self.turn = asyncio.Lock()
        self.users = 0


class Doors:
    """Takes jobs that were checked. Belongs to one event loop."""

    def __init__(self, store: Store, shortcuts: Shortcuts, *, key_retention: Duration, limits: Limits) -> None:
        self._store = store
        self._shortcuts = shortcuts
        self._key_retention = key_retention
        self._limits = limits
        self.limited = Limited(store, everybody=limits.exist)
        """Which tenants have a door of their own."""
        self.bare: Flushed = Batcher(self._flush_bare, largest=FLUSHED_AT_ONCE, width=3)
        """Where those without limits go in."""
        self._doors: dict[str, _Door] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def put(self, job: NewJob, *, sure: bool = False) -> Receipt:
        """Take one, together with others that wait at the same door. `sure`: ask the database in any case."""
        limited = self.limited.has(job.tenant)
        if limited is None:
            limited = bool(await self.limited.among(frozenset((job.tenant,))))
        if not limited:
            if not sure and not self._shortcuts.off and (known := await self._shortcuts.known([job])):
                return _told(known[0])
            receipt = await self.bare.put(job)
            self._shortcuts.made(job, receipt)
            return receipt
        await self._shortcuts.turn_away(job.tenant, [job])
        async with self._at([job.tenant]) as (door,):
            try:
                return await door.batcher.put(job)
            except TooMany as error:
                self._shortcuts.refused(job.tenant, error)
                raise

    async def put_all(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Take all in one transaction, or none."""
        tenants = await self.limited.among(frozenset(job.tenant for job in jobs))
        if not tenants:
            known = await self._shortcuts.known(jobs)
            if known is not None and not any(isinstance(each, HoldfastError) for each in known):
                return [_told(each) for each in known]
            receipts = await submit_all(self._store, jobs, key_retention=self._key_retention)
            for job, receipt in zip(jobs, receipts, strict=True):
                self._shortcuts.made(job, receipt)
            return receipts
        if len(tenants) == 1:
            await self._shortcuts.turn_away(jobs[0].tenant, jobs)
        async with self._at(sorted(tenants)) as doors, AsyncExitStack() as stack:
            for door in doors:  # always in the same order, as in the database
                await stack.enter_async_context(door.turn)
            async with self._slots:
                try:
                    return await submit_all(self._store, jobs, key_retention=self._key_retention, limits=self._limits)
                except TooMany as error:
                    if len(tenants) == 1:
                        self._shortcuts.refused(jobs[0].tenant, error)
                    raise

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        await self.limited.aclose()
        for batcher in [self.bare, *[door.batcher for door in self._doors.values()]]:
            await batcher.drain()

    @asynccontextmanager
    async def _at(self, tenants: Iterable[str]) -> AsyncIterator[list[_Door]]:
        """The doors of these tenants, there as long as somebody stands at them."""
        doors = {tenant: self._doors.get(tenant) or self._door(tenant) for tenant in tenants}
        for door in doors.values():
            door.users += 1
        try:
            yield list(doors.values())
        finally:
            for tenant, door in doors.items():
                door.users -= 1
                if not door.users and door.batcher.idle:  # a caller that gave up may leave one that is not
                    self._doors.pop(tenant, None)

    def _door(self, tenant: str) -> _Door:
        async def flush(jobs: Sequence[NewJob]) -> Sequence[Receipt | BaseException]:
            async with door.turn, self._slots:
                return await submit_each(self._store, jobs, key_retention=self._key_retention, limits=self._limits)

        door = self._doors[tenant] = _Door(Batcher(flush, largest=FLUSHED_AT_ONCE, width=1))
        return door

    async def _flush_bare(self, jobs: Sequence[NewJob]) -> Sequence[Receipt | BaseException]:
        return await submit_each(self._store, jobs, key_retention=self._key_retention)


def _told(answer: Receipt | HoldfastError) -> Receipt:
    if isinstance(answer, HoldfastError):
        raise answer
    return answer
