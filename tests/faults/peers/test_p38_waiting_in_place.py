"""P38: laravel/ideas#1364: to retry a job, it was deleted and inserted again without a transaction.

P13: dramatiq#431, dramatiq#461: delayed messages were copied to the work queue before the original was deleted.
"""

import asyncio
from signal import SIGKILL

from holdfast.model.job import JobFilter, Page
from tests.support.eventually import eventually

WAITS = [
    {"action": "fail_times", "amount": 2},
    {"action": "snooze", "amount": 2},
    {"action": "retry_in", "amount": 0.2},
]


async def test_a_reader_sees_each_job_exactly_once_at_any_moment(scene):
    """Delayed, retried and snoozed jobs stay in place, even while a node is killed."""
    first, _ = [scene.node(lease=1.0) for _ in range(2)]
    await scene.workers(2)
    ids = []
    for n in range(5):
        for wait in WAITS:
            ids.append(await scene.submit(f"now {n} {wait}", sleep=0.1, max_attempts=20, **wait))
            ids.append(await scene.submit(f"later {n} {wait}", delay=0.1 * n, max_attempts=20, **wait))

    async def all_there_and_done():
        found = await scene.engine.jobs.find(JobFilter(), Page(2 * len(ids)))
        assert sorted(job.id for job in found) == sorted(ids)
        return all(job.status == "succeeded" for job in found)

    watching = asyncio.create_task(eventually(all_there_and_done, within=60))
    await scene.noted("start", times=len(ids))
    killed = set(first.all_processes())
    first.signal_all(SIGKILL)
    await watching
    # Jobs that the killed node finished and did not report run again (at least once). No other job runs twice.
    ends = [entry for entry in scene.ledger.entries("end") if entry.pid not in killed]
    assert len(ends) == len({entry.key for entry in ends})
    assert len(scene.ledger.per_key("end")) == len(ids)
