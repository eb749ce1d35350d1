"""An `admin` key of a tenant administers that tenant, and nothing else of the installation."""

import pytest

from tests.e2e.api.conftest import problem

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
async def acme(served):
    """Client of the administrator of acme; umbrella is another tenant."""
    await served.key("umbrella", "read")
    return await served.client(await served.key("acme", "admin"))


async def test_it_sees_its_own_tenant_and_keys_only(served, acme):
    """T38, T01."""
    assert [tenant["name"] for tenant in (await acme.get("/v1/tenants")).json()["items"]] == ["acme"]
    assert {key["tenant"] for key in (await acme.get("/v1/keys")).json()["items"]} == {"acme"}
    problem(await acme.get("/v1/keys?tenant=umbrella"), 403, "forbidden")


async def test_it_creates_and_revokes_keys_of_its_own_tenant(served, acme):
    """T38."""
    made = (await acme.post("/v1/keys", json={"name": "ci", "scopes": ["submit", "admin"]})).json()
    assert made["tenant"] == "acme"
    deputy = await served.client(made["token"])
    assert [tenant["name"] for tenant in (await deputy.get("/v1/tenants")).json()["items"]] == ["acme"]
    assert (await acme.delete(f"/v1/keys/{made['id']}")).json()["revoked_at"]
    assert (await deputy.get("/v1/me")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {"tenant": "default", "scopes": ["admin"]},
        {"tenant": "umbrella", "scopes": ["read"]},
        {"scopes": ["metrics"]},
        {"scopes": ["admin", "metrics"]},
    ],
)
async def test_it_grants_nothing_beyond_its_tenant(acme, body):
    """T09, T38: no escalation by a new key."""
    problem(await acme.post("/v1/keys", json={"name": "more", **body}), 403, "forbidden")


async def test_a_key_of_another_tenant_looks_as_if_it_did_not_exist(served, acme):
    """T01."""
    admin = await served.client()
    foreign = (await admin.get("/v1/keys?tenant=umbrella")).json()["items"][0]["id"]
    found = problem(await acme.delete(f"/v1/keys/{foreign}"), 404, "not_found")
    missing = problem(await acme.delete(f"/v1/keys/{'0' * 16}"), 404, "not_found")
    assert found["detail"].replace(foreign, "") == missing["detail"].replace("0" * 16, "")
    assert (await admin.get("/v1/keys?tenant=umbrella")).json()["items"][0]["revoked_at"] is None


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/v1/tenants", {"name": "new"}),
        ("PATCH", "/v1/tenants/acme", {"weight": 1_000}),
        ("PUT", "/v1/limits", {"tenant": "acme", "max_running": 1_000}),
        ("PUT", "/v1/pauses", {"tenant": "umbrella"}),
        ("DELETE", "/v1/pauses?tenant=acme", None),
        ("PATCH", "/v1/queues/default", {"paused": True}),
        ("POST", "/v1/workers/w-0000000000000001/drain", None),
        ("GET", "/v1/analytics/fairness", None),
        ("GET", "/metrics", None),
        ("GET", "/v1/tenants/umbrella/webhook-secret", None),
    ],
)
async def test_it_changes_and_sees_nothing_of_the_installation(acme, method, path, body):
    """T38: neither its own quotas nor what all tenants share."""
    problem(await acme.request(method, path, json=body), 403, "forbidden")


async def test_it_may_do_what_its_tenant_may_do(acme):
    job = (await acme.post("/v1/jobs", json={"type": "send"})).json()
    assert job["tenant"] == "acme"
    assert "cancel" in (await acme.get(f"/v1/jobs/{job['id']}")).json()["actions"]
    assert (await acme.post("/v1/tenants/acme/webhook-secret")).status_code == 201
    problem(await acme.get("/v1/jobs?tenant=umbrella"), 403, "forbidden")


async def test_the_jobs_of_other_tenants_stay_hidden(served, acme):
    """T01."""
    umbrella = await served.client(await served.key("umbrella", "submit"))
    job = (await umbrella.post("/v1/jobs", json={"type": "send"})).json()
    problem(await acme.get(f"/v1/jobs/{job['id']}"), 404, "not_found")
    assert (await acme.get("/v1/jobs")).json()["items"] == []


async def test_a_token_of_a_tenant_administrator_has_no_scope_of_the_installation(acme):
    """T09."""
    problem(await acme.post("/v1/tokens", json={"scopes": ["metrics"]}), 403, "forbidden")
