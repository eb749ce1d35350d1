"""What Redis gains, part by part: the same calls with and without it, in turns, on one database.

    python -m tests.support.servers            # prints URLs of private servers
    python bench/with_redis.py --url postgresql://… --redis redis://…

Each line is a ratio: how many times as long a call takes with Redis as without it (below 1 is a gain), the median over
rounds in which both took turns. CPU is that of this process, where the calls are made; the database's comes on top.
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
    """An engine without Redis and one with it, and how they are compared."""

    plain: Engine
    near: Engine
    clients: int
    rounds: int
    times: int

    async def compare(self, what: str, call: Call) -> None:
        """Both in turns, and the median of their ratios."""
        count = self.times if self.clients > 1 else max(20, self.times // 10)
        ratios: list[tuple[float, float]] = []
        rates: list[tuple[float, float]] = []
        for round_ in range(self.rounds + 1):
            first, second = [await self._time(call, engine, count) for engine in (self.plain, self.near)]
            if round_:  # the first is to warm up
                ratios.append((second[0] / first[0], second[1] / first[1]))
                rates.append((count / first[0], count / second[0]))
        before, after = (median(each) for each in zip(*rates, strict=True))
        wall, cpu = (median(each) for each in zip(*ratios, strict=True))
        print(f"  {what:<40} {before:>7,.0f} → {after:>7,.0f} calls/s   time × {wall:.2f}   CPU here × {cpu:.2f}")

    async def _time(self, call: Call, engine: Engine, times: int) -> tuple[float, float]:
        left = iter(range(times))

        async def client() -> None:
            for _ in left:
                await call(engine)

        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[client() for _ in range(self.clients)])
        return time.perf_counter() - began, time.process_time() - cpu


async def main(url: str, redis: str, rounds: int, times: int, parts: list[str]) -> None:
    """Print what each part gains."""
    plain = [await open_engine(Settings(database_url=url), migrate=True) for _ in range(2)]
    near = [await open_engine(Settings(database_url=url, redis_url=redis, redis_for=PARTS)) for _ in range(2)]
    print(f"{url.split(':', 1)[0]}: with Redis, as against without")
    measured = {"limits": limits}
    for clients in (1, 32):
        if measured.keys() & set(parts):
            print(f"{clients} client{'s' * (clients > 1)} at once")
        for name in [name for name in measured if name in parts]:
            await measured[name](Sides(plain[0], near[0], clients, rounds, times))
    if "wakeups" in parts:
        print("from one process to another, at rest")
        await latency("wake-up: a job is submitted, a worker hears of it", woken, (plain, near), rounds)
        await latency("stream: a job is settled, its event is read", streamed, (plain, near), rounds)
    for engine in (*plain, *near):
        await engine.aclose()


async def limits(sides: Sides) -> None:
    """Limits: beyond the rate, and within it."""
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
    """How long until the other process knows."""
    took: list[list[float]] = [[], []]
    for _ in range(rounds):
        for pair, found in zip(pairs, took, strict=True):
            found.append(await once(pair[0], pair[1]))
    before, after = (median(each) * 1_000 for each in took)
    worst = [max(each) * 1_000 for each in took]
    told = f"{before:>6.1f} → {after:>5.1f} ms (at worst {worst[0]:.0f} → {worst[1]:.0f})"
    print(f"  {what:<52} {told}   × {after / before:.2f}")


async def woken(one: Engine, other: Engine) -> float:
    """A worker that has waited for a second or so hears of a job."""
    subscription = other.attempts.listen(["bench-wake"])
    while await subscription.wait(0) is not None:
        pass

    async def wait() -> float:
        # As a worker does: woken or not, it looks.
        while True:
            await subscription.wait(1.0)
            if await other.store.single(lambda tx: tx.lanes(["bench-wake"], 10)):
                return time.perf_counter()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(random.uniform(1.0, 1.5))
    began = time.perf_counter()
    made = await one.jobs.submit(_spec("bench", queue="bench-wake"))
    took = await waiting - began
    subscription.close()
    await one.jobs.cancel([made.id], reason="measured")
    return took


async def streamed(one: Engine, other: Engine) -> float:
    """A stream that has been quiet for a second or so tells of a job's end."""
    worker = WorkerInfo(new_worker_id(), "bench", "here", 1, "0")
    await one.workers.register(worker, seconds(60))
    made = await one.jobs.submit(_spec("bench", queue="bench-stream"))
    (job,) = await one.attempts.claims(worker.id, ["bench-stream"]).claim(1)
    tail = Tail(other.store)
    await tail.begin()

    async def read() -> float:
        while True:
            for entry in await tail.more():
                tail.mark_seen(entry)
                if any(change.id == made.id for change in entry.body.c):
                    return time.perf_counter()
            await tail.wait()

    reading = asyncio.create_task(read())
    await asyncio.sleep(random.uniform(1.0, 1.5))
    began = time.perf_counter()
    await one.attempts.settle(job, Succeeded(b"null"))
    took = await reading - began
    tail.close()
    await one.workers.depart(worker.id)
    return took


def _spec(tenant: str, *, queue: str = "bench", idempotency_key: str | None = None) -> JobSpec:
    return JobSpec(type="bench.noop", payload=PAYLOAD, tenant=tenant, queue=queue, idempotency_key=idempotency_key)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--redis", required=True)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; may be given again")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1_000)
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(given.url, given.redis, given.rounds, given.calls, given.part or list(PARTS)))
