"""Groups of suspects in the pool of job processes."""

import asyncio
from collections import Counter

import pytest

from holdfast.model.outcome import Crashed, Succeeded
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.running import job_process
from holdfast.worker.running.job_process import MAX_SUSPECT_PROCESSES, JobProcesses
from tests.support.eventually import eventually
from tests.unit.worker.conftest import a_job


class FakeProcess:
    """Job process whose jobs run until the test ends them."""

    start_failure = "exit code 1, before the handler started"

    def __init__(self):
        self.alive = True
        self.failed_to_start = False
        self.running = {}
        self.ended = False

    async def run(self, job, entry, on_start, attempt_logs):
        if not self.alive:
            return None
        self.running[job.id] = asyncio.get_running_loop().create_future()
        try:
            return await self.running[job.id]
        finally:
            self.running.pop(job.id, None)

    def is_due(self, rules):
        return False

    def finish(self, outcome):
        """End all jobs with this outcome."""
        for done in list(self.running.values()):
            if not done.done():
                done.set_result(outcome)

    async def end(self):
        self.alive, self.ended = False, True


@pytest.fixture
def processes(monkeypatch):
    """All started processes, oldest first."""
    started = []

    async def start(*_):
        started.append(FakeProcess())
        return started[-1]

    monkeypatch.setattr(job_process.JobProcess, "start", start)
    return started


@pytest.fixture
async def submit():
    """Run jobs in one pool; return their tasks."""
    pool = JobProcesses([], None)
    started = []

    def run(count, group_size):
        tasks = [
            asyncio.create_task(
                pool.run(a_job(), group_size=group_size, on_start=print, attempt_logs=AttemptLogs(), entry=None)
            )
            for _ in range(count)
        ]
        started.extend(tasks)
        return tasks

    yield run
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)


async def sizes(processes, *expected):
    """Wait until the processes run these numbers of jobs."""

    async def reached():
        return Counter(len(each.running) for each in processes if each.running) == Counter(expected)

    try:
        await eventually(reached)
    except TimeoutError:
        raise AssertionError(f"{[len(each.running) for each in processes]} instead of {expected}") from None


async def test_suspects_fill_one_process_before_the_next(processes, submit):
    submit(10, 4)
    await sizes(processes, 4, 4, 2)


async def test_groups_of_different_sizes_and_isolated_jobs_never_share_a_process(processes, submit):
    submit(3, 32), submit(3, 4), submit(2, 1), submit(2, None)
    await sizes(processes, 3, 3, 1, 1, 1, 1)


async def test_the_number_of_processes_for_suspects_is_limited(processes, submit):
    """F32: a process that ran hundreds of jobs may have died from a lack of memory."""
    tasks = submit(100, 4)
    await sizes(processes, *[4] * MAX_SUSPECT_PROCESSES)
    submit(1, 1), submit(1, None)
    await sizes(processes, *[4] * MAX_SUSPECT_PROCESSES, 1, 1)

    async def all_done():
        for process in processes:
            process.finish(Succeeded())
        return all(task.done() for task in tasks)

    await eventually(all_done)
    assert len(processes) <= MAX_SUSPECT_PROCESSES + 2


async def test_a_place_in_a_group_is_given_to_the_next_suspect(processes, submit):
    submit(4 * MAX_SUSPECT_PROCESSES + 1, 4)
    await sizes(processes, *[4] * MAX_SUSPECT_PROCESSES)
    next(iter(processes[0].running.values())).set_result(Succeeded())
    await sizes(processes, *[4] * MAX_SUSPECT_PROCESSES)
    assert len(processes) == MAX_SUSPECT_PROCESSES


async def test_no_suspect_joins_a_dead_process(processes, submit):
    first = submit(2, 4)
    await sizes(processes, 2)
    processes[0].alive = False
    submit(1, 4)
    await sizes(processes, 2, 1)
    processes[0].finish(Crashed("exit code 1"))
    assert await asyncio.gather(*first) == [Crashed("exit code 1")] * 2
    assert processes[0].ended


async def test_a_job_that_another_one_kept_from_starting_uses_another_process(processes, submit):
    """P04: it has not started, so it has not crashed."""
    submit(2, 4)
    await sizes(processes, 2)
    processes[0].alive = False
    processes[0].finish(None)

    async def another_one():
        return len(processes) == 2

    await eventually(another_one)
    await sizes(processes[1:], 2)


async def test_a_process_that_cannot_start_fails_its_jobs(processes, submit):
    tasks = submit(2, 4)
    await sizes(processes, 2)
    processes[0].alive, processes[0].failed_to_start = False, True
    processes[0].finish(None)
    assert await asyncio.gather(*tasks) == [Crashed(FakeProcess.start_failure)] * 2
