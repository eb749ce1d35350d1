"""P01: celery#5935, celery#3430, pretix#2058: a task longer than the visibility timeout was delivered again.

P27: oban#862, hexpm#1825: a nightly job was rescued by its age while it ran, and ran two or three times.
"""

from tests.support.fault_env import KINDS

LEASE = 1.5


async def test_a_job_of_ten_leases_starts_once(scene):
    for _ in range(2):
        scene.node(lease=LEASE)
    await scene.workers(2)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=10 * LEASE)
    jobs = await scene.becomes("succeeded")
    assert set(scene.ledger.per_key("start").values()) == {1}
    assert {(job.attempts, job.releases, job.fence) for job in jobs} == {(1, 0, 1)}
