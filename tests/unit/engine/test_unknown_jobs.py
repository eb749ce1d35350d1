"""F14: jobs that a remote worker holds and does not name in its renewals are released after a lease."""

import pytest

from holdfast.engine.jobs.settle import settle
from holdfast.engine.unknown_jobs import COMPARE_INTERVAL_S, UnknownJobs
from holdfast.model.job import HeldJob
from holdfast.model.state import Status
from holdfast.model.time import seconds
from holdfast.policy.lifecycle import attempt_log
from tests.support.builders import RETRY, enter, hold, read

LEASE = seconds(60)


class Now:
    """Monotonic clock of a test."""

    def __init__(self):
        self.at = 1_000.0

    def __call__(self):
        return self.at


@pytest.fixture
def now():
    return Now()


@pytest.fixture
def unknown_jobs(store, now):
    async def settle_all(reports):
        return await settle(store, reports, default=RETRY, rng=lambda: 0.5)

    return UnknownJobs(store, settle_all, monotonic=now)


def named(jobs, worker):
    return [HeldJob(job.id, job.fence, worker) for job in jobs]


async def test_a_job_that_its_worker_does_not_name_for_a_lease_is_released(store, unknown_jobs, now):
    worker = await enter(store, lease=seconds(600))
    jobs = await hold(store, worker, n=3)
    known = named(jobs[:2], worker)
    assert await unknown_jobs.compare(worker, known, LEASE) == set()
    now.at += 59
    assert await unknown_jobs.compare(worker, known, LEASE) == set()
    now.at += COMPARE_INTERVAL_S
    assert await unknown_jobs.compare(worker, known, LEASE) == {jobs[2].id}
    released = await read(store, jobs[2])
    assert (released.status, released.attempts) == (Status.SCHEDULED, 0)
    (record,) = attempt_log(released)
    assert (record.outcome, record.error.kind) == ("unavailable", "ReportLost")
    assert [(await read(store, job)).status for job in jobs[:2]] == [Status.RUNNING] * 2


async def test_a_job_that_is_named_in_between_is_kept(store, unknown_jobs, now):
    """Its claim was in flight when an earlier renewal was sent."""
    worker = await enter(store, lease=seconds(600))
    jobs = await hold(store, worker, n=1)
    for running in ([], named(jobs, worker), [], []):
        assert await unknown_jobs.compare(worker, running, LEASE) == set()
        now.at += 59
    assert (await read(store, jobs[0])).status is Status.RUNNING


async def test_renewals_are_not_compared_too_often(store, unknown_jobs, now, monkeypatch):
    worker = await enter(store, lease=seconds(600))
    await hold(store, worker, n=1)
    reads = []

    async def count_reads(work):
        reads.append(work)
        return []

    monkeypatch.setattr(store, "read", count_reads)
    for _ in range(5):
        await unknown_jobs.compare(worker, [], LEASE)
        now.at += COMPARE_INTERVAL_S / 2
    assert len(reads) == 3
