"""Gain of each use of Redis: the same calls with and without it, alternating, on one database.

    python -m tests.support.servers            # prints URLs of private servers
    python bench/with_redis.py --url postgresql://… --redis redis://…

Each line is a ratio of the time with Redis to the time without it (below 1 is a gain): the median over rounds in which
both alternate. CPU is that of this process, which makes the calls; that of the database is not included.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import NamedTuple

from holdfast.cli.event_loop import new_loop
from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.engine.changes.tail import Tail
from holdfast.engine.engine import Engine
from holdfast.errors import Conflict, RateLimited
from holdfast.model.access import Quotas
from holdfast.model.ids import new_worker_id
from holdfast.model.job import JobSpec
from holdfast.model.outcome import Succeeded
from holdfast.model.time import seconds
from holdfast.model.worker import WorkerInfo

PAYLOAD = {"to": "ada@example.com", "subject": "hello", "lines": ["one", "two", "three"]}
PARTS = ("wakeups", "limits")

Call = Callable[[Engine], Awaitable[object]]
Once = Callable[[Engine, Engine], Awaitable[float]]


class Sides(NamedTuple):
    """Engine without Redis and engine with Redis, and the sizes of the comparison."""

    plain: Engine
    near: Engine
    clients: int
    rounds: int
    times: int

    async def compare(self, what: str, call: Call) -> None:
        """Time both engines alternately and print the median of the ratios."""
        count = self.times if self.clients > 1 else max(20, self.times // 10)
        ratios: list[tuple[float, float]] = []
        rates: list[tuple[float, float]] = []
        for round_ in range(self.rounds + 1):
            first, second = [await self._time(call, engine, count) for engine in (self.plain, self.near)]
            if round_:  # the first is a warm-up
                ratios.append((second[0] / first[0], second[1] / first[1]))
                rates.append((count / first[0], count / second[0]))
        before, after = (median(each) for each in zip(*rates, strict=True))
        wall, cpu = (median(each) for each in zip(*ratios, strict=True))
        print(f"  {what:<40} {before:>7,.0f} → {after:>7,.0f} calls/s   time × {wall:.2f}   CPU here × {cpu:.2f}")

    async def _time(self, call: Call, engine: Engine, times: int) -> tuple[float, float]:
        numbers = iter(range(times))

        async def client() -> None:
            for _ in numbers:
                await call(engine)

        start_time, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[client() for _ in range(self.clients)])
        return time.perf_counter() - start_time, time.process_time() - cpu


async def main(url: str, redis: str, rounds: int, times: int, parts: list[str]) -> None:
    """Measure and print the gain of each part."""
    plain = [await open_engine(Settings(database_url=url), migrate=True) for _ in range(2)]
    near = [await open_engine(Settings(database_url=url, redis_url=redis, redis_for=PARTS)) for _ in range(2)]
    print(f"{url.split(':', 1)[0]}: with Redis, as against without")
    measured = {"limits": limits}
    for clients in (1, 32):
        if measured.keys() & set(parts):
            print(f"{clients} concurrent client{'s' * (clients > 1)}")
        for name in [name for name in measured if name in parts]:
            await measured[name](Sides(plain[0], near[0], clients, rounds, times))
    if "wakeups" in parts:
        print("from one idle process to another")
        await latency("wake-up: from submission to the worker", woken, (plain, near), rounds)
        await latency("stream: from settle to the event", streamed, (plain, near), rounds)
    for engine in (*plain, *near):
        await engine.aclose()


async def limits(sides: Sides) -> None:
    """Compare submissions over the rate quota, and within it."""
    for name, quotas in (
        ("bench-over", Quotas(rate=10, rate_window=seconds(3_600))),
        ("bench-within", Quotas(rate=10**9, rate_window=seconds(60))),
    ):
        try:
            await sides.plain.access.create_tenant(name, quotas)
        except Conflict:
            await sides.plain.access.change_tenant(name, {"rate": quotas.rate, "rate_window": quotas.rate_window})
    await sides.plain.submitter.limited.refresh()
    await sides.near.submitter.limited.refresh()

    async def refused(engine: Engine) -> None:
        try:
            await engine.jobs.submit(_spec("bench-over"))
        except RateLimited:
            return

    for _ in range(20):
        await refused(sides.near)
    await sides.compare("limits: refused", refused)

    def within(engine: Engine) -> Awaitable[object]:
        return engine.jobs.submit(_spec("bench-within"))

    await sides.compare("limits: accepted", within)


async def latency(what: str, once: Once, pairs: tuple[list[Engine], list[Engine]], rounds: int) -> None:
    """Measure and print the latency between two processes."""
    took: list[list[float]] = [[], []]
    for _ in range(rounds):
        for pair, found in zip(pairs, took, strict=True):
            found.append(await once(pair[0], pair[1]))
    before, after = (median(each) * 1_000 for each in took)
    worst = [max(each) * 1_000 for each in took]
    times = f"{before:>6.1f} → {after:>5.1f} ms (at worst {worst[0]:.0f} → {worst[1]:.0f})"
    print(f"  {what:<52} {times}   × {after / before:.2f}")


async def woken(one: Engine, other: Engine) -> float:
    """Return the time until a worker that has waited for a second is woken."""
    subscription = other.attempts.listen(["bench-wake"])
    while await subscription.wait(0) is not None:
        pass

    async def wait() -> float:
        # Like a worker: scan after each wake-up and after each timeout.
        while True:
            await subscription.wait(1.0)
            if await other.store.single(lambda tx: tx.lanes(["bench-wake"], 10)):
                return time.perf_counter()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(random.uniform(1.0, 1.5))
    start_time = time.perf_counter()
    made = await one.jobs.submit(_spec("bench", queue="bench-wake"))
    took = await waiting - start_time
    subscription.close()
    await one.jobs.cancel([made.id], reason="measured")
    return took


async def streamed(one: Engine, other: Engine) -> float:
    """Return the time until a stream that was idle for a second has the event of a settle."""
    worker = WorkerInfo(new_worker_id(), "bench", "here", 1, "0")
    await one.workers.register(worker, seconds(60))
    made = await one.jobs.submit(_spec("bench", queue="bench-stream"))
    (job,) = await one.attempts.claims(worker.id, ["bench-stream"]).claim(1)
    tail = Tail(other.store)
    await tail.begin()

    async def read() -> float:
        while True:
            for entry in await tail.read_new():
                tail.mark_seen(entry)
                if any(change.id == made.id for change in entry.body.c):
                    return time.perf_counter()
            await tail.wait()

    reading = asyncio.create_task(read())
    await asyncio.sleep(random.uniform(1.0, 1.5))
    start_time = time.perf_counter()
    await one.attempts.settle(job, Succeeded(b"null"))
    took = await reading - start_time
    tail.close()
    await one.workers.depart(worker.id)
    return took


def _spec(tenant: str, *, queue: str = "bench", idempotency_key: str | None = None) -> JobSpec:
    return JobSpec(type="bench.noop", payload=PAYLOAD, tenant=tenant, queue=queue, idempotency_key=idempotency_key)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--redis", required=True)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be repeated")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1_000)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(
            main(arguments.url, arguments.redis, arguments.rounds, arguments.calls, arguments.part or list(PARTS))
        )
