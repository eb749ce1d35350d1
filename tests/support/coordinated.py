"""Engines whose nodes share a Redis, for tests: ready when Redis is, and as patient as a loaded machine needs."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from redis import Redis

from holdfast.compose import engine_rules, open_coordination, open_store
from holdfast.config import Settings
from holdfast.engine.engine import Engine
from tests.support.eventually import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holdfast.store.port.store import Store

PARTS = ("wakeups", "limits", "keys", "workers")


@asynccontextmanager
async def node(
    database_url: str,
    redis_url: str | None,
    *,
    parts: tuple[str, ...] = PARTS,
    deadline: float = PATIENCE,
    around: Callable[[Store], Any] = lambda store: store,
    **settings: Any,
) -> AsyncIterator[Engine]:
    """An engine, with Redis if one is given; `around` may wrap its store."""
    chosen = Settings(database_url=database_url, redis_url=redis_url, redis_for=parts, pool_size=4, **settings)
    store = around(await open_store(database_url, pool_size=4))
    coordination = await open_coordination(chosen, store, deadline=deadline)
    engine = await Engine.open(store, engine_rules(chosen), coordination=coordination)
    try:
        yield engine
    finally:
        await engine.aclose()


async def is_up(engine: Engine) -> None:
    """Wait until a node has its Redis."""

    async def up() -> bool:
        return engine.coordination.figures().up is True

    await eventually(up)


async def is_down(engine: Engine) -> None:
    """Wait until a node knows that it has none."""

    async def down() -> bool:
        return engine.coordination.figures().up is False

    await eventually(down)


def hits(engine: Engine, part: str) -> int:
    """How often Redis answered in place of the database."""
    return engine.coordination.figures().asked.get((part, "hit"), 0)


def forget(redis_url: str, engine: Engine) -> None:
    """Have Redis forget what it knows of this database: tests empty theirs, which no installation does."""
    prefix = engine.coordination.prefix  # type: ignore[attr-defined]
    with Redis.from_url(redis_url) as client:
        for name in client.scan_iter(f"{prefix}*", count=1_000):
            client.delete(name)


class Server:
    """A Redis of a test's own, to be tormented."""

    def __init__(self, url: str) -> None:
        self.url = url
        with Redis.from_url(url) as client:
            self.pid = int(client.info("server")["process_id"])

    def do(self, *command: str) -> Any:
        """Run a command."""
        with Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def freeze(self) -> None:
        """It is there and says nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        os.kill(self.pid, signal.SIGCONT)
