"""Handlers that end, crash or exhaust the process they run in."""

import asyncio
import os
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

import pytest

from tests.support.clock import console
from tests.support.eventually import eventually
from tests.support.fault_env import KINDS, TIMEOUT_S
from tests.support.long import LONG
from tests.support.nodes import state_of

__all__ = ["console"]

ENDS = {
    "exit 0": ("exit", 0, "exit code 0"),
    "exit 1": ("exit", 1, "exit code 1"),
    "segfault": ("segfault", 0, "signal SIGSEGV"),
    "abort": ("abort", 0, "signal SIGABRT"),
    "kill": ("kill", 0, "signal SIGKILL"),
}
RAISES = {
    "sys.exit": ("sys_exit", 3, "SystemExit"),
    "interrupt": ("interrupt", 0, "KeyboardInterrupt"),
    "base": ("base", 0, "BaseException"),
    "cancelled": ("cancelled", 0, "CancelledError"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_that_ends_its_process_is_recorded_and_dead_after_its_attempts(scene, kind, dialect):
    """F30, F31, F32, P03, P04: the exit code or signal is recorded; a poison pill starts `max_attempts` times.

    The kind of exit does not depend on the database, so database servers see only two kinds.
    """
    node = scene.node()
    ends = ENDS if LONG or dialect == "sqlite" else {key: ENDS[key] for key in ("exit 0", "segfault")}
    for key, (action, amount, how) in ends.items():
        await scene.submit(key, kind, action=action, amount=amount, max_attempts=2)
        await scene.becomes("dead", key)
        assert scene.ledger.count("start", key) == 2
        assert [(each.outcome, each.error.message) for each in await scene.attempts(key)] == [
            ("crashed", f"the process that ran it ended: {how}")
        ] * 2
    await scene.submit("after", kind)
    await scene.becomes("succeeded", "after")
    assert ("starting another" in node.log) is (kind != "process")
    assert node.alive()


@pytest.mark.parametrize("kind", KINDS)
async def test_any_exception_of_a_handler_is_a_failed_attempt_and_costs_no_process(scene, kind):
    """F30: SystemExit, KeyboardInterrupt and the like end neither a worker nor one of its slots."""
    node = scene.node(queues="default:2")
    for key, (action, amount, _) in RAISES.items():
        await scene.submit(key, kind, action=action, amount=amount, max_attempts=3)
    await scene.becomes("dead")
    for key, (*_, name) in RAISES.items():
        assert scene.ledger.count("start", key) == 3
        logged = await scene.attempts(key)
        assert [each.outcome for each in logged] == ["failed"] * 3
        assert all(name in each.error.kind + each.error.message for each in logged)
    await scene.submit("after", kind)
    await scene.becomes("succeeded", "after")
    assert "starting another" not in node.log


@pytest.mark.parametrize("kind", KINDS)
async def test_cancel_and_retry_of_a_running_job_cost_no_other_job_an_attempt(scene, kind):
    """P41, S7: the worker claims the job again while its first handler still runs, and starts it after that."""
    node = scene.node(queues="default:4")
    await scene.submit("neighbour", sleep=600, held=True)
    retried = await scene.submit("retried", kind, sleep=600, held=True, ignore_cancel=kind == "async")
    await scene.starts("neighbour")
    await scene.starts("retried")
    for _ in range(3):
        await scene.engine.jobs.cancel([retried], reason="a test")
        await scene.engine.jobs.retry([retried])
    scene.let_go("retried")
    await scene.becomes("succeeded", "retried")
    scene.let_go("neighbour")
    (neighbour,) = await scene.becomes("succeeded", "neighbour")
    assert (neighbour.attempts, neighbour.fence) == (1, 1)
    assert scene.ledger.count("start", "neighbour") == 1
    assert "starting another" not in node.log


async def test_an_exit_in_the_event_loop_ends_the_process_even_if_threads_still_run(scene):
    """F30: raised in a task that a handler left behind, it ends the event loop; the process must end too."""
    scene.node()
    await scene.submit("slow", "thread", sleep=600, max_attempts=1)
    await scene.starts("slow")
    await scene.submit("poison", action="exit_in_task", amount=3, sleep=0.1, max_attempts=3)
    await scene.becomes("dead", "slow")
    assert "exit code 3" in (await scene.attempts("slow"))[0].error.message
    await scene.submit("after")
    await scene.becomes("succeeded", "after")


@pytest.mark.by_http_too("sqlite")
async def test_jobs_beside_a_poison_pill_finish(scene):
    """P04, S8: they have attempts left and finish; no pill starts more often than it has attempts.

    The crash of one pill may end the other as its handler starts, before it writes to the ledger.
    """
    scene.node(queues="default:4")
    beside = [f"beside-{n}" for n in range(12)]
    for key in beside:
        await scene.submit(key, KINDS["async"], sleep=0.2)
    for n, action in enumerate(("exit", "segfault")):
        await scene.submit(f"poison-{n}", action=action, amount=1, max_attempts=2)
    await scene.becomes("succeeded", *beside)
    await scene.becomes("dead", "poison-0", "poison-1")
    for key in ("poison-0", "poison-1"):
        job = await scene.job(key)
        assert [each.outcome for each in await scene.attempts(key)] == ["crashed"] * 2
        assert job.attempts == 2 >= scene.ledger.count("start", key) >= 1
        assert len({entry.fence for entry in scene.ledger.entries("start", key)}) == scene.ledger.count("start", key)


@pytest.mark.databases("sqlite")
async def test_an_isolated_poison_pill_spends_its_attempt_even_if_its_worker_dies_at_the_start(scene):
    """F02, P04, S8: the job process records the start itself, because its worker may be dead by then."""
    node = scene.node(environment={"HOLDFAST_FAILPOINT": "after_isolated_start:1:kill"})
    await scene.submit("poison", action="exit", amount=1, max_attempts=3)
    await scene.becomes("dead", "poison")
    job = await scene.job("poison")
    assert (job.attempts, job.releases) == (3, 0)
    assert [each.error.message.split(": ")[1] for each in await scene.attempts("poison")] == [
        "exit code 1", "signal SIGKILL", "signal SIGKILL",
    ]  # fmt: skip
    assert scene.ledger.count("start", "poison") <= 3

    async def both_deaths_are_logged():  # a node reports the jobs of a dead worker before it logs the death
        return node.log.count("ended by signal SIGKILL") == 2

    await eventually(both_deaths_are_logged, within=TIMEOUT_S)


async def test_a_crashing_job_process_harms_no_other_job(scene):
    """F30, F31: its crash ends neither the jobs beside it nor the worker."""
    node = scene.node()
    beside = ("beside", "beside too")
    for key, kind in zip(beside, ("process", "async"), strict=True):
        await scene.submit(key, kind, sleep=600, held=True)
        await scene.starts(key)
    for action in ("exit", "segfault", "kill"):
        await scene.submit(action, "process", action=action, amount=1, max_attempts=1)
    await scene.becomes("dead", "exit", "segfault", "kill")
    for key in beside:
        scene.let_go(key)
    await scene.becomes("succeeded", *beside)
    assert scene.ledger.count("start", "beside") == scene.ledger.count("start", "beside too") == 1
    assert "starting another" not in node.log


async def test_too_much_memory_fails_the_attempt_or_the_process_but_not_the_node(scene):
    """F32: a handler with a memory limit gets MemoryError; if the kernel kills it (P03), it has crashed."""
    scene.node()
    await scene.submit("limited", "process", action="allocate", amount=100_000, max_attempts=1)
    await scene.submit("killed", "process", action="kill", max_attempts=1)
    await scene.becomes("dead")
    assert (await scene.attempts("limited"))[0].error.kind == "MemoryError"
    assert (await scene.attempts("killed"))[0].error.message.endswith("signal SIGKILL")


async def test_the_job_of_a_killed_job_process_is_retried(scene):
    """P03: killed from outside, as by the kernel when memory runs out."""
    scene.node()
    await scene.submit("job", "process", sleep=600, held=True)
    await scene.starts("job")
    os.kill(scene.ledger.entries("start", "job")[0].pid, SIGKILL)
    await scene.starts("job", times=2)
    scene.let_go("job")
    (job,) = await scene.becomes("succeeded", "job")
    assert job.attempts == scene.ledger.count("start", "job") == 2
    assert (await scene.attempts("job"))[0].error.message.endswith("signal SIGKILL")


async def test_programs_that_a_job_process_started_end_with_it(scene):
    """F34: the whole group is killed when its process crashes or is stopped."""
    scene.node()
    await scene.submit("crash", "process", action="fork_and_exit", amount=600, max_attempts=1)
    await scene.becomes("dead", "crash")
    assert (await scene.attempts("crash"))[0].error.message.endswith("exit code 7")
    await scene.submit("timeout", "spawning", sleep=600, timeout=1.0, max_attempts=1)
    await scene.becomes("dead", "timeout")
    assert [each.outcome for each in await scene.attempts("timeout")] == ["timed_out"]
    spawned = [int(entry.event.split()[1]) for entry in scene.ledger.entries() if entry.event.startswith("spawned")]
    assert len(spawned) == 2
    for pid in spawned:
        scene.leaves_running(pid)
        await scene.gone(pid)


@pytest.mark.parametrize("end", ["crash", "kill"])
async def test_programs_that_a_job_process_started_end_with_the_worker_too(scene, end):
    """F34: even if the worker had no time to kill them."""
    node = scene.node()
    await scene.submit("job", "spawning", sleep=600)
    await scene.starts("job")
    (spawned,) = [int(entry.event.split()[1]) for entry in scene.ledger.entries() if entry.event.startswith("spawned")]
    scene.leaves_running(spawned)
    if end == "crash":
        await scene.submit("poison", action="segfault", max_attempts=1)
    else:
        os.kill(node.children()[0], SIGKILL)
    await scene.gone(scene.ledger.entries("start", "job")[0].pid)
    await scene.gone(spawned)
    await scene.starts("job", times=2)
    job = await scene.job("job")
    assert (job.attempts, job.releases) == (1, 1)


@pytest.mark.databases("sqlite")
async def test_processes_outlive_their_fork_server(scene):
    """F34, P04: no process ends with it, and processes that die later are replaced."""
    node = scene.node()
    await scene.workers(1)
    await scene.submit("job", "process", sleep=600, held=True)
    await scene.starts("job")
    for pid in node.fork_servers():
        os.kill(pid, SIGKILL)
        await scene.gone(pid)
    scene.let_go("job")
    await scene.becomes("succeeded", "job")
    assert scene.ledger.count("start", "job") == 1
    await scene.submit("poison", action="exit", amount=1, max_attempts=2)
    await scene.becomes("dead", "poison")
    assert scene.ledger.count("start", "poison") == 2
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    assert len(node.fork_servers()) == 2  # of the supervisor and of the worker


@pytest.mark.databases("sqlite")
async def test_an_application_with_a_thread_runs_without_being_forked(scene, tmp_path):
    """F45, P04: each worker and job process loads it itself."""
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    (tmp_path / "threaded.py").write_text(f"{text}from tests.support.fault_app import app as app\n")
    node = scene.node(app="threaded:app")
    await scene.submit("poison", action="exit", amount=1, max_attempts=2)
    await scene.becomes("dead", "poison")
    assert scene.ledger.count("start", "poison") == 2
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    assert "it has started 1 thread" in node.log
    assert not node.fork_servers()


async def test_descriptors_threads_and_zombies_do_not_grow_with_jobs(scene):
    """F34: after four hundred jobs a node has no more of them than after the first hundreds."""
    node = scene.node(queues="default:4")

    async def run(batch):
        for n in range(100):
            crash = n % 25 == 0
            kind = "process" if crash else ("async", "thread", "process")[n % 3]
            await scene.submit(f"{batch}-{n}", kind, action="exit" if crash else "", amount=1, max_attempts=1)
        for n in range(100):
            await scene.becomes("succeeded" if n % 25 else "dead", f"{batch}-{n}")
        (worker,) = node.children()
        return [held_by(pid) for pid in (node.pid, worker)]

    before = [await run("first"), await run("second")][-1]
    after = [await run("third"), await run("fourth")][-1]
    for now, then in zip(after, before, strict=True):
        assert now.descriptors <= then.descriptors + 4  # one more job process means one more socket
        assert now.threads <= then.threads + 4
        assert now.zombies == 0


class Holding(NamedTuple):
    descriptors: int
    threads: int
    zombies: int


def held_by(pid):
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    zombies = sum(1 for child in children if state_of(child) == "Z")
    return Holding(len(list(Path(f"/proc/{pid}/fd").iterdir())), len(tasks), zombies)


async def test_an_old_node_whose_workers_died_after_a_migration_exits_with_the_reason(scene, console):
    """F38: it does not stay alive without workers, and the jobs it held can run elsewhere at once."""
    node = scene.node(processes=2)
    workers = await scene.workers_of(node)
    await scene.submit("running", sleep=600)
    await scene.starts("running")
    await console.run("INSERT INTO holdfast_schema (version, name, checksum) VALUES (9999, 'later', 'x')")
    try:
        (pid,) = {entry.pid for entry in scene.ledger.entries() if entry.event == "start"}
        os.kill(next(row.info.pid for row in workers if row.info.pid != pid), SIGKILL)
        assert await asyncio.to_thread(node.wait, TIMEOUT_S) == 2
        assert "schema is version 9999" in node.log
        (job,) = await scene.becomes("ready", "running")
        assert await scene.attempts("running") == []
        assert job.worker is None
        await scene.workers(0)
    finally:  # tests share the database
        await console.run("DELETE FROM holdfast_schema WHERE version = 9999")
