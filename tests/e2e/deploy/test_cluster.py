"""Installation as in `deploy/` on loopback: nginx, three nodes, three workers, and servers."""

import asyncio
from contextlib import aclosing

import httpx2
import pytest

from holdfast.client import AsyncClient, JobFailed
from tests.support.cluster import ADMIN_KEY, Cluster
from tests.support.eventually import eventually

pytestmark = [pytest.mark.databases("pgbouncer", "mysql"), pytest.mark.timeout(300)]

SUBMITTERS = 8
"""Concurrent submitters during the restarts."""


@pytest.fixture
def cluster(run, database_url, redis_server, tmp_path):
    run.server("nginx")
    with Cluster(database_url, redis_server.url, tmp_path) as started:
        yield started


async def test_all_nodes_can_be_restarted_one_by_one_under_load(cluster):
    """F05, S1, S21: no submission fails, no job is lost or starts twice; streams have events of all nodes."""
    async with AsyncClient(cluster.url, ADMIN_KEY) as client:
        await check_main_functions(cluster, client)
        accepted = await restart_under_load(cluster, client)

        async def all_finished():
            return cluster.ledger.per_key("end").keys() >= accepted.keys()

        await eventually(all_finished, within=120)
        starts = cluster.ledger.per_key("start")
        assert {key: starts[key] for key in accepted if starts[key] != 1} == {}
        for job_id in accepted.values():
            await client.wait(job_id, timeout="60s")


async def check_main_functions(cluster, client):
    """Use the main functions through the proxy."""
    async with httpx2.AsyncClient(base_url=cluster.url) as browser:
        assert "text/html" in (await browser.get("/")).headers["content-type"]
        assert (await browser.get("/readyz")).status_code == 200
        assert (await browser.get("/v1/jobs")).status_code == 401
    async with aclosing(client.events()) as events:
        first_event = asyncio.create_task(anext(aiter(events)))
        submitted = await client.submit("sink", {"key": "first"}, idempotency_key="first")
        assert (await client.submit("sink", {"key": "first"}, idempotency_key="first")).id == submitted.id
        assert await client.wait(submitted.id, timeout="60s") == "first"
        event = await asyncio.wait_for(first_event, 60)
        assert event.kind in {"job", "jobs", "worker"}
    receipts = await client.submit_many([{"type": "sink", "payload": {"key": f"batch-{n}"}} for n in range(50)])
    await asyncio.gather(*(client.wait(receipt.id, timeout="60s") for receipt in receipts))
    later = await client.submit("sink", {"key": "later"}, delay="1h")
    assert (await client.cancel(later.id, "not needed")).status == "cancelled"
    doomed = await client.submit("no.such.type", {"key": "doomed"}, max_attempts=1)
    assert (await client.get(doomed.id)).status == "ready"
    failing = await client.submit("sink", {"key": "failing", "action": "fail_times", "amount": 9}, max_attempts=1)
    with pytest.raises(JobFailed):
        await client.wait(failing.id, timeout="60s")
    assert (await client.replay([failing.id])).changed == 1
    with pytest.raises(JobFailed):
        await client.wait(failing.id, timeout="60s")
    assert cluster.ledger.count("start", "failing") == 2
    assert len(await client.workers()) == 3


async def restart_under_load(cluster, client):
    """Restart every node while jobs are submitted; return the keys and ids of the accepted ones."""
    accepted = {}
    stop = asyncio.Event()

    async def submit(submitter):
        number = 0
        while not stop.is_set():
            key = f"load-{submitter}-{number}"
            accepted[key] = (await client.submit("sink", {"key": key, "sleep": 0.05})).id
            number += 1
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        for submitter in range(SUBMITTERS):
            group.create_task(submit(submitter))
        await cluster.restart_all()
        stop.set()
    assert len(accepted) > SUBMITTERS
    return accepted
