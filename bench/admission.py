"""Cost of quotas: compare submissions of tenants without and with quotas to plain inserts.

    ./.venv/bin/python bench/admission.py --url sqlite:////var/tmp/limits.db [--rounds 15] [--jobs 1000]

The variants alternate in each round, so that other load affects all of them; results are medians of ratios. Use an
empty database that nothing else uses.
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
    "no quotas": None,
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

    for title, clients, variants in (
        ("one client, one job at a time", 1, {"plain insert": bare, **dict.fromkeys(TENANTS, submit)}),
        ("32 clients, one job at a time", 32, {"plain insert": bare, **dict.fromkeys(TENANTS, submit)}),
        ("one client, batches of 100", 1, dict.fromkeys(TENANTS, batch)),
    ):
        times = max(20, jobs // 10) if clients == 1 else jobs
        await _compare(title, variants, clients=clients, rounds=rounds, times=times)
    await engine.aclose()


async def _compare(title: str, variants: dict[str, Submit], *, clients: int, rounds: int, times: int) -> None:
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    for round_ in range(rounds + 1):
        for name, submit in variants.items():
            took[name].append(await _time(submit, _tenant(name), clients=clients, times=times))
        if round_ == 0:  # warm-up
            took = {name: [] for name in variants}
    print(f"{title}")
    first = next(iter(variants))
    for name in variants:
        ratios = [
            (wall / wall_first, cpu / cpu_first)
            for (wall, cpu), (wall_first, cpu_first) in zip(took[name], took[first], strict=True)
        ]
        rate = times / median(wall for wall, _ in took[name])
        wall, cpu = (median(ratio[part] for ratio in ratios) for part in (0, 1))
        print(f"  {name:<20} {rate:>9,.0f} calls/s   time × {wall:.2f}   CPU of this process × {cpu:.2f}")


async def _time(submit: Submit, tenant: str, *, clients: int, times: int) -> tuple[float, float]:
    numbers = iter(range(times))

    async def client() -> None:
        for _ in numbers:
            await submit(tenant)

    start_time, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client() for _ in range(clients)])
    return time.perf_counter() - start_time, time.process_time() - cpu


def _tenant(name: str) -> str:
    return name.replace(" ", "-")


def _spec(tenant: str) -> JobSpec:
    return JobSpec(type="bench.noop", payload=PAYLOAD, tenant=tenant, queue="bench")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=1_000)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.url, arguments.rounds, arguments.jobs))
