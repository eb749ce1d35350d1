"""A worker process is killed at each failpoint of a job's attempt, and another node takes over."""

import pytest

from holdfast.failpoints import POINTS

STARTED_TWICE = {"before_step_commit", "after_step_commit", "before_settle"}
"""Failpoints between the handler's start and the commit of its outcome."""


@pytest.mark.parametrize("point", sorted(POINTS))
async def test_a_job_survives_a_kill_at(scene, point):
    """F02, P06, S1, S12: the job succeeds once; only handlers and steps that were not recorded run again.

    P07: rq#2424, rq#2289: a job that finished before its worker died is not changed when the lease is cleared.
    """
    node = scene.node(lease=1.0, environment={"HOLDFAST_FAILPOINT": f"{point}:1:kill"})
    await scene.submit("job", "stepping", max_attempts=10)
    await scene.says(node, "ended by signal SIGKILL")
    node.end()  # its next process would be killed at the same failpoint
    killed_in = {entry.pid for entry in scene.ledger.entries()}
    scene.node()
    (job,) = await scene.becomes("succeeded", "job")
    await scene.workers(1)  # the dead workers are removed
    assert await scene.job("job") == job

    starts, effects = scene.ledger.count("start"), scene.ledger.count("effect")
    assert scene.ledger.count("end") == starts - len(killed_in & _without_end(scene.ledger))
    if point == "after_settle":
        assert (starts, effects, job.attempts) == (1, 1, 1)
    elif point in STARTED_TWICE:
        assert starts == job.fence == job.attempts >= 2
    else:  # claimed by the killed process, never started
        assert not killed_in
        assert (starts, effects) == (1, 1)
    if point == "before_step_commit":
        assert effects == starts  # not recorded, so it runs again: at least once
    else:
        assert effects == 1
        assert {entry.event for entry in scene.ledger.entries()} >= {"step of attempt 1"} or starts == 1


def _without_end(ledger):
    return {entry.pid for entry in ledger.entries("start")} - {entry.pid for entry in ledger.entries("end")}
