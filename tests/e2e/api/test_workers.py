"""Types of jobs and workers over HTTP: what they tell, to whom, and how one is asked to end."""

import pytest

from holdfast.model.ids import new_worker_id, worker_name
from holdfast.model.job_type import MAX_SCHEMA_BYTES, JobType
from holdfast.model.time import seconds
from holdfast.wire import worker_protocol_codec as wire
from tests.e2e.api.conftest import problem
from tests.support.builders import a_worker

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


async def of_everybody(served, **changes):
    worker = a_worker(types=("send", "named"), queues="mail:3", **changes)
    about = JobType("send", '{"title": "of all"}', "mail", (), 3, seconds(90), 5, 2)
    await served.engine.workers.register(worker, seconds(60), [about])
    return worker_name(worker.id)


async def of_acme(served, *, key=None, **register):
    http = await served.client(key or await served.key("acme", "worker"))
    asked = {"limit": 0, "queues": ["default"], "types": ["send"], "lease": 60, "register": register}
    return http, await http.post("/v1/leases", json=asked)


async def test_types_are_listed_as_their_workers_describe_them(served):
    await of_everybody(served)
    reader = await served.client(await served.key("acme", "read"))
    found = (await reader.get("/v1/types")).json()
    named, send = found["items"]
    assert found["next_cursor"] is None
    seen = send.pop("last_seen")
    assert seen.endswith("Z") or "+" in seen
    assert send == {
        "type": "send", "tenant": None, "schema": {"title": "of all"}, "queue": "mail", "queues": ["mail"],
        "workers": 1, "max_attempts": 3, "timeout": 90.0, "priority": 5, "cost": 2,
    }  # fmt: skip
    assert (named["type"], named["schema"], named["workers"]) == ("named", None, 1)


@pytest.mark.databases("sqlite")
async def test_types_of_one_tenants_workers_are_visible_only_to_it(served):
    """T: another tenant sees neither its types nor its word for a type that everybody has; nor can it ask for them."""
    await of_everybody(served)
    _, answer = await of_acme(served, described=[{"type": "send", "schema": SCHEMA, "timeout": "5m"}])
    assert answer.status_code == 200, answer.text
    acme, globex = [await served.client(await served.key(tenant, "read")) for tenant in ("acme", "globex")]

    async def told(client, **asked):
        items = (await client.get("/v1/types", params=asked)).json()["items"]
        return [(each["tenant"], each["schema"], each["timeout"]) for each in items if each["type"] == "send"]

    of_all, own = (None, {"title": "of all"}, 90.0), ("acme", SCHEMA, 300.0)
    assert await told(acme) == [own]
    assert await told(globex) == [of_all]
    admin = await served.client()
    assert await told(admin) == [of_all, own]
    assert (await told(admin, tenant="acme"), await told(admin, tenant="globex")) == ([own], [of_all])
    problem(await globex.get("/v1/types", params={"tenant": "acme"}), 403, "forbidden")
    assert problem(await acme.get("/v1/types", params={"cursor": "%%"}), 422, "invalid")["pointer"] == "/cursor"
    page = (await admin.get("/v1/types", params={"limit": 2})).json()
    rest = (await admin.get("/v1/types", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    assert [each["type"] for each in page["items"] + rest["items"]] == ["named", "send", "send"]


@pytest.mark.databases("sqlite")
async def test_a_worker_with_too_many_types_is_rejected(served):
    """F35: the types of all workers are read to explain a job."""
    names = [f"type-{number}" for number in range(1_001)]
    _, answer = await of_acme(served, types=names)
    assert problem(answer, 422, "invalid")["pointer"] == "/register/types"
    assert (await of_acme(served, types=names[1:]))[1].status_code == 200


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize(
    "described, pointer",
    [
        ([{"type": "send", "schema": {"x": "y" * MAX_SCHEMA_BYTES}}], "/register/described/0/schema"),
        ([{"type": "send"}, {"type": "b", "timeout": "soon"}], "/register/described/1/timeout"),
        ([{"type": "send", "schema": "text"}], "/register/described/0/schema"),
        ([{"type": ""}], "/register/described/0/type"),
    ],
)
async def test_an_invalid_type_description_is_rejected_with_its_field(served, described, pointer):
    _, answer = await of_acme(served, described=described)
    assert problem(answer, 422, "invalid")["pointer"] == pointer
    assert await served.engine.workers.all() == []


async def test_a_worker_and_its_node_are_drained(served):
    one, two, other = [await of_everybody(served, node=node) for node in ("n", "n", "m")]
    admin = await served.client()
    for _ in range(2):
        answer = await admin.post(f"/v1/workers/{one}/drain")
        assert answer.status_code == 200, answer.text
        items = answer.json()["items"]
        assert [(each["id"], each["draining"], each["actions"]) for each in items] == [(one, True, []), (two, True, [])]
    await served.engine.workers.renew(wire.worker_id(one), seconds(60), memory=7)
    found = {each["id"]: each for each in (await admin.get("/v1/workers")).json()["items"]}
    shown = ("draining", "actions", "memory", "node")
    assert {name: tuple(each[field] for field in shown) for name, each in found.items()} == {
        one: (True, [], 7, "n"), two: (True, [], None, "n"), other: (False, ["drain"], None, "m")
    }  # fmt: skip
    for unknown in (worker_name(new_worker_id()), "w-1", "unknown"):
        problem(await admin.post(f"/v1/workers/{unknown}/drain"), 404, "not_found")


@pytest.mark.databases("sqlite")
async def test_only_administrators_drain_workers_and_see_their_hosts(served):
    worker = await of_everybody(served, node="n")
    http = await served.client(await served.key("acme", "read", "worker", "submit", "cancel"))
    problem(await http.post(f"/v1/workers/{worker}/drain"), 403, "forbidden")
    (seen,) = (await http.get("/v1/workers")).json()["items"]
    assert [seen[name] for name in ("host", "pid", "node", "memory", "draining", "actions")] == [
        None, None, None, None, False, []
    ]  # fmt: skip


@pytest.mark.databases("sqlite")
async def test_a_draining_remote_worker_gets_no_jobs_but_may_settle(served):
    """P77"""
    http, answer = await of_acme(served)
    worker = answer.json()["worker"]
    reader = await served.client(await served.key("acme", "submit"))
    for _ in range(2):
        await reader.post("/v1/jobs", json={"type": "send"})
    asked = {"worker": worker, "queues": ["default"], "limit": 1}
    (job,) = (await http.post("/v1/leases", json=asked)).json()["jobs"]
    await (await served.client()).post(f"/v1/workers/{worker}/drain")
    assert (await http.post("/v1/leases", json=asked)).json() == {"worker": worker, "jobs": [], "draining": True}
    renewed = await http.post("/v1/leases/renew", json={"worker": worker, "memory": 2**30})
    assert renewed.json() == {"lost": [], "paused": [], "draining": True}
    (row,) = await served.engine.workers.all()
    assert (row.memory, row.draining) == (2**30, True)
    outcome = {"id": job["id"], "fence": job["fence"], "outcome": "succeeded"}
    settled = await http.post("/v1/leases/settle", json={"worker": worker, "outcomes": [outcome]})
    assert settled.json() == {"settled": [job["id"]], "refused": []}
    assert (await http.post("/v1/leases/depart", json={"worker": worker})).json() == {"departed": True}
