"""The guide to backups: what a restored database does with the jobs of the time after the backup."""

import sqlite3

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import NotFound
from holdfast.model.job import JobSpec
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.state import Status
from holdfast.model.time import seconds
from tests.support.builders import LEASE, a_worker, reap_once

pytestmark = pytest.mark.databases("sqlite")
QUEUE = "restored"


def a_spec(name: str, **options) -> JobSpec:
    return JobSpec("send", {"name": name}, queue=QUEUE, idempotency_key=name, **options)


def copy(source: str, target: str) -> None:
    """Copy a database as the guide says, into an existing file or a new one."""
    with sqlite3.connect(source) as database, sqlite3.connect(target) as other:
        database.backup(other)


async def test_a_restored_database_runs_unfinished_jobs_again_and_rejects_workers_of_the_past(
    manual_store, clock, database_url, tmp_path
):
    """S7: a worker that survived the restore cannot renew its lease or settle a job."""
    engine = await Engine.open(manual_store)
    worker = a_worker()
    await engine.workers.register(worker, LEASE)
    claims = engine.attempts.claims(worker.id, [QUEUE])
    first = await engine.jobs.submit(a_spec("running", priority=1))
    second = await engine.jobs.submit(a_spec("waiting"))
    (running,) = await claims.claim(1)
    assert running.id == first.id

    file, backup = database_url.removeprefix("sqlite:///"), str(tmp_path / "backup.db")
    copy(file, backup)
    claims.on_ready([])
    (waiting,) = await claims.claim(1)
    assert await engine.attempts.settle(running, Succeeded())
    assert await engine.attempts.settle(waiting, Failed(Failure("E", "m"), retryable=False))
    lost = await engine.jobs.submit(a_spec("submitted later"))
    copy(backup, file)
    await clock.advance(seconds(3_600))

    with pytest.raises(NotFound):
        await engine.jobs.get(lost.id)
    assert (await engine.jobs.get(second.id)).status is Status.READY
    assert (await engine.jobs.get(first.id)).status is Status.RUNNING
    assert not await engine.workers.renew(worker.id, LEASE)
    assert await reap_once(manual_store) == 1
    reaped = await engine.jobs.get(first.id)
    assert (reaped.status, reaped.attempts) == (Status.READY, 1)
    assert not await engine.attempts.settle(running, Succeeded())

    again = await engine.jobs.submit(a_spec("submitted later"))
    assert (again.replayed, again.id != lost.id) == (False, True)
    assert (await engine.jobs.submit(a_spec("waiting"))).id == second.id
