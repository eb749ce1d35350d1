"""P40: silo#399, lion-reader#917: a heartbeat during a settle raised a false alarm or took the job away."""

import asyncio

from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.outcome import Report, Succeeded
from holdfast.model.time import seconds
from tests.support.builders import a_worker

JOBS = 10_000
BATCH_SIZE = 250


async def test_ten_thousand_settles_during_renewals_raise_no_false_alarm(scene):
    """In one process: renewals run back to back from before the first claim until the last settle."""
    engine, worker = scene.engine, a_worker()
    await engine.workers.register(worker, seconds(60))
    await engine.jobs.submit_many([JobSpec(type="sink", payload={})] * JOBS)
    claims, renewals, ended = engine.attempts.claims(worker.id, ["default"]), [], asyncio.Event()

    async def renew():
        while not ended.is_set():
            renewals.append(await engine.workers.renew(worker.id, seconds(60)))

    renewing = asyncio.create_task(renew())
    settled, false_alarms = 0, 0
    while settled < JOBS:
        jobs = await claims.claim(BATCH_SIZE)
        halves = jobs[::2], jobs[1::2]
        batches = [[Report(job, Succeeded(b"null")) for job in half] for half in halves if half]
        lost = await engine.attempts.lost([HeldJob(job.id, job.fence, worker.id) for job in jobs])
        done = await asyncio.gather(*[engine.attempts.settle_many(batch) for batch in batches])
        false_alarms += len(lost) + len(jobs) - sum(len(settled_ids) for settled_ids in done)
        settled += len(jobs)
    ended.set()
    await renewing
    assert false_alarms == 0
    assert len(renewals) > 20
    assert all(renewals)
