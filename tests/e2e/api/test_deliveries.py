"""Breakers, secrets of webhooks and the demo, over HTTP."""

import base64

import msgspec
import pytest

from holdfast.compose import build_api
from holdfast.engine.changes import query_cache
from holdfast.engine.changes.rollups import update_rollups
from holdfast.model.job import JobFilter, Page
from holdfast.model.lane import Lane
from holdfast.policy.demo import TENANTS, TYPES
from tests.e2e.api.conftest import problem
from tests.support.builders import enter, report, take

pytestmark = pytest.mark.databases("sqlite")  # what the databases do is told by the conformance tests

AT = "https://example.com:443"


async def test_breakers_are_visible_only_to_their_tenant(served):
    for tenant, host, times in (("acme", "a.example", 5), ("acme", "b.example", 1), ("globex", "a.example", 2)):
        for _ in range(times):
            await served.engine.deliveries.record_failure(tenant, f"https://{host}:443", "HTTP 503", probe=False)
    admin, acme = await served.client(), await served.client(await served.key("acme", "read"))

    mine = (await acme.get("/v1/breakers")).json()["items"]
    assert [(each["destination"], each["state"], each["failures"], each["error"]) for each in mine] == [
        ("https://a.example:443", "open", 5, "HTTP 503"),
        ("https://b.example:443", "closed", 1, "HTTP 503"),
    ]
    assert mine[0]["until"] > mine[0]["changed_at"]
    assert mine[1]["until"] is None
    problem(await acme.get("/v1/breakers?tenant=globex"), 403, "forbidden")
    assert len((await admin.get("/v1/breakers")).json()["items"]) == 3
    assert len((await admin.get("/v1/breakers?tenant=globex")).json()["items"]) == 1


async def test_breakers_are_paged(served):
    for n in range(5):
        await served.engine.deliveries.record_failure("acme", f"https://h{n}.example:443", "x", probe=False)
    admin = await served.client()
    found, cursor = [], ""
    while cursor is not None:
        page = (await admin.get(f"/v1/breakers?limit=2{cursor and '&cursor='}{cursor}")).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert [each["destination"] for each in found] == [f"https://h{n}.example:443" for n in range(5)]
    for bad in ("!", "AAAA", "%00", "a" * 900):
        problem(await admin.get(f"/v1/breakers?cursor={bad}"), 422, "invalid")


async def test_breakers_are_counted_in_the_metrics(served):
    for _ in range(5):
        await served.engine.deliveries.record_failure("acme", AT, "x", probe=False)
    page = (await (await served.client()).get("/metrics")).text
    assert 'holdfast_breakers{state="open"} 1.0' in page
    assert 'holdfast_breakers{state="half_open"} 0.0' in page


async def test_a_secret_is_shown_once_and_rotated_with_an_overlap(served):
    """T15, T25."""
    admin = await served.client()
    path = "/v1/tenants/acme/webhook-secret"
    problem(await admin.get(path), 404, "not_found")
    first = await admin.post(path)
    assert first.status_code == 201
    secret = first.json()["secret"]
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert (await served.engine.deliveries.signing_keys("acme"))[0] == base64.b64decode(secret[6:])
    second = (await admin.post(f"{path}?overlap=1h")).json()
    assert second["secret"] != secret
    assert second["previous_until"] > second["created_at"]

    shown = await admin.get(path)
    assert shown.json() == {key: second[key] for key in ("tenant", "created_at", "previous_until")}
    assert secret not in shown.text
    assert second["secret"] not in (await admin.get("/v1/tenants")).text
    assert len(await served.engine.deliveries.signing_keys("acme")) == 2
    for _ in range(2):  # idempotent
        assert (await admin.delete(path)).status_code == 204
    problem(await admin.get(path), 404, "not_found")
    problem(await admin.delete("/v1/tenants/acem/webhook-secret"), 404, "not_found")


async def test_only_administrators_manage_secrets_and_invalid_overlaps_are_rejected(served):
    path = "/v1/tenants/acme/webhook-secret"
    client = await served.client(await served.key("acme", "submit", "read", "cancel", "worker"))
    for call in (client.get, client.post, client.delete):
        problem(await call(path), 403, "forbidden")
    admin = await served.client()
    for overlap in ("31d", "-1", "soon"):
        assert problem(await admin.post(f"{path}?overlap={overlap}"), 422, "invalid")["pointer"] == "/overlap"
    problem(await admin.post("/v1/tenants/no%20name/webhook-secret"), 404, "not_found")


async def succeeded(client):
    """Return the number of succeeded jobs according to the counts and to the statistics of an hour."""
    counts, summary = await client.get("/v1/stats"), await client.get("/v1/analytics")
    return counts.json()["statuses"]["succeeded"], summary.json()["totals"]["succeeded"]


async def test_the_demo_is_seeded_and_cleared_and_touches_nothing_else(settings, engine, served, monkeypatch):
    """T34: only in demo mode, only by administrators. Jobs are cleared with their statistics."""
    monkeypatch.setattr(query_cache, "CACHE_S", -1.0)
    monkeypatch.setattr(query_cache, "COST_FACTOR", 0)
    served.api = build_api(msgspec.structs.replace(settings, demo=True), engine)
    admin = await served.client()
    await admin.post("/v1/jobs", json={"type": "mine", "tags": ["keep"]})
    problem(await (await served.client(await served.key("acme"))).post("/v1/demo/seed"), 403, "forbidden")

    answer = await admin.post("/v1/demo/seed?jobs=150")
    assert (answer.status_code, answer.json()["jobs"]) == (201, 150)
    jobs = await engine.jobs.find(JobFilter(tag="demo"), Page(1_000))
    assert len(jobs) == 150
    assert {job.tenant for job in jobs} == set(TENANTS)
    assert {(job.type, job.queue) for job in jobs} == set(TYPES.items())
    assert {job.status.value for job in jobs} == {"ready", "scheduled"}
    assert len({job.priority for job in jobs}) > 1
    assert {each["name"] for each in (await admin.get("/v1/tenants")).json()["items"]} >= set(TENANTS)
    problem(await admin.post("/v1/demo/seed?jobs=10001"), 422, "invalid")

    store = engine.store
    worker = await enter(store)
    held = await take(store, worker, *{Lane(job.queue, job.tenant, job.priority) for job in jobs}, limit=60)
    await report(store, held[:40])
    await update_rollups(store)
    await report(store, held[40:50])
    assert await succeeded(admin) == (50, 50)

    assert (await admin.post("/v1/demo/clear")).json() == {"jobs": 150}
    assert await succeeded(admin) == (0, 0)
    stats = (await admin.get("/v1/stats")).json()
    assert {name: count for name, count in stats["statuses"].items() if count} == {"ready": 1}
    assert [each["name"] for each in stats["types"]] == ["mine"]
    assert [each["name"] for each in stats["queues"]] == ["default"]
    assert [job.type for job in await engine.jobs.find(JobFilter(), Page(10))] == ["mine"]
    assert (await admin.post("/v1/demo/clear")).json() == {"jobs": 0}
