"""P02: celery#3270, celery#2599: tasks due later than the visibility timeout multiplied."""

LEASE = 1.5


async def test_a_job_due_after_several_leases_starts_once(scene):
    for _ in range(2):
        scene.node(lease=LEASE)
    for n in range(5):
        await scene.submit(f"job-{n}", delay=2 * LEASE + n / 10)
    assert {(await scene.job(f"job-{n}")).status for n in range(5)} == {"scheduled"}
    jobs = await scene.becomes("succeeded")
    assert set(scene.ledger.per_key("start").values()) == {1}
    assert {job.fence for job in jobs} == {1}
    assert all(job.started_at >= job.scheduled_at for job in jobs)
