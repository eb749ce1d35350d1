"""What is measured, one function each."""

import asyncio
import random
import time
from collections.abc import Callable
from statistics import quantiles
from typing import NamedTuple

from holdfast.bench.worker import NoopWorker
from holdfast.engine.engine import Engine
from holdfast.model.job import Job, JobSpec

QUEUE = "bench"
PAYLOAD = {"i": 0, "pad": "x" * 80}

Progress = Callable[[int], None]
"""Told how many more are done."""


class Rate(NamedTuple):
    """Jobs per second, and what one cost this process."""

    per_second: float
    cpu_us: float


class Latency(NamedTuple):
    """Milliseconds."""

    p50: float
    p99: float
    longest: float


async def enqueue_one(engine: Engine, jobs: int, *, clients: int, progress: Progress) -> Rate:
    """Single submits, each answered before its client sends the next."""
    left = iter(range(jobs))

    async def client() -> None:
        for i in left:
            await engine.submit(_spec(i, 1))
            progress(1)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client() for _ in range(clients)])
    return _rate(jobs, began, cpu)


async def enqueue_many(engine: Engine, jobs: int, *, tenants: int, progress: Progress, batch: int = 1_000) -> Rate:
    """Batches, one after the other."""
    began, cpu = time.perf_counter(), time.process_time()
    for low in range(0, jobs, batch):
        specs = [_spec(i, tenants) for i in range(low, min(jobs, low + batch))]
        await engine.submit_many(specs)
        progress(len(specs))
    return _rate(jobs, began, cpu)


async def drain(engine: Engine, jobs: int, *, progress: Progress) -> Rate:
    """From the first claim of what lies ready until the last settle is committed."""
    worker = NoopWorker(engine, QUEUE, jobs)
    began, cpu = time.perf_counter(), time.process_time()
    reporting = asyncio.create_task(_report(worker, progress))
    try:
        await worker.run()
    finally:
        reporting.cancel()
    rate = _rate(jobs, began, cpu)
    progress(jobs - worker.reported)
    return rate


async def pick_up(engine: Engine, jobs: int, *, progress: Progress, gap: float = 0.02) -> Latency:
    """From the answer to a submit until the job starts on an idle worker of the same process."""
    submitted: dict[int, float] = {}
    taken: list[float] = []
    started: dict[int, float] = {}

    def note(job: Job) -> None:
        started[hash(job.id)] = time.perf_counter()

    worker = NoopWorker(engine, QUEUE, jobs, started=note)
    running = asyncio.create_task(worker.run())
    for i in range(jobs):
        await asyncio.sleep(random.uniform(0.5, 1.5) * gap)
        receipt = await engine.submit(_spec(i, 1))
        submitted[hash(receipt.id)] = time.perf_counter()
        progress(1)
    await running
    taken = [max(0.0, started[job] - at) * 1_000 for job, at in submitted.items()]
    cuts = quantiles(taken, n=100)
    return Latency(cuts[49], cuts[98], max(taken))


async def _report(worker: NoopWorker, progress: Progress) -> None:
    while True:
        await asyncio.sleep(0.1)
        progress(worker.done - worker.reported)
        worker.reported = worker.done


def _spec(i: int, tenants: int) -> JobSpec:
    return JobSpec("bench.noop", {**PAYLOAD, "i": i}, queue=QUEUE, tenant=f"t{i % tenants}")


def _rate(jobs: int, began: float, cpu: float) -> Rate:
    return Rate(jobs / (time.perf_counter() - began), 1e6 * (time.process_time() - cpu) / jobs)
