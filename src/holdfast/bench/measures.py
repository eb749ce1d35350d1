"""What is measured, one function each."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from statistics import quantiles

from msgspec import Struct

from holdfast.bench.worker import NoopWorker
from holdfast.engine.engine import Engine
from holdfast.model.job import Job, JobSpec

QUEUE = "bench"
PAYLOAD = {"i": 0, "pad": "x" * 80}

Progress = Callable[[int], None]
"""Told how many more are done."""

_FRONT = 5_000
"""In a sustained run: how far enqueuing runs ahead of the worker."""


class Rate(Struct, frozen=True):
    """Jobs per second, and what one cost this process."""

    per_second: float
    cpu_us: float


class Latency(Struct, frozen=True):
    """Milliseconds."""

    p50: float
    p99: float
    longest: float


def quiet(more: int) -> None:
    """A `Progress` that tells nobody."""
    del more


async def enqueue_one(engine: Engine, jobs: int, *, clients: int, progress: Progress) -> Rate:
    """Single submits, each answered before its client sends the next."""
    left = iter(range(jobs))

    async def client() -> None:
        for i in left:
            await engine.jobs.submit(_spec(i, 1))
            progress(1)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client() for _ in range(clients)])
    return _rate(jobs, began, cpu)


async def enqueue_many(engine: Engine, jobs: int, *, tenants: int, progress: Progress, batch: int = 1_000) -> Rate:
    """Batches, one after the other."""
    began, cpu = time.perf_counter(), time.process_time()
    for low in range(0, jobs, batch):
        specs = [_spec(i, tenants) for i in range(low, min(jobs, low + batch))]
        await engine.jobs.submit_many(specs)
        progress(len(specs))
    return _rate(jobs, began, cpu)


async def drain(engine: Engine, jobs: int, *, progress: Progress) -> Rate:
    """From the first claim of what lies ready until the last settle is committed."""
    worker = NoopWorker(engine, QUEUE, jobs)
    began, cpu = time.perf_counter(), time.process_time()
    async with _reporting(worker, progress):
        await worker.run()
    return _rate(jobs, began, cpu)


async def sustained(engine: Engine, seconds: float, *, tenants: int, progress: Progress, batch: int = 500) -> Rate:
    """Enqueue and drain at once for so long; until the last settle. `progress` is told of seconds."""
    worker = NoopWorker(engine, QUEUE, None)
    running = asyncio.create_task(worker.run())
    began, cpu = time.perf_counter(), time.process_time()
    sent = told = 0
    while (passed := time.perf_counter() - began) < seconds:
        progress(int(passed) - told)
        told = int(passed)
        if running.done():
            await running  # tells why
        if sent - worker.done >= _FRONT:
            worker.progressed.clear()
            await asyncio.wait(
                [running, wait := asyncio.create_task(worker.progressed.wait())], return_when="FIRST_COMPLETED"
            )
            wait.cancel()
            continue
        await engine.jobs.submit_many([_spec(i, tenants) for i in range(sent, sent + batch)])
        sent += batch
    worker.finish_at(sent)
    await running
    return _rate(sent, began, cpu)


async def pick_up(engine: Engine, jobs: int, *, progress: Progress, gap: float = 0.02) -> Latency:
    """From the answer to a submit until the job starts on an idle worker of the same process."""
    submitted: dict[object, float] = {}  # by id
    started: dict[object, float] = {}

    def note(job: Job) -> None:
        started[job.id] = time.perf_counter()

    worker = NoopWorker(engine, QUEUE, jobs, started=note)
    running = asyncio.create_task(worker.run())
    for i in range(jobs):
        await asyncio.sleep(random.uniform(0.5, 1.5) * gap)
        receipt = await engine.jobs.submit(_spec(i, 1))
        submitted[receipt.id] = time.perf_counter()
        progress(1)
    await running
    taken = [max(0.0, started[job] - at) * 1_000 for job, at in submitted.items()]
    cuts = quantiles(taken, n=100)
    return Latency(cuts[49], cuts[98], max(taken))


@asynccontextmanager
async def _reporting(worker: NoopWorker, progress: Progress) -> AsyncIterator[None]:
    def tell() -> None:
        progress(worker.done - worker.reported)
        worker.reported = worker.done

    async def again() -> None:
        while True:
            await asyncio.sleep(0.1)
            tell()

    reporting = asyncio.create_task(again())
    try:
        yield
        tell()
    finally:
        reporting.cancel()


def _spec(i: int, tenants: int) -> JobSpec:
    return JobSpec("bench.noop", {**PAYLOAD, "i": i}, queue=QUEUE, tenant=f"t{i % tenants}")


def _rate(jobs: int, began: float, cpu: float) -> Rate:
    return Rate(jobs / (time.perf_counter() - began), 1e6 * (time.process_time() - cpu) / max(1, jobs))
