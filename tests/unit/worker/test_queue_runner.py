"""Queue runner: claiming, running, stopping and releasing jobs."""

import asyncio
import threading
import time

import pytest

from holdfast import Context
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.model.outcome import REPORT_LOST, Failed, Interrupted, Snoozed, Succeeded, TimedOut
from holdfast.model.time import Duration, days, seconds
from holdfast.worker.running import claimed_jobs, monitors, queue_runner, waiting_jobs
from tests.support.eventually import eventually
from tests.unit.worker.conftest import WORKER, a_job

MOMENT = Duration(20_000)


class Gate:
    """Handler that counts its concurrent runs and blocks until it is opened."""

    def __init__(self):
        self.inside = 0
        self.most = 0
        self.passed = 0
        self.open = asyncio.Event()

    async def pass_through(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
            self.passed += 1
        finally:
            self.inside -= 1


@pytest.fixture
async def gate(app):
    made = Gate()

    async def work() -> None:
        await made.pass_through()

    app.job(name="work")(work)
    return made


async def inside(gate, n):
    async def reached():
        return gate.inside == n

    await eventually(reached)


async def settled_down():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_at_most_as_many_jobs_run_as_there_are_slots(at_work, script, gate):
    async with at_work(3):
        jobs = script.add(*[a_job() for _ in range(20)])
        await inside(gate, 3)
        gate.open.set()
        await script.outcomes(*jobs)
    assert gate.most == 3


async def test_nothing_is_claimed_ahead_before_a_job_has_ended(at_work, script, gate):
    """Prefetch is for quick jobs: behind slow ones, a job would start earlier on another worker."""
    async with at_work(3):
        script.add(*[a_job() for _ in range(50)])
        await inside(gate, 3)
        await settled_down()
        assert script.claim_sizes == [3]
        assert len(script.ready) == 47


@pytest.mark.slow
async def test_quick_jobs_are_claimed_ahead_up_to_the_maximum(at_work, script, app):
    """At most as many as the setting allows, at any rate."""
    held = []

    async def work() -> None:
        held.append(len(script.held))
        await asyncio.sleep(0)

    app.job(name="work")(work)
    async with at_work(2, max_prefetch=40):
        jobs = script.add(*[a_job() for _ in range(5_000)])
        await script.outcomes(*jobs)
    # Settled jobs whose report is not accepted yet are held, but neither wait nor run.
    assert max(script.claim_sizes) > 2
    assert max(script.claim_sizes) <= 2 + 40


async def test_nothing_is_claimed_ahead_after_jobs_became_slow(at_work, script, app):
    slow = asyncio.Event()

    async def work(slowly: bool = False) -> None:
        if slowly:
            await slow.wait()

    app.job(name="work")(work)
    async with at_work(2, max_prefetch=100) as bench:
        jobs = script.add(*[a_job() for _ in range(2_000)])
        await script.outcomes(*jobs)
        await settled_down()  # a claim in flight was sized by the old rate
        bench.queue_runner._completions.count = 0  # as if no job had ended in the last ten seconds
        bench.queue_runner._completions._measured_at -= 10
        assert bench.queue_runner._prefetch_count() == 0
        script.claim_sizes.clear()
        script.add(*[a_job(payload={"slowly": True}) for _ in range(300)])

        async def running():
            return bench.queue_runner.running == 2

        await eventually(running)
        await settled_down()
        assert bench.queue_runner.waiting == 0
        slow.set()


async def test_a_job_of_an_unknown_type_is_retried_later(at_work, script, gate):
    """F37: it neither succeeds silently nor crashes the worker."""
    async with at_work():
        (outcome,) = await script.outcomes(*script.add(a_job("gone")))
    assert isinstance(outcome, Failed)
    assert (outcome.failure.kind, outcome.retryable, outcome.retry_in) == ("UnknownType", True, seconds(30))


async def test_a_job_whose_start_deadline_passed_in_the_worker_is_released(at_work, script, gate):
    """It was claimed in time but would start too late, so it spends no attempt."""
    gate.open.set()
    in_time, too_late = a_job(started_at=0, deadline=days(1)), a_job(started_at=5, deadline=5)
    async with at_work(1):
        outcomes = await script.outcomes(*script.add(too_late, in_time))
    assert outcomes[0] == Interrupted(started=False)
    assert isinstance(outcomes[1], Succeeded)


@pytest.mark.slow
async def test_a_failed_claim_is_followed_by_another(at_work, script, gate):
    """P05"""
    gate.open.set()
    script.claim_faults.append(Unavailable("away"))
    async with at_work():
        await script.outcomes(*script.add(a_job()))


async def lost_response(applied):
    error = OutcomeUnknown("broke at the commit")
    error.applied = applied
    return error


@pytest.mark.slow
async def test_jobs_of_a_claim_with_a_lost_response_are_released(at_work, script, gate):
    """F10: the worker holds them unknowingly, and no other worker could claim them during its lease."""
    script.claim_faults.append(await lost_response(applied=True))
    script.held_faults.append(Unavailable("still away"))
    lost = script.add(a_job(), a_job())
    async with at_work(2):
        assert await script.outcomes(*lost) == [Interrupted(started=False), Interrupted(started=False)]


async def test_running_jobs_are_not_released_with_those_of_a_lost_response(at_work, script, gate):
    """F10: only unknown jobs are released."""
    async with at_work(2) as bench:
        (known,) = script.add(a_job())
        await inside(gate, 1)
        script.claim_faults.append(await lost_response(applied=True))
        (lost,) = script.add(a_job())
        assert await script.outcomes(lost) == [Interrupted(started=False)]
        assert bench.queue_runner.running == 1
        gate.open.set()
        assert await script.outcomes(known) == [Succeeded(b"null")]


async def test_a_claim_that_commits_after_its_response_was_lost_is_found(at_work, script, gate, monkeypatch):
    """F10: the claim was still executing in the database at the first check."""
    monkeypatch.setattr(queue_runner, "RECHECK_DELAYS_S", (0.0, 0.05, 0.1))
    script.claim_faults.append(await lost_response(applied=False))
    checks = []
    original = script.held_by

    async def held_by(worker, limit):
        checks.append(None)
        if len(checks) == 2:
            script.held[late.id] = late
        return await original(worker, limit)

    script.held_by = held_by
    late = a_job()
    async with at_work(1):
        assert await script.outcomes(late) == [Interrupted(started=False)]


async def test_a_lost_response_is_checked_even_while_all_slots_are_busy(at_work, script, gate, monkeypatch):
    """F10"""
    monkeypatch.setattr(queue_runner, "RECHECK_DELAYS_S", (0.2,))
    async with at_work(1):
        script.claim_faults.append(await lost_response(applied=False))
        script.add(a_job())
        await inside(gate, 1)
        late = a_job()
        script.held[late.id] = late
        assert await script.outcomes(late) == [Interrupted(started=False)]


@pytest.mark.slow
async def test_jobs_that_only_the_database_believes_to_run_are_released_after_an_outage(at_work, script, gate):
    """F14: the server that responds after the outage lacks the report of a job."""
    async with at_work(2) as bench:
        (known,) = script.add(a_job())
        await inside(gate, 1)
        reported = a_job()
        script.held[reported.id] = reported
        script.claim_faults.append(Unavailable("failing over"))
        assert await script.outcomes(reported) == [REPORT_LOST]
        assert bench.queue_runner.running == 1
        gate.open.set()
        assert await script.outcomes(known) == [Succeeded(b"null")]


async def test_a_comparison_finds_jobs_that_only_the_database_believes_to_run(at_work, script, gate, monkeypatch):
    """F14: no call of this worker failed during the failover; a job that is reported meanwhile is left alone."""
    monkeypatch.setattr(monitors, "COMPARE_INTERVAL_S", 0.01)
    monkeypatch.setattr(monitors, "CONFIRM_DELAY_S", 0.01)
    async with at_work(1) as bench:
        (known,) = script.add(a_job())
        await inside(gate, 1)
        comparing = asyncio.create_task(monitors.release_unknown_jobs(script, WORKER, [bench.queue_runner]))
        reported = a_job()
        script.held[reported.id] = reported
        assert await script.outcomes(reported) == [REPORT_LOST]
        assert bench.queue_runner.running == 1
        gate.open.set()
        assert await script.outcomes(known) == [Succeeded(b"null")]
        comparing.cancel()


async def test_a_handler_that_times_out_is_stopped_and_frees_its_slot(at_work, script, gate):
    """S19"""
    async with at_work(1) as bench:
        late = script.add(a_job(timeout=MOMENT))
        assert await script.outcomes(*late) == [TimedOut(MOMENT)]
        gate.open.set()
        await script.outcomes(*script.add(a_job()))
        await no_entry_in_use(bench.shared_state)


async def test_a_swallowed_cancellation_does_not_leak_into_the_next_job(at_work, script, app):
    """The next handler in the same slot does not count as cancelled."""

    async def work(stubborn: bool = False) -> str:
        if stubborn:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "so what"
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        return await waiting

    app.job(name="work")(work)
    async with at_work(1):
        (stubborn,) = script.add(a_job(payload={"stubborn": True}, timeout=MOMENT))
        assert await script.outcomes(stubborn) == [TimedOut(MOMENT)]
        for _ in range(3):
            (outcome,) = await script.outcomes(*script.add(a_job()))
            assert outcome.failure.kind.endswith("HandlerExit")


async def test_a_lost_job_is_stopped_and_not_reported(at_work, script, gate):
    """P41, S17"""
    async with at_work(1) as bench:
        (job,) = script.add(a_job())
        await inside(gate, 1)
        (run,) = bench.queue_runner.runs()
        bench.queue_runner.stop(run, "lost")
        await inside(gate, 0)
        gate.open.set()
        await script.outcomes(*script.add(a_job()))
        assert script.outcome_of(job) is None


async def test_a_job_that_is_claimed_again_starts_after_its_earlier_handler_has_ended(at_work, script, app):
    """P41, S7: cancel and retry make a running job ready, and its own worker may be the first to claim it."""
    release, starts, most = asyncio.Event(), [], []

    async def work(*, ctx: Context) -> None:
        starts.append(ctx.fence)
        most.append(len(starts))
        try:
            await release.wait()
        except asyncio.CancelledError:
            await release.wait()
        starts.remove(ctx.fence)

    async def calm() -> None:
        await release.wait()

    app.job(name="work")(work)
    app.job(name="calm")(calm)
    async with at_work(3) as bench:
        (first, neighbour) = script.add(a_job(fence=1), a_job("calm"))

        async def both_run():
            return bench.queue_runner.running == 2

        await eventually(both_run)
        (again,) = script.add(a_job(id=first.id, fence=2))

        async def claimed_again():
            return bench.queue_runner.waiting == 1

        await eventually(claimed_again)
        assert starts == [1]
        release.set()
        assert await script.outcomes(again, neighbour) == [Succeeded(b"null"), Succeeded(b"null")]
        await no_entry_in_use(bench.shared_state)
    assert most == [1, 1]
    assert [report.job.fence for report in script.reports if report.job.id == first.id] == [2]


async def test_a_job_whose_abandoned_thread_still_runs_is_left_to_another_process(at_work, script, app, monkeypatch):
    """P26, S7: two handlers of a job never run in the same process."""
    monkeypatch.setattr(queue_runner, "STOP_TIMEOUT_S", 0.05)
    never, starts = threading.Event(), []

    def work() -> None:
        starts.append(None)
        never.wait(30)

    app.job(name="work")(work)
    try:
        async with at_work(2) as bench:
            (first,) = script.add(a_job(fence=1))

            async def running():
                return starts

            await eventually(running)
            (again,) = script.add(a_job(id=first.id, fence=2))
            assert await script.outcomes(again) == [Snoozed(seconds(1), held=True)]
            assert len(bench.on_slot_lost) == 1
            del script.settled[first.id]
            (later,) = script.add(a_job(id=first.id, fence=3))
            assert await script.outcomes(later) == [Snoozed(seconds(1), held=True)]
            assert len(starts) == 1
    finally:
        never.set()


async def test_the_context_of_a_stopped_handler_is_cancelled(at_work, script, app):
    """S7, S19: its context rejects writes before the database would."""
    seen = []

    async def work(*, ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    app.job(name="work")(work)
    async with at_work(1):
        await script.outcomes(*script.add(a_job(timeout=MOMENT)))
    assert seen == [True]


async def test_a_thread_that_does_not_stop_costs_its_slot_and_requests_a_replacement(at_work, script, app, monkeypatch):
    """P26, F33"""
    monkeypatch.setattr(queue_runner, "STOP_TIMEOUT_S", 0.05)
    never = threading.Event()

    def work() -> None:
        never.wait(30)

    app.job(name="work")(work)
    try:
        async with at_work(2, max_prefetch=0) as bench:
            stuck = script.add(a_job(timeout=MOMENT))
            assert await script.outcomes(*stuck) == [TimedOut(MOMENT)]
            (reason,) = bench.on_slot_lost
            assert "'work'" in reason
            await no_entry_in_use(bench.shared_state)
            script.claim_sizes.clear()
            script.add(a_job(), a_job())

            async def claimed():
                return script.claim_sizes

            assert (await eventually(claimed))[0] == 1  # the other slot only
            assert len(script.ready) == 1
    finally:
        never.set()


async def no_entry_in_use(shared_state):
    """Wait until no entry is in use: entries are freed when their report is accepted."""

    async def cleared():
        return not list(shared_state.running())

    await eventually(cleared)


async def test_a_started_job_stays_in_the_shared_state_until_its_report_is_accepted(at_work, script, gate):
    """P03: after a crash the supervisor reads there which jobs were running."""
    async with at_work(2) as bench:
        jobs = script.add(a_job(fence=3), a_job(fence=4))
        await inside(gate, 2)
        assert sorted(each[:2] for each in bench.shared_state.running()) == sorted((job.id, job.fence) for job in jobs)
        script.settling.clear()  # the database does not accept the report yet
        gate.open.set()
        await inside(gate, 0)
        await settled_down()
        assert len(list(bench.shared_state.running())) == 2
        script.settling.set()
        await script.outcomes(*jobs)
        await no_entry_in_use(bench.shared_state)


async def test_stop_claiming_returns_the_jobs_that_have_not_started(at_work, script, app):
    """F04"""
    release = asyncio.Event()

    async def work() -> None:
        await release.wait()

    app.job(name="work")(work)
    async with at_work(2) as bench:
        bench.queue_runner._prefetch_count = lambda: 50
        slow = script.add(*[a_job() for _ in range(30)])

        async def running():
            return bench.queue_runner.running == 2

        async def waiting():
            return bench.queue_runner.waiting > 0

        await eventually(running)
        await eventually(waiting)
        started = {run.job.id for run in bench.queue_runner.runs()}
        claimed = {job.id for job in slow} & set(script.held)
        not_started = bench.queue_runner.stop_claiming()
        assert bench.queue_runner.waiting == 0
        assert bench.queue_runner.running == 2
        assert {job.id for job in not_started} == claimed - started
        release.set()
        await bench.queue_runner.wait_until_drained()


async def test_jobs_of_a_claim_in_flight_are_released_after_the_stop(at_work, script, gate):
    """F04"""
    async with at_work(2) as bench:
        original, claimed = script.claim, asyncio.Event()

        async def claim(slots):
            jobs = await original(slots)
            if jobs:
                bench.queue_runner.stop_claiming()
                claimed.set()
            return jobs

        script.claim = claim
        jobs = script.add(a_job(), a_job())
        await asyncio.wait_for(claimed.wait(), 30)
        assert await script.outcomes(*jobs) == [Interrupted(started=False), Interrupted(started=False)]
    assert gate.most == 0


async def test_drained_returns_at_once_when_nothing_runs(at_work, gate):
    async with at_work(2) as bench:
        await asyncio.wait_for(bench.queue_runner.wait_until_drained(), 30)


@pytest.mark.slow
async def test_handlers_that_never_suspend_do_not_delay_reports(at_work, script, app):
    """Reports are sent while claimed jobs still wait, although no handler gives up the event loop."""
    reported = []

    async def work() -> None:
        until = time.monotonic() + 0.001
        while time.monotonic() < until:
            pass
        reported.append(len(script.reports))

    app.job(name="work")(work)
    async with at_work(1) as bench:
        bench.queue_runner._prefetch_count = lambda: 199
        await script.outcomes(*script.add(*[a_job() for _ in range(200)]))
    assert script.claim_sizes[0] == 200  # one claim, so that the slot had no other reason to yield
    assert reported[-1] > 0


async def claimed_ahead(bench, script, gate, count, **changes):
    """Return one running job and `count` jobs that are claimed and wait behind it."""
    bench.queue_runner._prefetch_count = lambda: count
    jobs = script.add(*[a_job(**changes) for _ in range(1 + count)])

    async def waiting():
        return bench.queue_runner.waiting == count

    await inside(gate, 1)
    await eventually(waiting)
    bench.queue_runner._prefetch_count = lambda: 0  # as the runner finds it while a slow job runs
    return jobs


@pytest.fixture
def stale(monkeypatch):
    """Return a function that makes all waiting jobs as old as jobs that are checked before they start."""
    monkeypatch.setattr(claimed_jobs, "MAX_AGE_S", 3_600.0)
    monkeypatch.setattr(claimed_jobs, "MAX_WAIT_S", 3_600.0)

    def make_stale(bench):
        for claim in bench.queue_runner._waiting._jobs._claims:
            claim.checked_at = float("-inf")

    return make_stale


async def test_a_claimed_job_that_was_cancelled_never_starts(at_work, script, gate, stale):
    """P41: a mail is not sent for a job that was cancelled before its handler started."""
    async with at_work(1) as bench:
        running, cancelled, other = await claimed_ahead(bench, script, gate, 2)
        del script.held[cancelled.id]
        stale(bench)
        gate.open.set()
        assert await script.outcomes(running, other) == [Succeeded(b"null"), Succeeded(b"null")]
        assert script.outcome_of(cancelled) is None
        assert bench.queue_runner.waiting == 0
    assert gate.passed == 2


async def test_a_claimed_job_that_was_paused_is_released_without_an_attempt(at_work, script, gate, stale):
    async with at_work(1) as bench:
        running, paused, other = await claimed_ahead(bench, script, gate, 2)
        script.paused.add(paused.id)
        stale(bench)
        gate.open.set()
        assert await script.outcomes(running, paused, other) == [
            Succeeded(b"null"), Interrupted(started=False), Succeeded(b"null"),
        ]  # fmt: skip
    assert gate.passed == 2


async def test_one_check_covers_all_jobs_that_wait(at_work, script, gate, stale):
    async with at_work(1) as bench:
        jobs = await claimed_ahead(bench, script, gate, 50)
        stale(bench)
        gate.open.set()
        await script.outcomes(*jobs)
    assert script.checks == 1


async def test_no_claimed_job_starts_while_the_check_fails(at_work, script, gate, stale, monkeypatch):
    """P05: without the database the worker cannot know if the job was cancelled."""
    async with at_work(1) as bench:
        running, behind = await claimed_ahead(bench, script, gate, 1)
        original, faults = script.check, [Unavailable("away"), Unavailable("away")]
        monkeypatch.setattr(waiting_jobs, "RETRY_DELAY_S", 0.01)
        passed = []

        async def check(jobs):
            passed.append(gate.passed)
            if faults:
                raise faults.pop()
            return await original(jobs)

        script.check = check
        stale(bench)
        gate.open.set()
        assert await script.outcomes(running, behind) == [Succeeded(b"null"), Succeeded(b"null")]
    assert passed == [1, 1, 1]


async def test_jobs_that_wait_long_for_a_slot_are_released_for_other_workers(at_work, script, gate, monkeypatch):
    """The worker claimed them ahead while jobs were quick; now slow ones hold its slots."""
    monkeypatch.setattr(claimed_jobs, "MAX_WAIT_S", 0.05)
    async with at_work(1) as bench:
        running, *behind = await claimed_ahead(bench, script, gate, 30)
        assert set(map(repr, await script.outcomes(*behind))) == {"Interrupted(started=False)"}
        assert bench.queue_runner.waiting == 0
        assert script.outcome_of(running) is None
        gate.open.set()
        assert await script.outcomes(running) == [Succeeded(b"null")]


async def test_nothing_is_claimed_ahead_while_all_running_jobs_are_slow(at_work, script, gate, monkeypatch):
    """However many jobs ended in the last moments: the next free slot is further away than the work to claim ahead."""
    monkeypatch.setattr(queue_runner, "PREFETCH_S", 0.0)
    async with at_work(2) as bench:
        script.add(a_job(), a_job())
        await inside(gate, 2)
        bench.queue_runner._rate = 1e9
        assert bench.queue_runner._prefetch_count() == 0
        gate.open.set()


async def test_a_job_claimed_again_and_cancelled_behind_its_earlier_handler_never_starts(at_work, script, app):
    """P41: it has waited since its claim, so it is checked like any other."""
    release, starts = asyncio.Event(), []

    async def work(*, ctx: Context) -> None:
        starts.append(ctx.fence)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    app.job(name="work")(work)
    async with at_work(2) as bench:
        (first,) = script.add(a_job(fence=1))

        async def running():
            return starts

        await eventually(running)
        script.add(a_job(id=first.id, fence=2))

        async def claimed_again():
            return bench.queue_runner.waiting == 1

        await eventually(claimed_again)
        del script.held[first.id]
        release.set()

        async def dropped():
            return bench.queue_runner.waiting == bench.queue_runner.running == 0

        await eventually(dropped)
    assert len(starts) == 1
