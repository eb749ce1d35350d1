"""Jobs of a process that died: they start again together, and a poison pill among them is isolated."""

import os
from signal import SIGKILL

import pytest

from tests.support.eventually import eventually
from tests.support.fault_env import TIMEOUT_S

pytestmark = pytest.mark.slow  # starts processes

APP = "tests.unit.worker.diary:app"
MANY = 100


@pytest.fixture
def go(tmp_path):
    """File that ends the waiting handlers as soon as it exists."""
    return tmp_path / "go"


async def submit(scene, go, *keys, **options):
    """Submit jobs that wait for the file, and wait until all have started."""
    for key in keys:
        await scene.submit(key, "waits_for_file", path=str(go), **options)
    await start(scene, keys, times=1)


async def start(scene, keys, *, times):
    """Wait until each of these jobs has started this many times."""

    async def all_started():
        counts = scene.ledger.per_key("start")
        return all(counts.get(key, 0) >= times for key in keys)

    try:
        await eventually(all_started, within=TIMEOUT_S)
    except TimeoutError:
        raise AssertionError(
            f"not all started {times} times: {scene.ledger.per_key('start')}\n{scene.logs()}"
        ) from None


def kill_worker(scene, key):
    """Kill the process in which the job started last."""
    os.kill(scene.ledger.entries("start", key)[-1].pid, SIGKILL)


@pytest.mark.by_http_too("sqlite")
async def test_all_jobs_of_a_killed_process_start_again_together(scene, go):
    """P03, P04: none waits for another one to finish, and they share few processes."""
    scene.node(app=APP, queues=f"default:{MANY}")
    keys = [f"job {n}" for n in range(MANY)]
    await submit(scene, go, *keys)
    kill_worker(scene, keys[0])
    await start(scene, keys, times=2)
    again = {entry.pid for entry in scene.ledger.entries("start") if entry.attempt == 2}
    assert len(again) == 4
    go.touch()
    jobs = await scene.becomes("succeeded", *keys)
    assert {job.attempts for job in jobs} == {2}
    assert scene.ledger.count("start") == 2 * MANY


async def test_a_poison_pill_is_isolated_from_many_jobs_in_few_steps(scene, go):
    """P03, P04, S8: it is dead after its attempts; no other job loses more than three attempts, and all finish."""
    node = scene.node(app=APP, queues=f"default:{MANY + 1}")
    keys = [f"beside {n}" for n in range(MANY)]
    await submit(scene, go, *keys, max_attempts=4)
    await scene.submit("pill", "poison", beside=MANY, max_attempts=5)
    await scene.becomes("dead", "pill")
    assert scene.ledger.count("poison") == 5
    assert [each.outcome for each in await scene.attempts("pill")] == ["crashed"] * 5
    go.touch()
    jobs = await scene.becomes("succeeded", *keys)
    assert max(job.attempts for job in jobs) <= 4
    assert sum(job.attempts > 2 for job in jobs) < 32
    assert sum(job.attempts > 3 for job in jobs) < 4
    assert node.log.count("starting another") == 1


@pytest.mark.databases("sqlite")
async def test_jobs_with_two_attempts_survive_a_poison_pill_with_two_attempts(scene, go):
    """P04, S8: a suspect runs alone in its last attempt."""
    scene.node(app=APP, queues="default:20")
    keys = [f"beside {n}" for n in range(7)]
    await submit(scene, go, *keys, max_attempts=2)
    await scene.submit("pill", "poison", beside=len(keys), max_attempts=2)
    await scene.becomes("dead", "pill")
    go.touch()
    await scene.becomes("succeeded", *keys)
    again = [entry.pid for entry in scene.ledger.entries("start") if entry.attempt == 2]
    assert len(again) == len(keys)
    assert scene.ledger.count("poison") == 2


@pytest.mark.databases("sqlite")
async def test_a_suspect_that_is_cancelled_leaves_the_others_of_its_group_running(scene, go):
    """P04, S19: its handler is stopped, not its process."""
    scene.node(app=APP, queues="default:4")
    keys = ("cancelled", "timed out", "beside")
    await submit(scene, go, "cancelled", "beside")
    await submit(scene, go, "timed out", timeout=20.0, max_attempts=3)
    kill_worker(scene, "beside")
    await start(scene, keys, times=2)
    await scene.engine.jobs.cancel([(await scene.job("cancelled")).id], reason="a test")
    await scene.noted("stopped", "cancelled")
    await scene.noted("stopped", "timed out")
    go.touch()
    (beside, late) = await scene.becomes("succeeded", "beside", "timed out")
    assert (beside.attempts, late.attempts) == (2, 3)
    assert [each.outcome for each in await scene.attempts("timed out")] == ["crashed", "timed_out"]
    assert (await scene.job("cancelled")).status == "cancelled"


@pytest.mark.databases("sqlite")
async def test_a_suspect_that_does_not_stop_is_killed_and_its_group_starts_again(scene, go):
    """P04, P26, F33: only a signal to the process ends it."""
    node = scene.node(app=APP, queues="default:4")
    await submit(scene, go, "stubborn", stubborn=True)
    await submit(scene, go, "beside")
    kill_worker(scene, "beside")
    await start(scene, ("stubborn", "beside"), times=2)
    await scene.engine.jobs.cancel([(await scene.job("stubborn")).id], reason="a test")
    await scene.starts("beside", times=3)
    go.touch()
    await scene.becomes("succeeded", "beside")
    assert [each.outcome for each in await scene.attempts("beside")] == ["crashed"] * 2
    assert scene.ledger.count("start", "stubborn") == 2
    assert node.log.count("starting another") == 1
