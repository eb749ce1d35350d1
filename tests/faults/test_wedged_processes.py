"""Worker processes that no longer run: stopped by a signal, or with a handler that never releases the GIL."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

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


@pytest.mark.databases("sqlite")
async def test_a_handler_that_blocks_the_event_loop_longer_than_the_silence_keeps_its_process(scene: Scene) -> None:
    """A blocked event loop is no silence: the job finishes."""
    node = scene.node(environment=SILENCE)
    await scene.submit("blocks", action="block", amount=6.0)
    (job,) = await scene.becomes("succeeded", "blocks")
    assert job.attempts == 1
    assert "no sign of life" not in node.log
