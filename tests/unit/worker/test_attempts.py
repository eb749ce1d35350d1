"""Records of attempts and the cost of crashes, with real processes."""

import os
from signal import SIGKILL

import pytest

from tests.support.eventually import eventually

pytestmark = pytest.mark.slow  # starts processes

APP = "tests.unit.worker.diary:app"


@pytest.mark.by_http_too("sqlite")
async def test_log_lines_are_stored_with_their_attempts(scene):
    """T25: for failed and successful attempts of each isolation, without secrets."""
    scene.node(app=APP)
    kinds = ("on_loop", "in_thread", "in_process")
    for kind in kinds:
        await scene.submit(kind, kind, end="fail")
    await scene.becomes("succeeded")
    for kind in kinds:
        attempts = await scene.attempts(kind)
        assert [(each.outcome, each.attempt) for each in attempts] == [("failed", 1), ("succeeded", 2)]
        for each in attempts:
            (line,) = each.logs.lines
            assert line.message == f"attempt {each.attempt} of {kind} password=*** size=7"
            assert line.level == "info"
            assert each.logs.dropped == 0
        assert attempts[0].error.message == "the first fails"
        assert attempts[1].error is None


async def test_a_job_that_logs_nothing_has_no_attempt_log(scene):
    scene.node(app=APP)
    await scene.submit("silent", "silent")
    (job,) = await scene.becomes("succeeded")
    assert job.attempt_log is None


@pytest.mark.databases("sqlite")
async def test_lines_of_a_job_process_are_stored_even_if_it_dies_or_is_killed(scene):
    """F30, S19: lines are forwarded one by one, so that the last one shows how far the handler came."""
    scene.node(app=APP)
    await scene.submit("exit", "in_process", end="exit", max_attempts=1)
    await scene.submit("hang", "in_process", end="hang", max_attempts=1, timeout=1.0)
    await scene.submit("loop", "on_loop", end="hang", max_attempts=1, timeout=1.0)
    await scene.becomes("dead")
    for key, outcome in (("exit", "crashed"), ("hang", "timed_out"), ("loop", "timed_out")):
        (attempt,) = await scene.attempts(key)
        assert attempt.outcome == outcome
        assert [line.message for line in attempt.logs.lines] == [f"attempt 1 of {key} password=*** size=7"]


async def test_the_last_progress_of_a_failed_attempt_is_stored(scene):
    scene.node(app=APP)
    await scene.submit("failed", "on_loop", end="fail", max_attempts=1)
    await scene.submit("timed out", "on_loop", end="hang", max_attempts=1, timeout=1.0)
    for job in await scene.becomes("dead"):
        assert job.progress == b'{"fraction":0.1,"note":"so far"}'


@pytest.mark.by_http_too("sqlite")
@pytest.mark.databases("sqlite")
async def test_an_unknown_step_outcome_ends_the_job_unless_its_handler_decides(scene):
    """F02: another attempt could not help, however many are left.

    The second job is submitted last, because the crash of one would cost the other an attempt.
    """
    scene.node(app=APP)
    await scene.submit("dies", "at_most_once", max_attempts=10)
    await scene.becomes("dead", "dies")
    assert scene.ledger.count("start", "dies") == 2
    crashed, unknown = await scene.attempts("dies")
    assert (crashed.outcome, unknown.error.kind) == ("crashed", "holdfast.errors.StepOutcomeUnknown")
    await scene.submit("knows", "at_most_once_and_knows", max_attempts=10)
    (knows,) = await scene.becomes("succeeded", "knows")
    assert knows.result == b'"asked the bank"'


@pytest.mark.databases("sqlite")
async def test_jobs_beside_a_poison_pill_lose_only_one_attempt_to_it(scene):
    """P03, P04, S8: all suspects run in job processes afterwards; the pill starts `max_attempts` times."""
    node = scene.node(app=APP, queues="default:10")
    beside = [f"beside {n}" for n in range(4)]
    for key in beside:
        await scene.submit(key, "waits", max_attempts=2)
    await scene.submit("pill", "poison", beside=len(beside), max_attempts=4)
    await scene.becomes("dead", "pill")
    for key in beside:
        await scene.starts(key, times=2)
    scene.let_go("all")
    jobs = await scene.becomes("succeeded", *beside)
    assert [job.attempts for job in jobs] == [2] * len(beside)
    assert scene.ledger.count("poison") == 4
    assert [each.outcome for each in await scene.attempts("pill")] == ["crashed"] * 4
    assert node.log.count("starting another") == 1
    again = [entry.pid for entry in scene.ledger.entries("start") if entry.attempt == 2]
    assert len(set(again)) == len(beside)


@pytest.mark.databases("sqlite")
async def test_the_time_to_load_the_application_does_not_count_towards_a_timeout(scene):
    """S19: a job process that cannot be forked takes twice the timeout to load, and the attempt still succeeds."""
    node = scene.node(app=APP, environment={"DIARY_LOADING": "3"})
    await scene.submit("job", "in_process", timeout=1.5, max_attempts=1)
    (job,) = await scene.becomes("succeeded")
    assert job.attempts == 1
    assert "each process loads the application itself" in node.log


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("kind", ["spawns", "spawns_apart"])
async def test_programs_of_handlers_end_when_the_supervisor_is_killed(scene, kind):
    """F34, F01: only the kernel and the sentinel process are left to end them."""
    node = scene.node(app=APP)
    await scene.submit("job", kind)

    async def spawned():
        return [int(each.event.split()[1]) for each in scene.ledger.entries() if each.event.startswith("spawned")]

    (program,) = await eventually(spawned, within=60)
    scene.leaves_running(program)
    below = node.all_processes()[1:]
    for pid in below:
        scene.leaves_running(pid)
    assert program in below
    os.kill(node.pid, SIGKILL)
    for pid in below:
        await scene.gone(pid)
