"""How long submits take while Redis fails: frozen, killed, swallowed by the network, slow; and the same without Redis.

    python -m tests.support.servers            # prints URLs of private servers
    PYTHONPATH=. python bench/redis_faults.py --url postgresql://…

The Redis is one of its own. Each fault begins in the middle of a stretch of submits. Told are the slowest submit and
the 99th percentile, without Redis and with it, and how long anybody waited for Redis: what it may add is its deadline
of 25 ms, once, and by how much this process itself comes late to see it; the rest is the database and the machine.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from statistics import quantiles
from typing import Any

from holdfast.cli.event_loop import new_loop
from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.engine.engine import Engine
from holdfast.errors import Conflict, RateLimited
from holdfast.model.access import Quotas
from holdfast.model.job import JobSpec
from holdfast.model.time import seconds as duration
from tests.support.eventually import eventually
from tests.support.outages import Outages, outages
from tests.support.proxy import Proxy, proxied

PARTS = ("wakeups", "limits")
TENANT = "bench-over"
"""Tenant whose submissions are rejected by its rate quota."""
Do = Callable[[], None]


async def main(url: str, seconds: float) -> None:
    """Print it, fault by fault."""
    with outages("redis") as redis:
        if isinstance(redis, str):
            raise SystemExit(redis)
        async with proxied(redis._server_url) as (proxy, address):  # noqa: SLF001
            plain = await open_engine(Settings(database_url=url), migrate=True)
            near = await open_engine(Settings(database_url=url, redis_url=address, redis_for=PARTS))
            with suppress(Conflict):
                await plain.access.create_tenant(TENANT, Quotas(rate=10, rate_window=duration(3_600)))
            for engine in (plain, near):
                await engine.submitter.limited.refresh()
            waits = watched(near)
            print(f"{url.split(':', 1)[0]}: rejected submissions, 8 in flight, for {seconds:g} s around each fault")
            for name, (inflict, heal) in faults(redis, proxy).items():
                await eventually(lambda: up(near))
                waits.clear()
                alone = await stretch(plain, seconds, lambda: None)
                async with lateness() as late:
                    beside = await stretch(near, seconds, inflict)
                heal()
                slowest = f"slowest {max(alone):.1f} → {max(beside):.1f} ms"
                most = f"p99 {p99(alone):.1f} → {p99(beside):.1f} ms"
                waited = f"for Redis {max(waits) * 1_000:.1f} ms at the most in {len(waits):,} questions"
                print(f"  {name:<10} {slowest}, {most}; {waited}, the loop came up to {late[0] * 1_000:.1f} ms late")
            await plain.aclose()
            await near.aclose()


@asynccontextmanager
async def lateness() -> AsyncIterator[list[float]]:
    """By how much the event loop came late at the most: so much longer anything seems to take that it waits for."""
    most = [0.0]

    async def tick() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            most[0] = max(most[0], time.perf_counter() - due)

    ticking = asyncio.create_task(tick())
    try:
        yield most
    finally:
        ticking.cancel()


def watched(engine: Engine) -> list[float]:
    """Return a list to which the duration of each later lookup in Redis is added."""
    rejections: Any = engine.coordination.rejections
    lookup, waits = rejections.lookup, []

    async def timed(tenant: str, cost: int) -> RateLimited | None:
        began = time.perf_counter()
        try:
            return await lookup(tenant, cost)
        finally:
            waits.append(time.perf_counter() - began)

    rejections.lookup = timed
    return waits


def faults(redis: Outages, proxy: Proxy) -> dict[str, tuple[Do, Do]]:
    """What is done to Redis, and how it is undone."""
    process = redis._private._process  # noqa: SLF001
    assert process is not None

    def be_slow(delay: float) -> None:
        proxy.delay = delay

    return {
        "none": (lambda: None, lambda: None),
        "frozen": (lambda: os.kill(process.pid, signal.SIGSTOP), lambda: os.kill(process.pid, signal.SIGCONT)),
        "swallowed": (proxy.black_hole, proxy.heal),
        "slow": (lambda: be_slow(0.2), lambda: be_slow(0.0)),
        "killed": (redis.crash, redis.start),
    }


async def stretch(engine: Engine, seconds: float, inflict: Do) -> list[float]:
    """Submit for a while, with the fault in the middle; how many milliseconds each took."""
    took: list[float] = []
    until = time.monotonic() + seconds

    async def client() -> None:
        while time.monotonic() < until:
            began = time.perf_counter()
            with suppress(RateLimited):
                await engine.jobs.submit(JobSpec(type="bench.noop", payload=1, queue="bench", tenant=TENANT))
            took.append((time.perf_counter() - began) * 1_000)

    asyncio.get_running_loop().call_later(seconds / 2, inflict)
    await asyncio.gather(*[client() for _ in range(8)])
    return took


async def up(engine: Engine) -> bool:
    """Whether Redis is in use."""
    return engine.coordination.status().up is True


def p99(took: list[float]) -> float:
    """All but one in a hundred are quicker."""
    return quantiles(took, n=100)[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, default=4)
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(given.url, given.seconds))
