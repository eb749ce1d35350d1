"""What limits cost: submits of tenants without limits and with, held against the same without any of it, in one run.

    ./.venv/bin/python bench/admission.py --url sqlite:////var/tmp/limits.db [--rounds 15] [--jobs 1000]

Rounds take turns, so that whatever else the machine does falls on all alike; the medians are told as ratios. The
database should be an empty one of its own.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median

from holdfast.compose import open_store
from holdfast.engine.engine import Engine
from holdfast.model.access import Quotas
from holdfast.model.ids import new_job_id
from holdfast.model.job import JobSpec
from holdfast.model.time import seconds
from holdfast.policy.submission import build_job

PLENTY = 10**9
TENANTS = {
    "no limits": None,
    "rate": Quotas(rate=PLENTY, rate_window=seconds(60)),
    "rate and backlogs": Quotas(rate=PLENTY, rate_window=seconds(60), backlog=PLENTY, queue_backlog=PLENTY),
}
PAYLOAD = {"i": 0, "pad": "x" * 80}

Submit = Callable[[str], Awaitable[object]]


async def main(url: str, rounds: int, jobs: int) -> None:
    """Measure and print."""
    store = await open_store(url)
    await store.migrate()
    engine = await Engine.open(store)
    for name, quotas in TENANTS.items():
        if quotas is not None:
            await engine.access.create_tenant(_tenant(name), quotas)
    await engine.submitter.limited.refresh()

    async def bare(tenant: str) -> object:
        job = build_job(_spec(tenant), new_job_id(), max_attempts=5)
        return await engine.submitter.unlimited.submit(job)

    async def submit(tenant: str) -> object:
        return await engine.jobs.submit(_spec(tenant))

    async def batch(tenant: str) -> object:
        return await engine.jobs.submit_many([_spec(tenant)] * 100)

    for title, clients, ways in (
        ("one client, one job at a time", 1, {"without any of it": bare, **dict.fromkeys(TENANTS, submit)}),
        ("32 clients, one job at a time", 32, {"without any of it": bare, **dict.fromkeys(TENANTS, submit)}),
        ("one client, batches of 100", 1, dict.fromkeys(TENANTS, batch)),
    ):
        times = max(20, jobs // 10) if clients == 1 else jobs
        await _compare(title, ways, clients=clients, rounds=rounds, times=times)
    await engine.aclose()


async def _compare(title: str, ways: dict[str, Submit], *, clients: int, rounds: int, times: int) -> None:
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            took[name].append(await _time(way, _tenant(name), clients=clients, times=times))
        if round_ == 0:  # to warm up
            took = {name: [] for name in ways}
    print(f"{title}")
    first = next(iter(ways))
    for name in ways:
        ratios = [
            (wall / wall_first, cpu / cpu_first)
            for (wall, cpu), (wall_first, cpu_first) in zip(took[name], took[first], strict=True)
        ]
        rate = times / median(wall for wall, _ in took[name])
        wall, cpu = (median(ratio[part] for ratio in ratios) for part in (0, 1))
        print(f"  {name:<20} {rate:>9,.0f} calls/s   time × {wall:.2f}   CPU of this process × {cpu:.2f}")


async def _time(way: Submit, tenant: str, *, clients: int, times: int) -> tuple[float, float]:
    left = iter(range(times))

    async def client() -> None:
        for _ in left:
            await way(tenant)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client() for _ in range(clients)])
    return time.perf_counter() - began, time.process_time() - cpu


def _tenant(name: str) -> str:
    return name.replace(" ", "-")


def _spec(tenant: str) -> JobSpec:
    return JobSpec(type="bench.noop", payload=PAYLOAD, tenant=tenant, queue="bench")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=1_000)
    given = parser.parse_args()
    asyncio.run(main(given.url, given.rounds, given.jobs))
