"""Default bounds of tenants: one tenant cannot use up an installation, and others are not affected."""

import pytest_asyncio

from holdfast.config import Settings
from holdfast.model.job import JobSpec
from tests.e2e.api.conftest import ADMIN, problem


@pytest_asyncio.fixture
async def settings(database_url):
    return Settings(database_url=database_url, admin_key=ADMIN, tenant_queues=3, tenant_types=3, tenant_workers=2)


async def test_a_tenant_may_use_a_bounded_number_of_queues_and_types(served):
    """F35: a tenant with 60,000 queues made the lists of everybody slow."""
    client, other = await served.client(await served.key("acme")), await served.client(await served.key("other"))
    for name in ("a", "b", "c", "a"):
        assert (await client.post("/v1/jobs", json={"type": name, "queue": name})).status_code == 201
    rejected = problem(await client.post("/v1/jobs", json={"type": "a", "queue": "d"}), 422, "over_limit")
    assert rejected["pointer"] == "/queue"
    assert "HOLDFAST_TENANT_QUEUES" in rejected["detail"]
    jobs = [{"type": "a", "queue": "a"}, {"type": "d", "queue": "a"}]
    problem(await client.post("/v1/jobs/batch", json={"jobs": jobs}), 422, "over_limit")
    assert (await other.post("/v1/jobs", json={"type": "d", "queue": "d"})).status_code == 201


async def test_bounds_count_jobs_that_were_there_before_the_node_started(served):
    for name in ("a", "b", "c"):
        await served.engine.jobs.submit(JobSpec("t", {}, tenant="acme", queue=name))
    await served.api.service.tenants.refresh()
    client = await served.client(await served.key("acme"))
    problem(await client.post("/v1/jobs", json={"type": "t", "queue": "d"}), 422, "over_limit")
    assert (await client.post("/v1/jobs", json={"type": "t", "queue": "a"})).status_code == 201


async def test_a_tenant_may_register_a_bounded_number_of_workers(served):
    http, other = await served.client(await served.key("acme", "worker")), await served.client()
    register = {"limit": 0, "lease": 60}
    for _ in range(2):
        assert (await http.post("/v1/leases", json=register)).status_code == 200
    problem(await http.post("/v1/leases", json=register), 422, "over_limit")
    assert (await other.post("/v1/leases", json=register)).status_code == 200
