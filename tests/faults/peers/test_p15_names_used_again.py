"""P15, P27: procrastinate#1518, oban#862: a restarted node with the same name kept the jobs of the dead one "alive".

A hundred rounds with HOLDFAST_LONG_TESTS=1.
"""

from signal import SIGKILL

from tests.support.long import LONG

ROUNDS = 100 if LONG else 4


async def test_no_job_is_stuck_after_a_node_was_killed_and_restarted_under_its_name_many_times(scene):
    same = {"HOLDFAST_WORKER_ID": "pod-1"}
    for n in range(ROUNDS):
        node = scene.node(lease=1.0, environment=same)
        await scene.submit(f"job-{n}", sleep=0.3, max_attempts=1_000)
        await scene.starts(f"job-{n}")
        node.signal_all(SIGKILL)
    scene.node(lease=1.0, environment=same)
    await scene.becomes("succeeded")
    (worker,) = await scene.workers(1)
    assert worker.info.name.startswith("pod-1/")
