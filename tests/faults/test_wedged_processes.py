"""Worker processes that no longer run: stopped by a signal, or with a handler that never releases the GIL."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.eventually import eventually
from tests.support.fault_env import TIMEOUT_S

if TYPE_CHECKING:
    from tests.support.fault_env import Scene

SILENCE = {"HOLDFAST_WORKER_SILENCE_SECONDS": "2"}


@pytest.mark.by_http_too("sqlite")
async def test_a_stopped_idle_worker_process_is_replaced_and_its_jobs_run(scene: Scene) -> None:
    """F33: its supervisor renews the lease, so without a sign of life its jobs would wait for ever."""
    node = scene.node(environment=SILENCE)
    (worker,) = await scene.workers_of(node)
    os.kill(worker.info.pid, signal.SIGSTOP)
    await scene.submit("waits")
    (job,) = await scene.becomes("succeeded", "waits")
    assert job.attempts == 1
    await scene.says(node, "no sign of life for 2 s; killing it")


async def test_a_job_in_a_stopped_worker_process_runs_again(scene: Scene) -> None:
    """F33, P03: the attempt counts as crashed, because the handler may be the cause."""
    node = scene.node(environment=SILENCE)
    await scene.submit("running", sleep=600, held=True)
    await scene.starts("running")
    (worker,) = await scene.workers_of(node)
    os.kill(worker.info.pid, signal.SIGSTOP)
    await scene.starts("running", 2)
    scene.let_go("running")
    await scene.becomes("succeeded", "running")
    (attempt,) = await scene.attempts("running")
    assert attempt.outcome == "crashed"
    assert "no sign of life for 2 s" in attempt.error.message


@pytest.mark.by_http_too("sqlite")
async def test_a_stopped_worker_process_is_shown_before_it_is_replaced(scene: Scene) -> None:
    """F33: `workers` and `explain` agree."""
    node = scene.node(lease=6.0, environment={"HOLDFAST_WORKER_SILENCE_SECONDS": "600"})
    (worker,) = await scene.workers_of(node)
    os.kill(worker.info.pid, signal.SIGSTOP)
    waiting = await scene.submit("waits")

    async def shown() -> bool:
        (row,) = await scene.workers_of(node)
        return row.unresponsive_since is not None and row.blocked_by is None

    await eventually(shown, within=TIMEOUT_S)
    explanation = await scene.engine.jobs.explain(waiting)
    assert [reason.code for reason in explanation.reasons] == ["worker_unresponsive"]
    os.kill(worker.info.pid, signal.SIGCONT)
    await scene.becomes("succeeded", "waits")

    async def responds() -> bool:
        (row,) = await scene.workers_of(node)
        return row.unresponsive_since is None

    await eventually(responds, within=TIMEOUT_S)


@pytest.mark.by_http_too("sqlite")
async def test_jobs_beside_a_handler_that_blocks_the_event_loop_name_it(scene: Scene) -> None:
    """F28: the job that waits, and the one that runs on the same event loop."""
    node = scene.node(lease=6.0, queues="default:2")
    beside = await scene.submit("beside", sleep=600, held=True)
    await scene.starts("beside")
    await scene.submit("blocks", action="block", amount=3600.0)
    await scene.starts("blocks")
    waiting = await scene.submit("waits", "thread")

    async def named() -> list[str | None]:
        explained = [await scene.engine.jobs.explain(job) for job in (beside, waiting)]
        names = [reason.name for explanation in explained for reason in explanation.reasons]
        return names if all(names) else []

    assert await eventually(named, within=TIMEOUT_S) == ["sink", "sink"]
    (row,) = await scene.workers_of(node)
    assert row.blocked_by == "sink"
    os.kill(row.info.pid, signal.SIGKILL)


@pytest.mark.databases("sqlite")
async def test_a_handler_that_blocks_the_event_loop_longer_than_the_silence_keeps_its_process(scene: Scene) -> None:
    """A blocked event loop is no silence: the job finishes."""
    node = scene.node(environment=SILENCE)
    await scene.submit("blocks", action="block", amount=6.0)
    (job,) = await scene.becomes("succeeded", "blocks")
    assert job.attempts == 1
    assert "no sign of life" not in node.log
