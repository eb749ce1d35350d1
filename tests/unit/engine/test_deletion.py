"""Deleted jobs leave nothing behind in any table."""

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.job import HeldJob, JobSpec
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from tests.support.builders import a_worker

MARKER = "s3cret-of-a-customer"
TABLES = {
    "postgres": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
}


async def tables_with(console, text):
    """Return the names of the tables that contain a text in any column."""
    found = set()
    for (table,) in await console.run(TABLES[console.dialect]):
        for row in await console.run(f"SELECT * FROM {table}"):
            if any(text.encode() in (value if isinstance(value, bytes) else str(value).encode()) for value in row):
                found.add(table)
    return found


@pytest.mark.parametrize("end", ["waiting", "succeeded", "dead"])
async def test_a_deleted_job_leaves_its_payload_in_no_table(store, console, end):
    """T43: neither its payload nor its steps, progress, result, errors or events. Its idempotency key stays."""
    engine = await Engine.open(store)
    spec = JobSpec("send", {"card": MARKER}, queue="deleted", max_attempts=1, tags=(MARKER,), idempotency_key="order-7")
    receipt = await engine.jobs.submit(spec)
    if end != "waiting":
        worker = a_worker()
        await engine.workers.register(worker, seconds(60))
        (job,) = await engine.attempts.claims(worker.id, ["deleted"]).claim(1)
        held = HeldJob(job.id, job.fence, worker.id)
        assert await engine.attempts.record_step(held, Step("charge", StepState.DONE, f'"{MARKER}"'.encode()))
        assert await engine.attempts.save_progress(held, f'{{"message": "{MARKER}"}}'.encode())
        failed = Failed(Failure("Declined", MARKER, f"line of {MARKER}"))
        assert await engine.attempts.settle(job, Succeeded(f'"{MARKER}"'.encode()) if end == "succeeded" else failed)
    assert await tables_with(console, MARKER)
    await engine.jobs.apply("delete", receipt.id, tenant=None)
    assert await tables_with(console, MARKER) == set()
