"""Measurements of a benchmark."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from statistics import quantiles

from msgspec import Struct

from holdfast import tasks
from holdfast.bench.worker import NoopWorker
from holdfast.engine.engine import Engine
from holdfast.model.job import Job, JobSpec

QUEUE = "bench"
PAYLOAD = {"i": 0, "pad": "x" * 80}

Progress = Callable[[int], None]
"""Called with the number of jobs done since the last call."""

_MAX_AHEAD = 5_000
"""Jobs that a sustained run submits ahead of the worker."""


class Throughput(Struct, frozen=True):
    """Jobs per second, and CPU time of this process per job."""

    per_second: float
    cpu_us: float


class Latency(Struct, frozen=True):
    """Latencies in milliseconds."""

    p50: float
    p99: float
    longest: float


def no_progress(more: int) -> None:
    """Ignore progress."""
    del more


async def enqueue_one(engine: Engine, jobs: int, *, clients: int, progress: Progress) -> Throughput:
    """Submit jobs one at a time; each client waits for the response before the next."""
    numbers = iter(range(jobs))

    async def client() -> None:
        for i in numbers:
            await engine.jobs.submit(_spec(i, 1))
            progress(1)

    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client() for _ in range(clients)])
    return _rate(jobs, start, cpu)


async def enqueue_many(
    engine: Engine, jobs: int, *, tenants: int, progress: Progress, batch: int = 1_000
) -> Throughput:
    """Submit jobs in batches, sequentially."""
    start, cpu = time.perf_counter(), time.process_time()
    for low in range(0, jobs, batch):
        specs = [_spec(i, tenants) for i in range(low, min(jobs, low + batch))]
        await engine.jobs.submit_many(specs)
        progress(len(specs))
    return _rate(jobs, start, cpu)


async def drain(engine: Engine, jobs: int, *, progress: Progress) -> Throughput:
    """Measure from the first claim of ready jobs to the commit of the last settle."""
    worker = NoopWorker(engine, QUEUE, jobs)
    start, cpu = time.perf_counter(), time.process_time()
    async with _report_progress(worker, progress):
        await worker.run()
    return _rate(jobs, start, cpu)


async def sustained(
    engine: Engine, seconds: float, *, tenants: int, progress: Progress, batch: int = 500
) -> Throughput:
    """Submit and drain concurrently for this time; measure until the last settle.

    `progress` counts seconds.
    """
    worker = NoopWorker(engine, QUEUE, None)
    running = tasks.start(worker.run(), name="holdfast bench worker", awaited=True)
    start, cpu = time.perf_counter(), time.process_time()
    sent = reported = 0
    while (passed := time.perf_counter() - start) < seconds:
        progress(int(passed) - reported)
        reported = int(passed)
        if running.done():
            await running  # raises its error
        if sent - worker.done >= _MAX_AHEAD:
            worker.progressed.clear()
            progressed = tasks.start(worker.progressed.wait(), name="holdfast bench progress", awaited=True)
            await asyncio.wait([running, progressed], return_when=asyncio.FIRST_COMPLETED)
            await tasks.stop(progressed)
            continue
        await engine.jobs.submit_many([_spec(i, tenants) for i in range(sent, sent + batch)])
        sent += batch
    worker.finish_at(sent)
    await running
    return _rate(sent, start, cpu)


async def pick_up(engine: Engine, jobs: int, *, progress: Progress, gap: float = 0.02) -> Latency:
    """Measure from the return of a submit to the start of the job on an idle worker."""
    submitted: dict[object, float] = {}  # by id
    started: dict[object, float] = {}

    def record_start(job: Job) -> None:
        started[job.id] = time.perf_counter()

    worker = NoopWorker(engine, QUEUE, jobs, started=record_start)
    running = tasks.start(worker.run(), name="holdfast bench worker", awaited=True)
    for i in range(jobs):
        await asyncio.sleep(random.uniform(0.5, 1.5) * gap)
        receipt = await engine.jobs.submit(_spec(i, 1))
        submitted[receipt.id] = time.perf_counter()
        progress(1)
    await running
    latencies = [max(0.0, started[job] - at) * 1_000 for job, at in submitted.items()]
    cuts = quantiles(latencies, n=100)
    return Latency(cuts[49], cuts[98], max(latencies))


@asynccontextmanager
async def _report_progress(worker: NoopWorker, progress: Progress) -> AsyncIterator[None]:
    def report() -> None:
        progress(worker.done - worker.reported)
        worker.reported = worker.done

    async def report_regularly() -> None:
        while True:
            await asyncio.sleep(0.1)
            report()

    reporter = tasks.start(report_regularly(), name="holdfast bench progress")
    try:
        yield
        report()
    finally:
        await tasks.stop(reporter)


def _spec(i: int, tenants: int) -> JobSpec:
    return JobSpec("bench.noop", {**PAYLOAD, "i": i}, queue=QUEUE, tenant=f"t{i % tenants}")


def _rate(jobs: int, start: float, cpu: float) -> Throughput:
    return Throughput(jobs / (time.perf_counter() - start), 1e6 * (time.process_time() - cpu) / max(1, jobs))
