"""Deadlines: no job starts after its deadline; a job that could not start is cancelled with a reason."""

from holdfast.engine.jobs.actions import cancel, retry
from holdfast.engine.jobs.deadlines import cancel_overdue
from holdfast.engine.maintenance import promote_due
from holdfast.model.job import JobFilter
from holdfast.model.outcome import Interrupted
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, days, rfc3339, seconds
from tests.support.builders import a_job, enter, error, put, read, report, share, take

HOUR = seconds(3_600)


async def later(store, span):
    return Instant(await store.single(lambda tx: tx.now()) + span)


async def waiting(store):
    return await store.read(lambda tx: tx.counts(JobFilter(finished=False)))


async def test_a_job_past_its_deadline_is_not_claimed(manual_store, clock):
    worker = await enter(manual_store, lease=days(1))
    soon, late, never = (
        a_job(deadline=await later(manual_store, seconds(10))),
        a_job(deadline=await later(manual_store, seconds(20))),
        a_job(),
    )
    await put(manual_store, soon, late, never)
    await clock.advance(seconds(10))
    assert {job.id for job in await take(manual_store, worker)} == {late.id, never.id}
    assert (await read(manual_store, soon)).status is Status.READY
    assert await take(manual_store, worker, types=["send"]) == []
    while_others_rest = manual_store.single(lambda tx: tx.claim(worker, [share()], 10, None, without=["other"]))
    assert await while_others_rest == []


async def test_a_job_may_start_up_to_its_deadline_and_run_past_it(manual_store, clock):
    job = a_job(deadline=await later(manual_store, seconds(10)))
    await put(manual_store, job)
    await clock.advance(Duration(seconds(10) - 1))
    assert await cancel_overdue(manual_store) == 0
    (held,) = await take(manual_store, await enter(manual_store, lease=days(1)))
    await clock.advance(seconds(100))
    await cancel_overdue(manual_store)
    assert await report(manual_store, held) == {job.id}


async def test_a_job_that_waits_past_its_deadline_is_cancelled_with_a_reason(manual_store, clock):
    deadline = await later(manual_store, seconds(60))
    ready, scheduled = a_job(deadline=deadline), a_job(deadline=deadline, delay=HOUR)
    left = a_job(deadline=Instant(deadline + 1))
    await put(manual_store, ready, scheduled, left)
    await clock.advance(seconds(60))
    assert await cancel_overdue(manual_store) == 2
    for job in (ready, scheduled):
        found = await read(manual_store, job)
        assert (found.status, found.attempts) == (Status.CANCELLED, 0)
        assert found.reason == f"its deadline, {rfc3339(deadline)}, passed before it could start"
    assert (await read(manual_store, left)).status is Status.READY
    await clock.advance(seconds(2))
    await cancel_overdue(manual_store)
    assert await waiting(manual_store) == []


async def test_a_retry_does_not_start_after_the_deadline(manual_store, clock):
    worker = await enter(manual_store, lease=days(1))
    failed, handed_back = [a_job(deadline=await later(manual_store, seconds(10))) for _ in range(2)]
    await put(manual_store, failed, handed_back)
    one, two = sorted(await take(manual_store, worker), key=lambda job: job.id)
    await clock.advance(seconds(30))
    await cancel_overdue(manual_store)  # running jobs are not cancelled
    assert await report(manual_store, one, error()) == {failed.id}
    assert await report(manual_store, two, Interrupted()) == {handed_back.id}
    await clock.advance(seconds(60))
    await promote_due(manual_store)
    assert await take(manual_store, worker) == []
    await cancel_overdue(manual_store)
    found = await read(manual_store, failed)
    assert (found.status, found.attempts) == (Status.CANCELLED, 1)
    assert "passed before it could start again" in found.reason
    assert b"SMTP 421" in found.attempt_log
    assert (await read(manual_store, handed_back)).attempts == 0


async def test_a_replay_removes_a_deadline_that_has_passed(manual_store, clock):
    job = a_job(deadline=await later(manual_store, seconds(10)))
    await put(manual_store, job)
    await clock.advance(seconds(10))
    await cancel_overdue(manual_store)
    assert await retry(manual_store, [job.id]) == {job.id}
    await cancel_overdue(manual_store)
    (held,) = await take(manual_store, await enter(manual_store))
    assert (held.id, held.deadline) == (job.id, None)


async def test_a_replay_keeps_a_deadline_in_the_future(manual_store, clock):
    job = a_job(deadline=await later(manual_store, days(3)))
    await put(manual_store, job)
    assert await cancel(manual_store, [job.id], reason="a mistake") == {job.id}
    await clock.advance(days(1))
    await cancel_overdue(manual_store)
    assert await retry(manual_store, [job.id]) == {job.id}
    assert (await read(manual_store, job)).deadline == job.spec.deadline
    await clock.advance(Duration(days(2) - 1))
    await cancel_overdue(manual_store)
    assert (await read(manual_store, job)).status is Status.READY
    await clock.advance(seconds(2))
    await cancel_overdue(manual_store)
    assert "deadline" in (await read(manual_store, job)).reason


async def test_rows_for_deadlines_of_finished_jobs_are_deleted(manual_store, clock, console):
    """The table of deadlines does not grow with finished jobs."""
    await put(manual_store, *[a_job(deadline=await later(manual_store, days(300))) for _ in range(5)])
    held = await take(manual_store, await enter(manual_store, lease=days(9)))
    await report(manual_store, held)
    await clock.advance(HOUR)
    await cancel_overdue(manual_store)
    if console.dialect == "mysql":
        assert await console.run("SELECT * FROM holdfast_deadlines") in ([], ())
    assert await cancel_overdue(manual_store) == 0
