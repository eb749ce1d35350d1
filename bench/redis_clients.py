"""Compare the Redis client of `holdfast.coordination` with redis-py, on the calls that a node makes.

    redis-server --port 6390 --save '' --appendonly no &
    python bench/redis_clients.py --redis redis://127.0.0.1:6390/0

Both clients alternate within one run. Each line has the median of the rounds: time and CPU of this process per call.
The last part measures the operation that a caller sees: a submission that Redis rejects because its tenant is over the
rate.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from redis.asyncio import Redis

from holdfast.cli.event_loop import new_loop
from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.coordination.redis_connection import RedisConnection
from holdfast.coordination.redis_coordination import REJECTION_WINDOW, WINDOW_LIFETIME
from holdfast.engine.engine import Engine
from holdfast.errors import RateLimited
from holdfast.model.access import Quotas
from holdfast.model.job import JobSpec
from holdfast.model.time import seconds

KEY = "holdfast:bench:window:acme"
MESSAGE = '["w-0123456789abcdef",[["mail","acme",0,123456789]]]'
CLIENTS = ("own", "redis-py")

Call = Callable[[], Awaitable[object]]


async def measure(what: str, calls: dict[str, Call], *, concurrency: int, rounds: int, count: int) -> None:
    """Alternate the clients and print the medians of time and CPU per call."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            left = iter(range(count))

            async def caller(call: Call = call, left: Any = left) -> None:
                for _ in left:
                    await call()

            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*[caller() for _ in range(concurrency)])
            if turn:  # the first round warms up
                found[name].append((time.perf_counter() - began, time.process_time() - cpu))
    medians = {
        name: [median(values) / count * 1e6 for values in zip(*times, strict=True)] for name, times in found.items()
    }
    (wall, cpu), (other_wall, other_cpu) = (medians[name] for name in CLIENTS)
    print(
        f"  {what:<44} {wall:6.0f} → {other_wall:6.0f} µs (× {other_wall / wall:.2f})   "
        f"CPU {cpu:6.0f} → {other_cpu:6.0f} µs (× {other_cpu / cpu:.2f})"
    )


async def raw_calls(url: str, concurrency: int, rounds: int, count: int) -> None:
    """Measure the commands alone."""
    link = RedisConnection(url, [REJECTION_WINDOW], timeout=5.0)
    await link.start()
    redis = Redis.from_url(url)
    costs = ",".join(["3"] * 60)
    await link.run(REJECTION_WINDOW, KEY, "store", WINDOW_LIFETIME * 10**6, 10**15, 100, 60_000_000, 10**9, costs)
    for what, command in {
        "EVALSHA window (is the rate exceeded)": (
            "EVALSHA",
            REJECTION_WINDOW.digest,
            1,
            KEY,
            "lookup",
            WINDOW_LIFETIME,
            1,
        ),
        "PUBLISH (wake-up)": ("PUBLISH", "holdfast:bench:wakeups", MESSAGE),
    }.items():
        calls: dict[str, Call] = {
            "own": lambda command=command: link.query(*command),
            "redis-py": lambda command=command: redis.execute_command(*command),
        }
        await measure(what, calls, concurrency=concurrency, rounds=rounds, count=count)
    await link.aclose()
    await redis.aclose()


class RedisPyConnection(RedisConnection):
    """Connection whose queries go through redis-py, with the same deadline."""

    def __init__(self, link: RedisConnection, url: str) -> None:
        self.__dict__ = link.__dict__
        self._redis = Redis.from_url(url, socket_timeout=5.0)

    async def query(self, *command: Any) -> Any:
        """Send a command through redis-py."""
        return await self._redis.execute_command(*command)


async def rejections(url: str, concurrency: int, rounds: int, count: int) -> None:
    """Measure a submission that Redis rejects."""
    with TemporaryDirectory() as folder:
        engines: dict[str, Engine] = {}
        for name in CLIENTS:
            settings = Settings(database_url=f"sqlite:///{folder}/jobs.db", redis_url=url, redis_for=("limits",))
            engines[name] = await open_engine(settings, migrate=True)
        await engines["own"].access.create_tenant("acme", Quotas(rate=10, rate_window=seconds(3_600)))
        cache: Any = engines["redis-py"].coordination.rejections
        cache._connection = RedisPyConnection(cache._connection, url)  # noqa: SLF001

        async def reject(engine: Engine) -> None:
            try:
                await engine.jobs.submit(JobSpec("send", {"to": 1}, tenant="acme"))
            except RateLimited:
                return

        for engine in engines.values():
            await engine.submitter.limited.refresh()
            for _ in range(20):
                await reject(engine)
        calls: dict[str, Call] = {name: (lambda engine=engine: reject(engine)) for name, engine in engines.items()}
        await measure("submission rejected by rate", calls, concurrency=concurrency, rounds=rounds, count=count)
        for engine in engines.values():
            await engine.aclose()


async def main(url: str, rounds: int, count: int) -> None:
    """Print all comparisons."""
    print("own client → redis-py, per call")
    for concurrency in (1, 32):
        print(f"{concurrency} in flight")
        await raw_calls(url, concurrency, rounds, count)
        await rejections(url, concurrency, rounds, count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis", required=True, metavar="URL")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=2_000, help="calls in each round")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(options.redis, options.rounds, options.count))
