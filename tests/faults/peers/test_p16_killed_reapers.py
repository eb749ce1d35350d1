"""P16: procrastinate#1408: the job that rescues stalled jobs stalled itself.

Here every supervisor reaps, so that none of them is indispensable. A hundred kills with HOLDFAST_LONG_TESTS=1.
"""

from signal import SIGKILL

from tests.support.long import LONG

KILLS = 100 if LONG else 2


async def test_no_job_is_lost_while_supervisors_are_killed_as_they_reap(scene):
    """F07: only the supervisor is killed; its processes end by themselves, and other nodes reap its jobs."""
    alive = [scene.node(lease=1.0, queues="default:5") for _ in range(2)]
    for n in range(KILLS):
        for m in range(10):
            await scene.submit(f"job-{n}-{m}", sleep=0.5, max_attempts=1_000)
        await scene.noted("start", times=10 * n + 1)
        victim = alive.pop(0)
        below = victim.all_processes()[1:]
        victim.signal(SIGKILL)
        for pid in below:
            await scene.gone(pid)
        alive.append(scene.node(lease=1.0, queues="default:5"))
    await scene.becomes("succeeded")
    await scene.workers(2)
    ends = {(entry.job, entry.fence) for entry in scene.ledger.entries("end")}
    assert len(ends) == scene.ledger.count("end")
