"""Latency of submissions while Redis fails: stopped, killed, unreachable, slow; and without Redis.

    python -m tests.support.servers            # prints URLs of private servers
    PYTHONPATH=. python bench/redis_faults.py --url postgresql://…

Starts its own Redis. Each fault starts in the middle of a series of submissions. Prints the slowest submission and the
99th percentile, without and with Redis, and the longest wait for Redis: Redis may add its deadline of 25 ms, once, plus
the lag of the event loop; all other time is spent in the database.
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
    """Measure each fault and print the results."""
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
                without = await run_submissions(plain, seconds, lambda: None)
                async with lateness() as late:
                    with_redis = await run_submissions(near, seconds, inflict)
                heal()
                slowest = f"slowest {max(without):.1f} → {max(with_redis):.1f} ms"
                percentiles = f"p99 {p99(without):.1f} → {p99(with_redis):.1f} ms"
                waited = f"waited for Redis at most {max(waits) * 1_000:.1f} ms in {len(waits):,} lookups"
                print(f"  {name:<10} {slowest}, {percentiles}; {waited}, event loop lag up to {late[0] * 1_000:.1f} ms")
            await plain.aclose()
            await near.aclose()


@asynccontextmanager
async def lateness() -> AsyncIterator[list[float]]:
    """Measure the maximum lag of the event loop within the block."""
    largest = [0.0]

    async def tick() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            largest[0] = max(largest[0], time.perf_counter() - due)

    ticking = asyncio.create_task(tick())
    try:
        yield largest
    finally:
        ticking.cancel()


def watched(engine: Engine) -> list[float]:
    """Return a list to which the duration of each later lookup in Redis is added."""
    rejections: Any = engine.coordination.rejections
    lookup, waits = rejections.lookup, []

    async def timed(tenant: str, cost: int) -> RateLimited | None:
        start_time = time.perf_counter()
        try:
            return await lookup(tenant, cost)
        finally:
            waits.append(time.perf_counter() - start_time)

    rejections.lookup = timed
    return waits


def faults(redis: Outages, proxy: Proxy) -> dict[str, tuple[Do, Do]]:
    """Return the faults of Redis, each with the function that ends it."""
    process = redis._private._process  # noqa: SLF001
    assert process is not None

    def set_delay(delay: float) -> None:
        proxy.delay = delay

    return {
        "none": (lambda: None, lambda: None),
        "stopped": (lambda: os.kill(process.pid, signal.SIGSTOP), lambda: os.kill(process.pid, signal.SIGCONT)),
        "unreachable": (proxy.black_hole, proxy.heal),
        "slow": (lambda: set_delay(0.2), lambda: set_delay(0.0)),
        "killed": (redis.crash, redis.start),
    }


async def run_submissions(engine: Engine, seconds: float, inflict: Do) -> list[float]:
    """Submit for this many seconds, with the fault in the middle; return the latencies in ms."""
    took: list[float] = []
    until = time.monotonic() + seconds

    async def client() -> None:
        while time.monotonic() < until:
            start_time = time.perf_counter()
            with suppress(RateLimited):
                await engine.jobs.submit(JobSpec(type="bench.noop", payload=1, queue="bench", tenant=TENANT))
            took.append((time.perf_counter() - start_time) * 1_000)

    asyncio.get_running_loop().call_later(seconds / 2, inflict)
    await asyncio.gather(*[client() for _ in range(8)])
    return took


async def up(engine: Engine) -> bool:
    """Tell if Redis is available."""
    return engine.coordination.status().up is True


def p99(took: list[float]) -> float:
    """Return the 99th percentile."""
    return quantiles(took, n=100)[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(arguments.url, arguments.seconds))
