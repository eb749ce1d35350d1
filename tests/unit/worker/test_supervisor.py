"""Supervisor with real child processes on a scripted backend."""

import asyncio
import os
import sys
import textwrap
from collections import deque
from signal import SIGKILL

import pytest

from holdfast.errors import OutcomeUnknown, SchemaMismatch, Unavailable
from holdfast.model.ids import new_job_id
from holdfast.model.outcome import Crashed, Interrupted
from holdfast.model.time import seconds
from holdfast.model.worker import LeaseStatus
from holdfast.policy.recycling import RecyclingRules
from holdfast.worker.processes.launcher import CannotRun
from holdfast.worker.processes.protocol import EXIT_LEASE_LOST, EXIT_NO_DATABASE
from holdfast.worker.processes.supervised_process import LaunchPlan, SupervisedProcess
from holdfast.worker.processes.supervisor import (
    MAX_RECONNECT_DELAY_S,
    MAX_RESTART_DELAY_S,
    MIN_RESTART_DELAY_S,
    Supervisor,
    restart_delay,
)
from tests.support.eventually import eventually
from tests.support.nodes import ROOT
from tests.unit.worker.conftest import a_job

pytestmark = pytest.mark.slow  # starts processes

LEASE = seconds(2)

# A worker process that follows the protocol without a database or an application.
CHILD = """
import os, socket, sys, time
sys.path[:0] = [{root!r} + "/src"]
from uuid import UUID
from holdfast.model.ids import JobId
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.processes.protocol import Drain, Hello, Load, Lost, SlotLost, Start, StartFailed
from holdfast.worker.processes.protocol import encode_line, read_to_worker

channel = socket.socket(fileno=int(sys.argv[-2]))
state = SharedState(int(sys.argv[-1]), 16)
said = channel.makefile("rwb", buffering=0)
{first}
said.write(encode_line(Hello("sqlite:///nowhere", {{"default": 2}}, ["work"])))
for text in said:
    match read_to_worker(text):
        case Start():
            {go}
        case Drain():
            {drain}
        case Lost():
            {lost}
"""


class ScriptedBackend:
    """Stands in for the engine."""

    def __init__(self):
        self.registered = []
        self.departed = []
        self.held = {}
        self.late = deque()
        """Jobs that claims in flight take just before the worker is removed."""
        self.reports = []
        self.register_faults = deque()
        self.open_fault = None
        """Error of every further attempt to open a backend."""
        self.renewals = 0
        self.renew_faults = deque()
        self.renewal_reports = []
        self.unresponsive_reports = []
        self.answer = LeaseStatus.KEPT

    @property
    def workers(self):
        return self

    @property
    def attempts(self):
        return self

    async def register(self, worker, lease, described=()):
        if self.register_faults:
            raise self.register_faults.popleft()
        self.registered.append(worker)

    async def renew(self, worker, lease, *, memory=None, draining=False, unresponsive=None):
        self.renewals += 1
        self.renewal_reports.append((memory, draining))
        self.unresponsive_reports.append(unresponsive)
        if self.renew_faults:
            raise self.renew_faults.popleft()
        return LeaseStatus.DRAINING if draining else self.answer

    async def depart(self, worker):
        if self.late:
            job = self.late.popleft()
            self.held[job.id] = job
            return False
        self.departed.append(worker)
        return True

    async def held_by(self, worker, limit):
        return list(self.held.values())

    async def settle_many(self, reports):
        self.reports += reports
        for report in reports:
            self.held.pop(report.job.id, None)
        return {report.job.id for report in reports}

    async def run_maintenance(self, stop):
        await stop.wait()

    async def aclose(self):
        pass


@pytest.fixture
async def fleet():
    return ScriptedBackend()


@pytest.fixture
async def supervise(fleet, tmp_path):
    """Return a function that starts a supervisor over scripted worker processes."""
    running = []
    said = []

    async def start(
        count=1,
        *,
        first="",
        go="pass",
        drain="os._exit(0)",
        lost=f"os._exit({EXIT_LEASE_LOST})",
        grace=5.0,
        lease=LEASE,
        max_silence=600.0,
        **options,
    ):
        program = tmp_path / "child.py"
        text = textwrap.dedent(CHILD).format(root=str(ROOT), first=first, go=go, drain=drain, lost=lost)
        program.write_text(text)

        async def open_backend(url):
            if fleet.open_fault is not None:
                raise fleet.open_fault
            return fleet

        plan = LaunchPlan([str(program)], [], 16, lease, "here", "host", "1.0", max_silence)
        supervisor = Supervisor(plan, count, open_backend=open_backend, drain=grace, say=said.append, **options)
        supervisor.said = said
        supervisor.task = asyncio.create_task(supervisor.run())
        running.append(supervisor)
        return supervisor

    yield start
    for supervisor in running:
        if not supervisor.task.done():
            supervisor.stop()
        async with asyncio.timeout(30):
            await asyncio.gather(supervisor.task, return_exceptions=True)


async def at_work(fleet, n):
    async def registered():
        return len(fleet.registered) >= n

    await eventually(registered)


def record_started(*jobs):
    """Return code with which a worker records these jobs as started."""
    return "; ".join(f"state.begin(JobId(UUID({str(job.id)!r})), {job.fence}, time.monotonic(), None)" for job in jobs)


async def test_each_worker_process_is_registered_with_its_own_id(fleet, supervise):
    await supervise(count=2)
    await at_work(fleet, 2)
    assert len({worker.id for worker in fleet.registered}) == 2
    assert {worker.queues for worker in fleet.registered} == {"default:2"}
    assert {worker.slots for worker in fleet.registered} == {2}


async def test_a_worker_process_that_ends_is_replaced_under_another_id(fleet, supervise):
    """P15, P23: worker ids are never reused."""
    await supervise()
    await at_work(fleet, 1)
    os.kill(fleet.registered[0].pid, SIGKILL)
    await at_work(fleet, 2)
    assert fleet.registered[0].id != fleet.registered[1].id

    async def departed():
        return fleet.registered[0].id in fleet.departed

    await eventually(departed)


async def test_jobs_of_a_crashed_worker_are_reported_at_once(fleet, supervise):
    """P03, F30: started jobs crashed; jobs that were only held are released without an attempt."""
    jobs = [a_job(id=new_job_id()) for _ in range(3)]
    fleet.held = {job.id: job for job in jobs}
    await supervise(go=record_started(jobs[0]) + "; os._exit(9)")

    async def reported():
        return len(fleet.reports) >= 3

    await eventually(reported)
    outcomes = {report.job.id: report.outcome for report in fleet.reports}
    assert outcomes[jobs[0].id] == Crashed("exit code 9")
    assert outcomes[jobs[1].id] == outcomes[jobs[2].id] == Interrupted()


async def test_a_worker_without_a_sign_of_life_is_killed_and_replaced(fleet, supervise):
    """F33: a stopped process keeps its lease, because the supervisor renews it, and would keep its jobs for ever."""
    started, claimed = a_job(), a_job()
    fleet.held = {job.id: job for job in (started, claimed)}
    go = f"state.alive_at = time.monotonic(); {record_started(started)}; time.sleep(600)"
    supervisor = await supervise(go=go, max_silence=1.0)
    await at_work(fleet, 2)
    outcomes = {report.job.id: report.outcome for report in fleet.reports}
    assert outcomes[started.id] == Crashed("no sign of life for 1 s, so it was killed")
    assert outcomes[claimed.id] == Interrupted()
    assert any("no sign of life for 1 s; killing it" in line for line in supervisor.said)


async def test_renewals_report_a_silent_worker_and_one_with_a_blocked_event_loop(fleet, supervise):
    """F28, F33: `workers`, `explain` and `doctor` show it before the worker is killed."""
    go = (
        "from holdfast.worker.processes.sign_of_life import SignOfLife; sign = SignOfLife(state); sign.start(); "
        "state.record_blocked(time.monotonic() - 5, 'mail'); time.sleep(3); sign.stop(); time.sleep(600)"
    )
    await supervise(go=go, max_silence=600.0, grace=0.0)
    await at_work(fleet, 1)

    async def reported():
        blockers = [report.blocked_by for report in fleet.unresponsive_reports if report is not None]
        return blockers if None in blockers else []

    assert (await eventually(reported))[0] == "mail"
    os.kill(fleet.registered[0].pid, SIGKILL)  # it does not listen


async def test_a_worker_that_gives_signs_of_life_is_not_killed(fleet, supervise):
    """Its event loop may be blocked: a thread gives the signs."""
    go = "from holdfast.worker.processes.sign_of_life import SignOfLife; SignOfLife(state).start(); time.sleep(600)"
    await supervise(go=go, max_silence=2.0, grace=0.0)
    await at_work(fleet, 1)

    async def outlived():
        return fleet.renewals >= 6  # one each two thirds of a second

    await eventually(outlived)
    assert len(fleet.registered) == 1
    os.kill(fleet.registered[0].pid, SIGKILL)  # it does not listen


async def test_jobs_of_the_last_claim_of_a_dead_worker_are_released_too(fleet, supervise):
    """L2, P06: at once and without an attempt, not only when the lease expires."""
    fleet.late.extend(jobs := [a_job(id=new_job_id()) for _ in range(2)])
    await supervise(go="os._exit(9)")
    await at_work(fleet, 2)
    assert [(report.job.id, report.outcome) for report in fleet.reports] == [(job.id, Interrupted()) for job in jobs]
    assert fleet.departed[0] == fleet.registered[0].id


async def test_an_entry_of_an_older_claim_does_not_blame_the_job(fleet, supervise):
    """S7: the same job was claimed again since."""
    old = a_job(fence=1)
    now = a_job(id=old.id, fence=2)
    fleet.held = {now.id: now}
    await supervise(go=record_started(old) + "; os._exit(9)")

    async def reported():
        return fleet.reports

    (report,) = (await eventually(reported))[:1]
    assert report.outcome == Interrupted()


async def test_the_entry_of_an_older_claim_does_not_hide_that_the_job_runs_again(fleet, supervise):
    """P03, S7: the report of the older attempt was not accepted yet when the process crashed."""
    old = a_job(fence=1)
    now = a_job(id=old.id, fence=2)
    fleet.held = {now.id: now}
    await supervise(go=record_started(now, old) + "; os._exit(9)")

    async def reported():
        return fleet.reports

    (report,) = (await eventually(reported))[:1]
    assert report.outcome == Crashed("exit code 9")


@pytest.mark.parametrize("error", [Unavailable("away"), OutcomeUnknown("broke")], ids=["away", "unknown"])
async def test_a_worker_waits_for_an_unavailable_database_when_it_starts(fleet, supervise, error):
    """F08, P05: neither the worker nor the node ends."""
    fleet.register_faults.extend([error] * 3)
    supervisor = await supervise()
    await at_work(fleet, 1)
    assert not supervisor.task.done()


def pauses(code, **how):
    last = 0.0
    return [last := restart_delay(last, code, **how) for _ in range(20)]


def test_workers_restart_within_the_bound_after_an_outage_of_any_length():
    """L3, F08: the bound is five seconds; the restart delay takes at most one of them."""
    for code in (EXIT_LEASE_LOST, EXIT_NO_DATABASE):
        assert max(pauses(code, at_work=False, lifetime=0.0)) == MAX_RECONNECT_DELAY_S <= 1.0


def test_failed_starts_are_delayed_and_crashes_at_work_are_not():
    """F20, P04"""
    assert pauses(1, at_work=False, lifetime=0.0)[-1] == MAX_RESTART_DELAY_S
    assert (
        set(pauses(1, at_work=True, lifetime=0.0))
        == set(pauses(1, at_work=False, lifetime=60.0))
        == {MIN_RESTART_DELAY_S}
    )


async def test_a_renewal_that_fails_is_repeated_before_the_lease_ends(fleet, supervise):
    """P17, F13"""
    fleet.renew_faults.extend([Unavailable("away")] * 2)
    supervisor = await supervise()
    await at_work(fleet, 1)

    async def renewed():
        return fleet.renewals >= 5

    await eventually(renewed)
    assert len(fleet.registered) == 1
    assert not [line for line in supervisor.said if "its lease" in line]


async def test_a_drain_request_for_one_worker_drains_the_whole_node(fleet, supervise):
    """F04: as after SIGTERM; no process is started again."""
    supervisor = await supervise(count=2)
    await at_work(fleet, 2)
    fleet.answer = LeaseStatus.DRAINING
    async with asyncio.timeout(30):
        await supervisor.task
    assert supervisor.drained
    assert len(fleet.registered) == 2
    assert sorted(fleet.departed) == sorted(worker.id for worker in fleet.registered)
    assert len([line for line in supervisor.said if line.startswith("stopping")]) == 1


async def test_a_drain_request_for_a_dead_worker_drains_the_node(fleet, supervise):
    """F04, F30: the worker dies before its next renewal, but the request is meant for the node."""
    supervisor = await supervise(go="os._exit(9)")
    fleet.answer = LeaseStatus.DRAINING
    async with asyncio.timeout(30):
        await supervisor.task
    assert supervisor.drained
    assert len(fleet.registered) == 1


async def test_renewals_report_the_memory_of_a_worker_and_its_draining(fleet, supervise):
    supervisor = await supervise(drain="pass", grace=60.0)
    await at_work(fleet, 1)

    async def ending():
        return fleet.renewal_reports and fleet.renewal_reports[-1][1]

    async def renewed():
        return fleet.renewal_reports

    await eventually(renewed)
    supervisor.stop()
    await eventually(ending)
    if sys.platform == "linux":
        assert all(memory > 1_000_000 for memory, _ in fleet.renewal_reports)
    assert fleet.renewal_reports[0][1] is False
    supervisor.stop()


async def test_a_worker_that_lost_its_lease_is_stopped_and_replaced(fleet, supervise):
    """P22, P41"""
    supervisor = await supervise()
    await at_work(fleet, 1)
    fleet.answer = LeaseStatus.LOST
    await at_work(fleet, 2)
    assert any("its lease has expired" in line for line in supervisor.said)
    fleet.answer = LeaseStatus.KEPT


async def test_a_worker_that_does_not_stop_after_a_lost_lease_is_killed(fleet, supervise):
    """P22: no zombie keeps running."""
    await supervise(lost="time.sleep(600)")
    await at_work(fleet, 1)
    fleet.answer = LeaseStatus.LOST
    await at_work(fleet, 2)
    fleet.answer = LeaseStatus.KEPT


async def test_a_lease_whose_renewals_hang_ends_by_the_clock(fleet, supervise):
    """P39, F11: a renewal that hangs does not extend the lease."""

    async def renew(worker, lease, **report):
        await asyncio.Event().wait()

    fleet.renew = renew
    supervisor = await supervise()
    await at_work(fleet, 2)
    assert any("could not be renewed in time" in line for line in supervisor.said)


async def test_a_renewal_that_hangs_is_repeated_before_the_lease_ends(fleet, supervise):
    """P17, P39: it has a time limit, so that one lost response costs no lease."""
    renewed, renew_as_ever = [], fleet.renew

    async def renew(worker, lease, **report):
        renewed.append(worker)
        if len(renewed) == 1:
            await asyncio.Event().wait()
        return await renew_as_ever(worker, lease, **report)

    fleet.renew = renew
    supervisor = await supervise(lease=seconds(6))

    async def renewed_again():
        return len(renewed) >= 3

    await eventually(renewed_again)
    assert len(set(renewed)) == 1
    assert not [line for line in supervisor.said if "its lease" in line]


async def test_the_supervisor_ends_with_the_reason_if_the_application_cannot_be_run(supervise):
    supervisor = await supervise(first='said.write(encode_line(StartFailed("no module named shop"))); os._exit(2)')
    with pytest.raises(CannotRun, match="no module named shop"):
        await asyncio.wait_for(supervisor.task, 30)


async def test_a_stopped_supervisor_ends_after_its_workers(fleet, supervise):
    """F04"""
    supervisor = await supervise(count=2)
    await at_work(fleet, 2)
    supervisor.stop()
    await asyncio.wait_for(supervisor.task, 30)
    assert sorted(fleet.departed) == sorted(worker.id for worker in fleet.registered)


async def test_jobs_of_a_worker_that_dies_while_draining_spend_no_attempt(fleet, supervise):
    """F04"""
    job = a_job()
    fleet.held = {job.id: job}
    supervisor = await supervise(go=record_started(job), drain="os._exit(1)")
    await at_work(fleet, 1)
    supervisor.stop()
    await asyncio.wait_for(supervisor.task, 30)
    assert [report.outcome for report in fleet.reports] == [Interrupted()]


async def test_the_second_stop_ends_the_drain_period(fleet, supervise, monkeypatch):
    """F04: the workers are told to release their running jobs now; they are not just killed."""
    periods, shut_down = [], SupervisedProcess.shut_down

    def recording(process, period):
        periods.append(period)
        shut_down(process, period)

    monkeypatch.setattr(SupervisedProcess, "shut_down", recording)
    supervisor = await supervise(drain="pass", grace=600.0)
    await at_work(fleet, 1)
    for _ in range(3):
        supervisor.stop()
    await asyncio.wait_for(supervisor.task, 30)
    assert periods == [600.0, 0]


async def test_the_third_stop_kills_workers_that_do_not_end(fleet, supervise):
    """F04"""
    supervisor = await supervise(drain="time.sleep(600)", grace=600.0)
    await at_work(fleet, 1)
    for _ in range(3):
        supervisor.stop()
    await asyncio.wait_for(supervisor.task, 30)


async def test_a_worker_that_lost_a_slot_is_drained_and_replaced(fleet, supervise):
    """P26"""
    supervisor = await supervise(go='said.write(encode_line(SlotLost("a handler does not stop")))')
    await at_work(fleet, 2)
    assert any("a handler does not stop" in line for line in supervisor.said)


async def test_a_worker_that_lost_a_slot_does_not_drain_the_node(fleet, supervise):
    """P26: only this worker ends, so its renewals do not report a draining node."""
    supervisor = await supervise(
        go='said.write(encode_line(SlotLost("a handler does not stop")))', drain="pass", grace=60.0
    )

    async def on_slot_lost():
        return any("a handler does not stop" in line for line in supervisor.said)

    async def renewed(upto):
        return fleet.renewals >= upto

    await eventually(on_slot_lost)
    await eventually(lambda upto=fleet.renewals + 3: renewed(upto))
    os.kill(fleet.registered[0].pid, SIGKILL)
    await at_work(fleet, 2)
    assert not supervisor.drained
    assert {draining for _, draining in fleet.renewal_reports} == {False}
    for _ in range(3):
        supervisor.stop()


async def test_an_unexpected_error_does_not_end_the_node(fleet, supervise):
    """P23: neither at registration nor when its jobs are reported; its lease is no longer renewed then."""
    fleet.register_faults.append(RuntimeError("odd"))
    supervisor = await supervise()
    await at_work(fleet, 1)
    warnings = [line for line in supervisor.said if "RuntimeError: odd" in line]
    assert warnings == ["supervision of worker 1 failed (RuntimeError: odd); starting another"]
    renewed = []
    renew_as_ever = fleet.renew

    async def renew(worker, *given, **named):
        renewed.append(worker)
        return await renew_as_ever(worker, *given, **named)

    async def held_by(worker, limit):
        raise KeyError("odder")

    fleet.renew, fleet.held_by = renew, held_by
    os.kill(fleet.registered[0].pid, SIGKILL)
    await at_work(fleet, 2)
    assert any("odder" in line for line in supervisor.said)
    del fleet.held_by
    first, second = (worker.id for worker in fleet.registered)

    async def only_the_second():
        return renewed.count(second) > 3

    await eventually(only_the_second)
    assert first not in renewed[-3:]
    assert not supervisor.task.done()


async def test_an_application_that_worked_once_is_loaded_again_after_a_failure(fleet, supervise, tmp_path):
    """F37: for example while another version is being deployed."""
    broken = tmp_path / "broken"
    say_so = 'said.write(encode_line(StartFailed("no module named shop"))); os._exit(2)'
    supervisor = await supervise(first=f"if os.path.exists({str(broken)!r}): {say_so}")
    await at_work(fleet, 1)
    broken.touch()
    os.kill(fleet.registered[0].pid, SIGKILL)

    async def reported():
        return any("no module named shop" in line for line in supervisor.said)

    await eventually(reported)
    broken.unlink()
    await at_work(fleet, 2)


MIGRATED = SchemaMismatch("the database's schema is version 2, this holdfast works with 1")


@pytest.mark.parametrize("way", ["the worker cannot connect", "its lease is lost", "registration fails"])
async def test_a_node_ends_if_its_workers_cannot_start_after_a_migration(fleet, supervise, tmp_path, way):
    """F38: the process manager sees that it has ended; its other workers are drained first."""
    migrated = tmp_path / "migrated"
    code = EXIT_LEASE_LOST if way == "its lease is lost" else EXIT_NO_DATABASE
    go = f"os.path.exists({str(migrated)!r}) and os._exit({code})"
    supervisor = await supervise(count=2, go=go)
    await at_work(fleet, 2)
    fleet.open_fault = MIGRATED
    if way == "registration fails":
        fleet.register_faults.append(MIGRATED)
    else:
        migrated.touch()
    os.kill(fleet.registered[0].pid, SIGKILL)
    with pytest.raises(SchemaMismatch, match="version 2"):
        await asyncio.wait_for(supervisor.task, 30)
    assert sorted(fleet.departed) == sorted(worker.id for worker in fleet.registered)
    assert not supervisor.drained


async def test_a_node_whose_workers_cannot_reach_the_database_keeps_starting_them(fleet, supervise, tmp_path):
    """F08, P05: the schema cannot be checked either, and says nothing."""
    away = tmp_path / "away"
    supervisor = await supervise(go=f"os.path.exists({str(away)!r}) and os._exit({EXIT_NO_DATABASE})")
    await at_work(fleet, 1)
    fleet.open_fault = Unavailable("away")
    away.touch()
    os.kill(fleet.registered[0].pid, SIGKILL)
    await at_work(fleet, 4)
    assert not supervisor.task.done()


FINISHED_FIVE = "said.write(encode_line(Load(1, 0, None, 5)))"


async def test_a_worker_that_has_finished_enough_jobs_is_replaced_while_it_finishes_the_others(fleet, supervise):
    """The replaced worker stays until its jobs are done, and keeps its lease."""
    supervisor = await supervise(go=FINISHED_FIVE, drain="pass", recycling=RecyclingRules(max_jobs=5), grace=0.0)
    await at_work(fleet, 2)
    assert "it has finished 5 jobs (HOLDFAST_WORKER_MAX_JOBS is 5); starting another" in supervisor.said[0]
    first = fleet.registered[0]
    renewals = fleet.renewals

    async def both_renew():
        return fleet.renewals >= renewals + 4

    await eventually(both_renew)
    os.kill(first.pid, 0)
    assert first.id not in fleet.departed
    # The second one is due too, but waits for the first: there are never more than two.
    assert len(fleet.registered) == 2


async def test_the_next_worker_is_replaced_when_the_first_has_finished(fleet, supervise):
    await supervise(go=FINISHED_FIVE, recycling=RecyclingRules(max_jobs=5))
    await at_work(fleet, 4)


async def test_a_worker_that_uses_much_memory_is_replaced_after_a_job(fleet, supervise):
    supervisor = await supervise(go=FINISHED_FIVE, recycling=RecyclingRules(max_memory=1))
    await at_work(fleet, 2)
    assert "MiB (HOLDFAST_WORKER_MAX_MEMORY_MB" in supervisor.said[0]


async def test_a_crash_of_a_replaced_worker_counts_against_its_jobs(fleet, supervise):
    """P03: replacing a worker does not hide which job crashed it."""
    job = a_job(id=new_job_id())
    fleet.held = {job.id: job}
    code = f"{record_started(job)}; {FINISHED_FIVE}"
    await supervise(go=code, drain="os._exit(9)", recycling=RecyclingRules(max_jobs=5))

    async def reported():
        return fleet.reports

    await eventually(reported)
    assert fleet.reports[0].outcome == Crashed("exit code 9")


async def test_a_stop_ends_a_replaced_worker_too(fleet, supervise):
    drain = "said.write(encode_line(Load(0, 0))) if read_to_worker(text).seconds > 60 else os._exit(0)"
    supervisor = await supervise(go=FINISHED_FIVE, drain=drain, recycling=RecyclingRules(max_jobs=5))
    await at_work(fleet, 2)
    supervisor.stop()
    async with asyncio.timeout(30):
        await supervisor.task
    assert set(fleet.departed) == {worker.id for worker in fleet.registered}


async def test_a_reload_replaces_every_worker_by_one_with_the_new_code(fleet, supervise, tmp_path):
    supervisor = await supervise(count=2, reloading=True)
    await at_work(fleet, 2)
    program = tmp_path / "child.py"
    program.write_text(program.read_text().replace('["work"]', '["new"]'))
    supervisor.reload()
    await at_work(fleet, 4)
    assert [worker.types for worker in fleet.registered] == [("work",)] * 2 + [("new",)] * 2


async def test_an_application_that_cannot_be_loaded_waits_for_a_change(fleet, supervise, tmp_path):
    failing = 'said.write(encode_line(StartFailed("shop cannot be imported"))); os._exit(1)'
    supervisor = await supervise(count=2, first=failing, reloading=True)

    async def reported():
        return supervisor.said

    await eventually(reported)
    program = tmp_path / "child.py"
    program.write_text(program.read_text().replace(failing, ""))
    supervisor.reload()
    await at_work(fleet, 2)
    # Once, not for each process. The second one may not have reported its failure before the change.
    assert [text for text in supervisor.said if "waiting" in text] == ["shop cannot be imported; waiting for a change"]
