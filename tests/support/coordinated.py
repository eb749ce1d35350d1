"""Engines that share a Redis, with timeouts long enough for a loaded machine."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from redis import Redis

from holdfast.compose import engine_rules, open_coordination, open_store
from holdfast.config import Settings
from holdfast.engine.engine import Engine
from tests.support.eventually import TIMEOUT_S, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holdfast.store.port.store import Store

PARTS = ("wakeups", "limits")


@asynccontextmanager
async def node(
    database_url: str,
    redis_url: str | None,
    *,
    parts: tuple[str, ...] = PARTS,
    deadline: float = TIMEOUT_S,
    around: Callable[[Store], Any] = lambda store: store,
    **settings: Any,
) -> AsyncIterator[Engine]:
    """Open an engine, with Redis if a URL is given; `around` may wrap its store."""
    options = Settings(database_url=database_url, redis_url=redis_url, redis_for=parts, pool_size=4, **settings)
    store = around(await open_store(database_url, pool_size=4))
    coordination = await open_coordination(options, store, timeout=deadline)
    engine = await Engine.open(store, engine_rules(options), coordination=coordination)
    try:
        yield engine
    finally:
        await engine.aclose()


async def is_up(engine: Engine) -> None:
    """Wait until a node is connected to Redis."""

    async def up() -> bool:
        return engine.coordination.status().up is True

    await eventually(up)


async def is_down(engine: Engine) -> None:
    """Wait until a node knows that Redis is unavailable."""

    async def down() -> bool:
        return engine.coordination.status().up is False

    await eventually(down)


def hits(engine: Engine, part: str) -> int:
    """Return how often Redis saved a query to the database."""
    return engine.coordination.status().lookups.get((part, "hit"), 0)


def forget(redis_url: str, engine: Engine) -> None:
    """Delete the keys of this database in Redis, because tests reuse databases."""
    prefix = engine.coordination.prefix  # type: ignore[attr-defined]
    with Redis.from_url(redis_url) as client:
        for name in client.scan_iter(f"{prefix}*", count=1_000):
            client.delete(name)


class Server:
    """Private Redis server for fault tests."""

    def __init__(self, url: str) -> None:
        self.url = url
        with Redis.from_url(url) as client:
            self.pid = int(client.info("server")["process_id"])

    def do(self, *command: str) -> Any:
        """Run a command."""
        with Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def freeze(self) -> None:
        """Stop the process, so that it accepts connections and does not respond."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the process."""
        os.kill(self.pid, signal.SIGCONT)
