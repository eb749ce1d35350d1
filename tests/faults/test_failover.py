"""F14: a failover to a server that lacks the latest writes, as of an asynchronous standby."""

import msgspec

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.errors import Unavailable
from holdfast.model.job import JobSpec
from holdfast.model.state import Status
from holdfast.policy.lifecycle import attempt_log
from tests.support import nodes
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.outages import Client, all_ended

JOBS = 5


async def test_jobs_whose_outcomes_a_failover_lost_run_again(private_server, tmp_path):
    """S3, L3: the new primary believes that a live worker runs them; the worker finds out and has them repeated."""
    url = await private_server.new_database()
    ledger = Ledger(tmp_path / "ledger.db").create()
    engine = await open_engine(msgspec.structs.replace(Settings(), database_url=url))
    client = Client(engine)
    try:
        with nodes.node(url, tmp_path, ledger=ledger.path, queues=f"default:{JOBS}", lease=60.0) as node:
            for number in range(JOBS):
                key = f"job-{number}"
                payload = {"key": key, "sleep": 600, "held": True}
                await client.submit(JobSpec("sink", payload, idempotency_key=key, max_attempts=3))
            await eventually(lambda: has_started(ledger, JOBS))

            private_server.shut_down()
            standby = private_server.copy_data(tmp_path / "standby")
            private_server.start()
            for number in range(JOBS):
                ledger.write("go", job="", key=f"job-{number}", attempt=0, fence=0, pid=0)
            await all_ended(engine, client.accepted.values())
            # All slots are in use, so that no call of the worker fails during the failover.
            for number in range(JOBS):
                await engine.jobs.submit(JobSpec("sink", {"key": f"later-{number}", "sleep": 600}))
            await eventually(lambda: has_started(ledger, 2 * JOBS))
            # The worker repeats a report whose response the crash cuts off, and then no outcome is lost.
            await eventually(lambda: private_server.is_idle(url))

            private_server.crash()
            private_server.restore_data(standby)
            private_server.start()
            await all_ended(engine, client.accepted.values())
            assert node.alive()
            jobs = await eventually(lambda: read_jobs(engine, client))
        assert {(job.status, job.attempts) for job in jobs} == {(Status.SUCCEEDED, 1)}
        records = [record for job in jobs for record in attempt_log(job)]
        assert {(record.outcome, record.error.kind) for record in records} == {("unavailable", "ReportLost")}
        assert ledger.count("start") == 3 * JOBS
    finally:
        await engine.aclose()


async def read_jobs(engine, client):
    """Return the submitted jobs; None if the server has closed the connection."""
    try:
        return await engine.store.read(lambda tx: tx.get(list(client.accepted.values())))
    except Unavailable:
        return None


async def has_started(ledger, jobs):
    return ledger.count("start") >= jobs
