"""With Redis: what was committed lately, so that the database need not be asked. Each has a twin in the database."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from holdfast.coordination.port import Figures, Keys, Known, Limiter, Registry
from holdfast.coordination.redis_connection import Link, Script
from holdfast.coordination.redis_protocol import Away
from holdfast.errors import RateLimited
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import NewJob
from holdfast.model.time import Duration, Instant, seconds
from holdfast.model.worker import WorkerInfo, WorkerRow
from holdfast.policy.rate_limit import WindowSnapshot, rate_limited

WINDOW, PRESENCE = Script("window"), Script("presence")
SCRIPTS = (WINDOW, PRESENCE)

LONGEST_KEPT = seconds(3_600)
"""How long a key is remembered at the most. It is forgotten long before it may be anybody else's."""

TRUSTED = seconds(1)
"""How long a window counts as full without asking the database: so late does a raised limit hold, at the worst."""

ASKED_AGAIN = 2.0
"""Seconds for which a tenant that was refused is looked up here first. Whoever is not refused is not looked up."""

COMPLETE = seconds(5)
"""How long the register is relied upon without asking the database."""

_MOST_REFUSED = 10_000


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a key."""

    job_id: bytes
    fingerprint: bytes
    until: int


_READ = msgspec.msgpack.Decoder(_Entry).decode
_WRITE = msgspec.msgpack.Encoder().encode


class KeysInRedis:
    """See `holdfast.coordination.port.Keys`. An entry is written after the commit, and never changed."""

    off = False

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = prefix
        self._asked: tuple[list[str], asyncio.Task[Sequence[bytes | None] | None]] | None = None
        """What is to be asked in this turn of the loop."""

    async def find(self, jobs: Sequence[NewJob]) -> Sequence[Known | None]:
        """See the port."""
        names = [self._name(job) for job in jobs]
        answers = await self._ask(names)
        if answers is None:
            self._link.counted["keys", "away"] += 1
            return [None] * len(jobs)
        known = [_known(entry) for entry in answers]
        self._link.counted["keys", "hit" if all(known) else "miss"] += 1
        return known

    async def _ask(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        """Ask for these, together with whatever is asked for in this turn of the loop: a batch stays together."""
        if not self._link.up:
            return None
        if self._asked is None:
            self._asked = [], asyncio.create_task(self._ask_all())
        together, asking = self._asked
        first = len(together)
        together.extend(names)
        found = await asyncio.shield(asking)
        return None if found is None else found[first : first + len(names)]

    async def _ask_all(self) -> Sequence[bytes | None] | None:
        if self._asked is None:
            return None
        (names, _), self._asked = self._asked, None
        try:
            found: list[bytes | None] = await self._link.ask("MGET", *names)
        except Away:
            return None
        return found

    def note(self, job: NewJob, made: JobId, kept: Duration, at: Instant) -> None:
        """See the port."""
        span = min(LONGEST_KEPT, kept // 2) // 1_000
        entry = _Entry(made.bytes, job.fingerprint, at + kept // 2)
        # Whoever was first stays: a node that comes late with a job whose key is another's by now must not replace it.
        self._link.send("SET", self._name(job), _WRITE(entry), "NX", "PX", max(1, span))

    def _name(self, job: NewJob) -> str:
        key = f"{len(job.spec.tenant)}:{job.spec.tenant}:{job.spec.idempotency_key}".encode()
        return f"{self._prefix}key:{hashlib.blake2b(key, digest_size=16).hexdigest()}"


def _known(entry: bytes | None) -> Known | None:
    if entry is None:
        return None
    try:
        kept = _READ(entry)
        return Known(JobId(UUID(bytes=kept.job_id)), kept.fingerprint, Instant(kept.until))
    except (msgspec.DecodeError, ValueError):
        return None


class LimiterInRedis:
    """See `holdfast.coordination.port.Limiter`. What is known are windows as the database had them when it refused."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = prefix
        self._refused: dict[str, float] = {}
        """Tenants that were refused on this node, and until when they are looked up."""

    async def refusal(self, tenant: str, cost: int) -> RateLimited | None:
        """See the port."""
        until = self._refused.get(tenant)
        if until is None:
            return None
        if time.monotonic() > until:
            del self._refused[tenant]
            return None
        try:
            answer = await self._link.run(WINDOW, self._name(tenant), "ask", TRUSTED, cost)
        except Away:
            self._link.counted["limits", "away"] += 1
            return None
        self._link.counted["limits", "miss" if answer is None else "hit"] += 1
        if answer is None:
            return None
        spent, wait, rate, window = answer
        return rate_limited(rate, window, spent, Duration(wait))

    def note(self, tenant: str, refused: RateLimited) -> None:
        """See the port."""
        if not isinstance(refused.evidence, WindowSnapshot):
            return
        spent = refused.evidence
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.clear()
        self._refused[tenant] = time.monotonic() + ASKED_AGAIN
        costs = ",".join(map(str, spent.costs))
        self._link.send(
            "EVALSHA", WINDOW.digest, 1, self._name(tenant),
            "note", TRUSTED, spent.at, spent.rate, spent.window, spent.newest, costs,
        )  # fmt: skip

    def forget(self, tenant: str) -> None:
        """See the port."""
        self._link.send("DEL", self._name(tenant))

    def _name(self, tenant: str) -> str:
        return f"{self._prefix}window:{tenant}"


class _Present(Struct, array_like=True):
    """What is kept of a worker; its memory is as old as the list."""

    info: WorkerInfo
    memory: int | None = None
    draining: bool = False


_PRESENT = msgspec.json.Decoder(_Present).decode


class RegistryInRedis:
    """See `holdfast.coordination.port.Registry`. Filled from the database, kept fresh by what workers say."""

    def __init__(self, link: Link, prefix: str, twin: Registry) -> None:
        self._link = link
        self._name = f"{prefix}fleet"
        self._twin = twin

    def beat(self, worker: WorkerId, lease: Duration, info: WorkerInfo | None = None) -> None:
        """See the port."""
        self._send("beat", worker, lease, b"" if info is None else msgspec.json.encode(_Present(info)))

    def leave(self, worker: WorkerId) -> None:
        """See the port."""
        self._send("leave", worker)

    def changed(self) -> None:
        """See the port. The list is not complete any more: the database is asked next."""
        self._link.send("HDEL", self._name, "complete")

    async def fleet(self) -> tuple[Instant, list[WorkerRow]]:
        """See the port. The time is that of Redis."""
        try:
            found: list[bytes] | None = await self._link.run(PRESENCE, self._name, "list")
        except Away:
            self._link.counted["workers", "away"] += 1
            return await self._twin.fleet()
        self._link.counted["workers", "miss" if found is None else "hit"] += 1
        if found is not None:
            return Instant(int(found[0])), sorted(_rows(found[1:]), key=lambda row: row.started_at)
        now, rows = await self._twin.fleet()
        if all(row.expires_at > now for row in rows):
            self._send("seed", COMPLETE, *[part for row in rows for part in _seed(row, now)])
        return now, rows

    def _send(self, *arguments: str | bytes | int) -> None:
        self._link.send("EVALSHA", PRESENCE.digest, 1, self._name, *arguments)


def _seed(row: WorkerRow, now: Instant) -> Iterable[int | bytes]:
    info = msgspec.json.encode(_Present(row.info, row.memory, row.draining))
    return row.info.id, now - row.started_at, now - row.renewed_at, row.expires_at - now, info


def _rows(found: Sequence[bytes]) -> Iterable[WorkerRow]:
    for began, heard, ends, info in zip(*[iter(found)] * 4, strict=True):
        entry = _PRESENT(info)
        yield WorkerRow(
            entry.info,
            Instant(int(began)),
            Instant(int(ends)),
            Instant(int(heard)),
            entry.memory,
            draining=entry.draining,
        )


class InRedis:
    """See `holdfast.coordination.port.Coordination`. `parts`: what Redis is used for; the rest is the database's."""

    def __init__(self, link: Link, prefix: str, parts: Iterable[str], twin: Any, bus: Any | None) -> None:
        self.prefix = prefix
        """What all names in Redis begin with that are this installation's."""
        self._link = link
        self._bus = bus
        self.keys: Keys = KeysInRedis(link, prefix) if "keys" in parts else twin.keys
        self.limiter: Limiter = LimiterInRedis(link, prefix) if "limits" in parts else twin.limiter
        self.registry: Registry = RegistryInRedis(link, prefix, twin.registry) if "workers" in parts else twin.registry

    def figures(self) -> Figures:
        """See the port."""
        return Figures(self._link.up, self._link.losses, Counter(self._link.counted))

    async def aclose(self) -> None:
        """See the port."""
        if self._bus is not None:
            await self._bus.aclose()
        await self._link.aclose()
