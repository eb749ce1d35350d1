"""Cost of fairness and limits, and how fair the scheduling is, as ratios within one run.

    python -m tests.support.servers            # prints URLs of private servers
    python bench/fairness.py --url postgresql://…

Use an empty database that nothing else uses. Claim rates are those of claims only, 100 jobs each, as ratios to one
lane: medians over rounds in which all variants alternate. With one tenant that has a huge backlog and many with one job
each, the last of these starts when about as many jobs have started as there are tenants.
On any of the databases: `--url mysql://…`, `--url sqlite:////path/to/file`.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from statistics import median

from holdfast.bench import measures
from holdfast.bench.dataset import BenchDatabase
from holdfast.bench.measures import QUEUE
from holdfast.bench.suite import open_database
from holdfast.cli.event_loop import new_loop, reduce_gc
from holdfast.config import Settings
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.claiming.limited import SETTLES_AFTER
from holdfast.model.access import Quotas
from holdfast.model.ids import new_worker_id
from holdfast.model.job import JobSpec
from holdfast.model.limit import LimitName, Rate, queue_limit, tenant_limit
from holdfast.model.time import in_seconds, seconds
from holdfast.model.worker import WorkerInfo

BATCH = 100
WORKERS = 4
DRAINING = 10
"""Number of tenants in a drain under limits."""
PLENTY = 10_000_000


async def fill(database: BenchDatabase, backlogs: dict[str, int]) -> None:
    """Submit the given number of jobs of each tenant, interleaved."""
    remaining = dict(backlogs)
    batch: list[JobSpec] = []
    while remaining:
        for tenant in list(remaining):
            portion = min(remaining[tenant], max(1, remaining[tenant] // 50))
            batch += [JobSpec("bench.noop", {"i": 0}, queue=QUEUE, tenant=tenant)] * portion
            remaining[tenant] -= portion
            if not remaining[tenant]:
                del remaining[tenant]
            while len(batch) >= 10_000:
                await database.engine.jobs.submit_many(batch[:10_000])
                del batch[:10_000]
    if batch:
        await database.engine.jobs.submit_many(batch)


async def claims_of(database: BenchDatabase) -> Claims:
    """Register a worker and return its claims."""
    worker = WorkerInfo(new_worker_id(), "bench", "", 0, "", QUEUE, BATCH)
    await database.engine.workers.register(worker, seconds(3_600))
    return database.engine.attempts.claims(worker.id, [QUEUE])


async def claim_rate(
    database: BenchDatabase, backlogs: dict[str, int], jobs: int, started: list[str] | None = None
) -> float:
    """Return claimed jobs per second; add the tenants to `started` in order of their starts."""
    await database.wipe()
    await fill(database, backlogs)
    claims = await claims_of(database)
    found = await claims.claim(BATCH)  # the first claim scans for lanes, which is not measured
    claimed = 0
    start_time = time.perf_counter()
    while found:
        claimed += len(found)
        if started is not None:
            started += [job.tenant for job in found]
        if claimed >= jobs:
            break
        found = await claims.claim(min(BATCH, jobs - claimed))
    return (claimed - BATCH) / (time.perf_counter() - start_time)


async def drain(database: BenchDatabase, jobs: int, *, limited: bool) -> float:
    """Return jobs per second from claim to settle, without limits or with two limits per job."""
    names: list[LimitName] = [queue_limit(QUEUE), *(tenant_limit(f"t{n}") for n in range(DRAINING))]
    for name in names:
        max_running, rate = (PLENTY, Rate(PLENTY, seconds(1), PLENTY)) if limited else (None, None)
        await database.engine.limits.set(name, max_running=max_running, rate=rate)
    await database.wipe()
    if limited:  # a new limit scans for uncounted jobs during its first seconds
        await asyncio.sleep(in_seconds(SETTLES_AFTER) + 0.5)
        await measures.enqueue_many(database.engine, 500, tenants=DRAINING, progress=measures.no_progress)
        await measures.drain(database.engine, 500, progress=measures.no_progress)
    await measures.enqueue_many(database.engine, jobs, tenants=DRAINING, progress=measures.no_progress)
    return (await measures.drain(database.engine, jobs, progress=measures.no_progress)).per_second


async def shares(database: BenchDatabase, backlogs: dict[str, int], jobs: int) -> Counter[str]:
    """Return the jobs that each tenant started when concurrent workers claimed this many."""
    await database.wipe()
    await fill(database, backlogs)
    started: Counter[str] = Counter()

    async def work() -> None:
        claims = await claims_of(database)
        while started.total() < jobs:
            started.update(job.tenant for job in await claims.claim(BATCH))

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    return started


async def alternate(rounds: int, parts: dict[str, Callable[[], Awaitable[float]]]) -> dict[str, list[float]]:
    """Measure the parts alternately; return all results."""
    results: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, part in parts.items():
            results[name].append(await part())
    return results


async def medians(rounds: int, parts: dict[str, Callable[[], Awaitable[float]]]) -> dict[str, float]:
    """Measure the parts alternately; return the medians."""
    return {name: median(values) for name, values in (await alternate(rounds, parts)).items()}


async def run(options: argparse.Namespace) -> None:
    """Measure and print the results."""
    reduce_gc()  # as workers do
    async with open_database(Settings(database_url=options.url), force=options.force) as database:
        print(f"{await database.server()}\n")
        jobs: int = options.jobs
        lanes = {f"claim, {n:,} lanes": n for n in (1, 100, options.lanes)}
        rates = await medians(
            options.rounds,
            {
                name: lambda n=n: claim_rate(database, {f"t{i}": -(-jobs // n) for i in range(n)}, jobs)  # type: ignore[misc]
                for name, n in lanes.items()
            },
        )
        skewed = {"t0": options.skew, **{f"s{i}": 1 for i in range(options.lanes)}}
        started: list[str] = []
        rates[f"claim, {options.skew:,}:1 skew"] = await claim_rate(database, skewed, jobs, started)
        for name, rate in rates.items():
            print(f"  {name:<34} {rate:>9,.0f} jobs/s   ratio {rate / rates['claim, 1 lanes']:.2f}")
        singles = [place for place, tenant in enumerate(started, 1) if tenant != "t0"]
        print(f"  of {options.lanes:,} tenants with one job, {len(singles):,} started within {singles[-1]:,} starts")

        drained = await alternate(
            options.rounds,
            {"off": lambda: drain(database, jobs, limited=False), "on": lambda: drain(database, jobs, limited=True)},
        )
        for name in (queue_limit(QUEUE), *(tenant_limit(f"t{n}") for n in range(DRAINING))):
            await database.engine.limits.set(name, max_running=None, rate=None)
        # Ratio of adjacent runs, which had the same load on the machine.
        ratio = median(on / off for on, off in zip(drained["on"], drained["off"], strict=True))
        print(f"  {'drain, two limits on each job':<34} {median(drained['on']):>9,.0f} jobs/s   ratio {ratio:.2f}")

        few = jobs // 20
        found = await shares(database, {"t0": 100 * few, **{f"t{n}": few for n in range(1, 10)}}, 8 * few)
        jain = found.total() ** 2 / (len(found) * sum(each * each for each in found.values()))
        print(f"  Jain index at 100:1, {WORKERS} workers      {jain:.4f}")

        for n in range(1, 5):
            await database.engine.store.run(lambda tx, n=n: tx.add_tenant(f"w{n}", Quotas(weight=n)))  # type: ignore[misc]
        weighed = await shares(database, {f"w{n}": jobs // 2 for n in range(1, 5)}, jobs)
        worst = max(abs(weighed[f"w{n}"] / weighed.total() - n / 10) / (n / 10) for n in range(1, 5))
        print(f"  weights 1 to 4, worst error        {worst:.1%}")
        await database.wipe()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an empty database")
    parser.add_argument("--jobs", type=int, default=20_000, help="claims per measurement")
    parser.add_argument("--lanes", type=int, default=10_000, help="number of lanes for `many`")
    parser.add_argument("--skew", type=int, default=1_000_000, help="jobs of the huge tenant")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; each result is their median")
    parser.add_argument("--force", action="store_true", help="run even on a database that contains jobs")
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
