"""Model-based test: any sequence of actions leaves a store in the state of a simple model.

`HOLDFAST_TEST_EXAMPLES=200` runs 200 sequences of 50 steps on each database.
"""

import asyncio
import os
from dataclasses import dataclass, field, replace

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.compose import open_store
from holdfast.engine.jobs import actions
from holdfast.engine.jobs.reap import adopt_orphans
from holdfast.errors import LeaseLost
from holdfast.model.job import HeldJob
from holdfast.model.lane import Lane
from holdfast.model.outcome import CancelledByHandler, Crashed, Failed, Failure, Interrupted, Snoozed, Succeeded
from holdfast.model.state import TERMINAL, Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, days, seconds
from tests.support.builders import (
    LEASE,
    RETRY,
    a_job,
    enter,
    fields,
    lane_of,
    put,
    read_all,
    reap_once,
    report,
    roll_back,
    share,
    take,
)
from tests.support.clock import CLOCK, Console, ManualClock

EXAMPLES = int(os.environ.get("HOLDFAST_TEST_EXAMPLES", "0"))
LANES = [Lane("mail", "acme", 0), Lane("mail", "umbrella", 0), Lane("mail", "acme", 5)]
OUTCOMES = {
    "succeeded": Succeeded(b"1"),
    "failed": Failed(Failure("E", "m")),
    "hopeless": Failed(Failure("E", "m"), retryable=False),
    "crashed": Crashed("signal 9"),
    "snoozed": Snoozed(seconds(5)),
    "interrupted": Interrupted(),
    "pointless": CancelledByHandler("pointless"),
}
KEY_RETENTION = seconds(60)


@dataclass(frozen=True)
class Expected:
    """Expected state of a job."""

    lane: Lane
    max_attempts: int
    status: Status
    due: int
    attempts: int = 0
    releases: int = 0
    fence: int = 0
    generation: int = 0
    worker: int | None = None
    seq: int = field(default=0, compare=False)

    def visible(self):
        return self.status, self.attempts, self.releases, self.fence, self.generation, self.worker


class Model:
    """Model of the guarantees of the engine."""

    def __init__(self, now):
        self.now = now
        self.jobs = {}
        self.workers = {}  # incarnation: end of its lease
        self.keys = {}  # key: (job, end of its retention)
        self.steps = {}  # (job, key): state and result
        self.progress = {}

    def alive(self, worker):
        return self.workers.get(worker, self.now) > self.now

    def change(self, job_id, **changes):
        self.jobs[job_id] = replace(self.jobs[job_id], **changes)

    def submit(self, job_id, lane, max_attempts, delay, key):
        if key is not None:
            owner, until = self.keys.get(key, (None, 0))
            if owner is not None and (until > self.now or self.jobs[owner].status not in TERMINAL):
                return owner
            self.keys[key] = job_id, self.now + KEY_RETENTION
        status = Status.SCHEDULED if delay else Status.READY
        self.jobs[job_id] = Expected(lane, max_attempts, status, self.now + delay)
        return job_id

    def claim(self, worker, lane, max_jobs):
        if not self.alive(worker):
            return set()
        ready = [(job.seq, i) for i, job in self.jobs.items() if job.status is Status.READY and job.lane == lane]
        taken = {i for _, i in sorted(ready)[:max_jobs]}
        for i in taken:
            job = self.jobs[i]
            self.change(i, status=Status.RUNNING, attempts=job.attempts + 1, fence=job.fence + 1, worker=worker)
        return taken

    def holds(self, handle):
        job = self.jobs[handle.id]
        return job.status is Status.RUNNING and (job.fence, job.worker) == (handle.fence, handle.worker)

    def record(self, handle, step):
        if self.holds(handle) and self.steps.get((handle.id, step.key), (StepState.STARTED,))[0] is StepState.STARTED:
            self.steps[handle.id, step.key] = step.state, step.result
        return self.holds(handle)

    def settle(self, handle, how):
        if not self.holds(handle):
            return set()
        match how:
            case "succeeded":
                self.change(handle.id, status=Status.SUCCEEDED)
            case "pointless":
                self.change(handle.id, status=Status.CANCELLED)
            case "hopeless":
                self.change(handle.id, status=Status.DEAD)
            case "failed":
                self.fail(handle.id, seconds(1) * 2 ** (handle.attempts - 1))
            case "crashed":
                self.fail(handle.id, 0)
            case "snoozed":
                self.release(handle.id, Status.SCHEDULED, seconds(5))
            case "interrupted":
                self.release(handle.id, Status.READY, 0)
        return {handle.id}

    def fail(self, job_id, wait):
        job = self.jobs[job_id]
        if job.attempts >= job.max_attempts:
            self.change(job_id, status=Status.DEAD)
        else:
            status = Status.RETRYING if wait else Status.READY
            self.change(job_id, status=status, due=self.now + wait, worker=None)

    def release(self, job_id, status, wait):
        job = self.jobs[job_id]
        self.change(
            job_id,
            status=status,
            due=self.now + wait,
            worker=None,
            attempts=job.attempts - 1,
            releases=job.releases + 1,
        )

    def held_by(self, worker):
        return [i for i, job in self.jobs.items() if job.status is Status.RUNNING and job.worker == worker]

    def reap(self):
        gone = [worker for worker, until in self.workers.items() if until <= self.now]
        lost = [i for worker in gone for i in self.held_by(worker)]
        for i in lost:
            self.fail(i, 0)
        for worker in gone:
            del self.workers[worker]
        return len(lost)

    def cancel(self, job_id):
        if self.jobs[job_id].status in TERMINAL:
            return set()
        self.change(job_id, status=Status.CANCELLED)
        return {job_id}

    def retry(self, job_id):
        job = self.jobs[job_id]
        if job.status in (Status.DEAD, Status.CANCELLED):
            self.change(job_id, status=Status.READY, attempts=0, releases=0, generation=job.generation + 1, worker=None)
        elif job.status in (Status.SCHEDULED, Status.RETRYING):
            self.change(job_id, status=Status.READY)
        else:
            return set()
        return {job_id}

    def promote(self):
        due = [
            i
            for i, job in self.jobs.items()
            if job.status in (Status.SCHEDULED, Status.RETRYING) and job.due <= self.now
        ]
        for i in due:
            self.change(i, status=Status.READY)
        return len(due)


class Machine(RuleBasedStateMachine):
    """Applies the same actions to the store and to the model."""

    jobs = Bundle("jobs")
    workers = Bundle("workers")
    handles = Bundle("handles")
    a_clean_database = None
    """Gives the URL of one."""

    def __init__(self):
        super().__init__()
        url = type(self).a_clean_database()
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.do = self.runner.run
        self.do(self.open(url))

    async def open(self, url):
        self.console = await Console(url).__aenter__()
        self.clock = ManualClock(self.console)
        await self.clock.start()
        self.store = await open_store(url, clock=CLOCK)
        self.model = Model(self.clock.now)

    def teardown(self):
        async def close():
            await self.store.aclose()
            await self.console.__aexit__(None, None, None)

        self.do(close())
        self.runner.close()

    @rule(
        target=jobs,
        lane=st.sampled_from(LANES),
        max_attempts=st.integers(1, 3),
        delay=st.sampled_from([0, 0, seconds(3), seconds(20)]),
        key=st.sampled_from([None, None, None, "k1", "k2"]),
    )
    def submit(self, lane, max_attempts, delay, key):
        asked = {"max_attempts": max_attempts, "delay": delay, "idempotency_key": key}
        job = a_job(lane.queue, tenant=lane.tenant, priority=lane.priority, **asked)
        (answer,) = self.do(put(self.store, job, key_retention=KEY_RETENTION))
        owner = self.model.submit(job.id, lane, max_attempts, delay, key and (lane.tenant, key))
        assert (answer.id, answer.repeats is None) == (owner, owner == job.id)
        return job.id if owner == job.id else multiple()

    @rule(target=workers)
    def register(self):
        if len(self.model.workers) >= 3:
            return multiple()
        worker = self.do(enter(self.store))
        self.model.workers[worker] = self.model.now + LEASE
        return worker

    @rule(target=handles, worker=workers, lane=st.sampled_from(LANES), max_jobs=st.integers(1, 3))
    def claim(self, worker, lane, max_jobs):
        held = self.do(take(self.store, worker, share(lane, max_jobs)))
        assert {job.id for job in held} == self.model.claim(worker, lane, max_jobs)
        return multiple(*held)

    @rule(worker=workers)
    def renew(self, worker):
        renewed = self.do(self.store.single(lambda tx: tx.renew(worker, LEASE)))
        assert renewed is self.model.alive(worker)
        if renewed:
            self.model.workers[worker] = self.model.now + LEASE

    @rule(worker=workers)
    def depart(self, worker):
        departed = self.do(self.store.single(lambda tx: tx.depart(worker)))
        assert departed is (worker in self.model.workers and not self.model.held_by(worker))
        if departed:
            del self.model.workers[worker]

    @rule(span=st.sampled_from([1, seconds(1), seconds(4), LEASE - 1, LEASE, seconds(100)]))
    def let_time_pass(self, span):
        self.do(self.clock.advance(Duration(span)))
        self.model.now = self.clock.now

    @rule()
    def reap(self):
        assert self.do(reap_once(self.store)) == self.model.reap()

    @rule()
    def adopt_orphans(self):
        assert self.do(adopt_orphans(self.store, default=RETRY, rng=lambda: 0.5)) == 0

    @rule(handle=handles, how=st.sampled_from(sorted(OUTCOMES)))
    def settle(self, handle, how):
        assert self.do(report(self.store, handle, OUTCOMES[how])) == self.model.settle(handle, how)

    @rule(handle=consumes(handles), how=st.sampled_from(sorted(OUTCOMES)))
    def settle_for_the_last_time(self, handle, how):
        self.settle(handle, how)

    @rule(handle=handles)
    def ask_whether_it_is_lost(self, handle):
        lost = self.do(self.store.single(lambda tx: tx.lost([HeldJob(handle.id, handle.fence, handle.worker)])))
        assert lost == (set() if self.model.holds(handle) else {handle.id})

    @rule(handle=handles, key=st.sampled_from("ab"), result=st.sampled_from([None, b"1", b"2"]))
    def record_step(self, handle, key, result):
        step = Step(key, StepState.STARTED if result is None else StepState.DONE, result)
        held = HeldJob(handle.id, handle.fence, handle.worker)
        recorded = self.do(self.store.single(lambda tx: tx.record_step(held, step)))
        assert recorded is self.model.record(handle, step)
        kept = self.do(self.store.single(lambda tx: tx.steps(handle.id)))
        expected = {key: found for (job, key), found in self.model.steps.items() if job == handle.id}
        assert {step.key: (step.state, step.result) for step in kept} == expected

    @rule(handle=handles, note=st.sampled_from([b"1", b"2"]))
    def tell_progress(self, handle, note):
        held = HeldJob(handle.id, handle.fence, handle.worker)
        saved = self.do(self.store.single(lambda tx: tx.save_progress(held, note)))
        assert saved is self.model.holds(handle)
        if saved:
            self.model.progress[handle.id] = note

    @rule(handle=handles)
    def commit_a_transaction_of_its_own(self, handle):
        async def commit():
            async with self.store.session(HeldJob(handle.id, handle.fence, handle.worker), "tx") as session:
                assert (session.recorded is not None) is ((handle.id, "tx") in self.model.steps)
                session.record(b"done")

        if not self.model.holds(handle):
            with pytest.raises(LeaseLost):
                self.do(commit())
        else:
            self.do(commit())
            self.model.steps[handle.id, "tx"] = StepState.DONE, b"done"

    @rule(job=jobs)
    def cancel(self, job):
        assert self.do(actions.cancel(self.store, [job], reason="by hand")) == self.model.cancel(job)

    @rule(job=jobs)
    def retry(self, job):
        assert self.do(actions.retry(self.store, [job])) == self.model.retry(job)

    @rule()
    def promote(self):
        assert self.do(self.store.single(lambda tx: tx.promote(100))) == self.model.promote()

    @precondition(lambda self: self.model.workers)
    @rule(lane=st.sampled_from(LANES))
    def do_much_and_roll_it_back(self, lane):
        async def work(tx):
            for worker in self.model.workers:
                await tx.claim(worker, [share(lane)], 10, None)
                await tx.renew(worker, days(1))
            await tx.promote(10)
            await tx.delete_expired(await tx.lock_expired(10))
            await tx.insert([a_job(idempotency_key="k1")], key_retention=days(1))

        self.do(roll_back(self.store, work))

    @invariant()
    def store_and_model_agree(self):
        stored = {job.id: job for job in self.do(read_all(self.store, list(self.model.jobs)))}
        shown = {
            i: fields(job, "status", "attempts", "releases", "fence", "generation", "worker")
            for i, job in stored.items()
        }
        assert shown == {i: job.visible() for i, job in self.model.jobs.items()}
        for i, job in stored.items():
            assert lane_of(job) == self.model.jobs[i].lane
            assert job.progress == self.model.progress.get(i)
            assert (job.finished_at is not None) is job.status.terminal
            self.model.change(i, seq=job.seq)  # the store decides the order of jobs within a batch

    @invariant()
    def the_fleet_is_as_the_model_says(self):
        rows = self.do(self.store.single(lambda tx: tx.workers()))
        assert {row.info.id: row.expires_at for row in rows} == self.model.workers

    @invariant()
    def lanes_are_those_with_ready_jobs(self):
        found = self.do(self.store.single(lambda tx: tx.lanes(["mail"], 100)))
        lanes = [news.lane for news in found]
        assert sorted(lanes) == sorted({job.lane for job in self.model.jobs.values() if job.status is Status.READY})


@pytest.mark.slow
@pytest.mark.timeout(3_600 if EXAMPLES else 120)
def test_any_sequence_of_actions_leaves_the_store_as_the_model_says(database_url, dialect, databases, tmp_path):
    """S1, S4 to S8, S10, S17, S20, S25, L4"""
    folders = (tmp_path / str(number) for number in range(10**9))

    def a_clean_database():
        folder = next(folders)
        folder.mkdir()
        return databases.clean(dialect, folder)

    machine = type("Machine", (Machine,), {"a_clean_database": staticmethod(a_clean_database)})
    quick = settings(
        max_examples=EXAMPLES or 15,
        stateful_step_count=50 if EXAMPLES else 40,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(machine, settings=quick)
