"""Fixtures: a queue runner in this process on a scripted backend instead of a database."""

import asyncio
import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.model.claim_check import ClaimCheck
from holdfast.model.ids import WorkerId, new_job_id
from holdfast.model.job import Job
from holdfast.model.state import Status
from holdfast.model.time import Instant
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.queue_runner import QueueRunner
from holdfast.worker.running.runner import Runner
from holdfast.worker.running.settler import Settler
from tests.support.eventually import eventually

WORKER = WorkerId(7)
_seq = itertools.count(1)


def a_job(kind="work", /, payload=None, **changes):
    """Build a job as a claim returns it."""
    given = dict.fromkeys(Job.__struct_fields__) | {
        "id": new_job_id(), "tenant": "acme", "type": kind, "queue": "default", "status": Status.RUNNING, "priority": 0,
        "seq": next(_seq), "payload": msgspec.json.encode(payload or {}), "worker": WORKER, "fence": 1, "attempts": 1,
        "max_attempts": 5, "releases": 0, "generation": 0, "cost": 1, "created_at": Instant(0),
    }  # fmt: skip
    given |= changes
    return Job(**given)


class Script:
    """Scripted backend: hands out prepared jobs and faults, and records the reports."""

    def __init__(self):
        self.ready = deque()
        self.claim_sizes = []
        """Number of jobs that each claim requested."""
        self.held = {}
        self.reports = []
        self.settled = {}
        self.batches = []
        """Job ids of each batch of reports."""
        self.news = asyncio.Event()
        self.claim_faults = deque()
        self.settle_faults = deque()
        self.held_faults = deque()
        self.taken_away = set()
        self.paused = set()
        """Ids of claimed jobs whose queue was paused."""
        self.checks = 0
        self.settling = asyncio.Event()
        self.settling.set()
        """Clear it to delay the response to reports."""

    def add(self, *jobs):
        self.ready.extend(jobs)
        self.news.set()
        return jobs

    def outcome_of(self, job):
        return self.settled.get(job.id)

    async def outcomes(self, *jobs):
        """Wait until all of these jobs are settled; return their outcomes."""

        async def all_settled():
            return all(job.id in self.settled for job in jobs)

        await eventually(all_settled)
        return [self.outcome_of(job) for job in jobs]

    # The worker's ports

    def claims(self, worker, queues, types=None):
        return self

    def listen(self, queues):
        return self

    async def claim(self, slots):
        self.claim_sizes.append(slots)
        await asyncio.sleep(0)
        # Fault and jobs are read together, so that a claim in flight never takes a job that a test added with a fault.
        fault = self.claim_faults.popleft() if self.claim_faults else None
        if fault is not None and not getattr(fault, "applied", False):
            raise fault
        jobs = [self.ready.popleft() for _ in range(min(slots, len(self.ready)))]
        self.held |= {job.id: job for job in jobs}
        if fault is not None:
            raise fault
        return jobs

    async def check(self, jobs):
        self.checks += 1
        return ClaimCheck({job.id for job in jobs if job.id not in self.held}, {job.id for job in jobs} & self.paused)

    def recheck_delay(self):
        return float("inf")

    def on_ready(self, notifications):
        pass

    def stop(self):
        pass

    async def wait(self, timeout):
        self.news.clear()
        if self.ready:
            return []
        try:
            await asyncio.wait_for(self.news.wait(), timeout)
        except TimeoutError:
            return None
        return []

    def reset(self):
        pass

    poll_interval_s = None

    def close(self):
        pass

    async def settle_many(self, reports):
        await self.settling.wait()
        self.batches.append([report.job.id for report in reports])
        if self.settle_faults and (fault := self.settle_faults.popleft()) is not None:
            raise fault
        done = {report.job.id for report in reports if self.held.pop(report.job.id, None) is not None}
        for report in reports:
            if report.job.id in done:
                assert report.job.id not in self.settled, "settled twice"
                self.settled[report.job.id] = report.outcome
                self.reports.append(report)
        return done

    async def held_by(self, worker, limit):
        if self.held_faults:
            raise self.held_faults.popleft()
        return list(self.held.values())[:limit]

    async def held_attempts(self, worker, limit):
        return [(job.id, job.fence) for job in await self.held_by(worker, limit)]

    async def lost(self, held):
        return {each.id for each in held} & self.taken_away


class Bench:
    """Running queue runner and its collaborators."""

    def __init__(self, script, queue_runner, settler, shared_state, on_slot_lost):
        self.script = script
        self.queue_runner = queue_runner
        self.settler = settler
        self.shared_state = shared_state
        self.on_slot_lost = on_slot_lost


@pytest.fixture
def app():
    return Holdfast("sqlite:////nowhere/holdfast.db")


@pytest.fixture
async def script():
    return Script()


@pytest.fixture
def runner(app):
    """Return a factory of runners for the handlers of `app`."""
    threads = ThreadPoolExecutor(4)
    yield lambda **options: Runner(app.registry, None, threads=threads, **options)
    threads.shutdown(wait=False, cancel_futures=True)


@pytest.fixture
def at_work(app, script, runner):
    """Return a context manager that runs a queue runner with this many slots."""

    @asynccontextmanager
    async def working(size=2, *, max_prefetch=1_000, poll=0.05):
        on_slot_lost = []
        shared_state = SharedState.create(64)
        settler = Settler(script, shared_state)
        queue_runner = QueueRunner(
            "default", size, claims=script, held_jobs=lambda: script.held_by(WORKER, 1_000), subscription=script,
            runner=runner(), settler=settler, shared_state=shared_state, max_prefetch=max_prefetch, poll=poll,
            on_slot_lost=on_slot_lost.append,
        )  # fmt: skip
        tasks = [asyncio.create_task(queue_runner.run()), asyncio.create_task(settler.run())]
        try:
            yield Bench(script, queue_runner, settler, shared_state, on_slot_lost)
            assert not [task for task in tasks if task.done() and not queue_runner.stopping]
        finally:
            queue_runner.stop_claiming()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            shared_state.close()

    return working
