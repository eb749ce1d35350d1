"""Limits on what runs, and pauses, over HTTP: set, shown, refused, and of administrators alone."""

import pytest

from tests.e2e.api.conftest import problem

NOBODYS = "2001-01-01T00:00:00Z"


async def test_a_queue_is_limited_and_shows_its_limit(admin):
    asked = {"max_running": 5, "rate": {"limit": 100, "per": "1m", "burst": 10}}
    set_ = (await admin.patch("/v1/queues/mail", json=asked)).json()
    rate = {"limit": 100, "per": 60.0, "burst": 10}
    assert (set_["max_running"], set_["running"], set_["rate"], set_["paused"]) == (5, 0, rate, False)

    (await admin.patch("/v1/queues/mail", json={"rate": None, "paused": True})).raise_for_status()
    (shown,) = (await admin.get("/v1/queues")).json()["items"]
    assert (shown["max_running"], shown["rate"], shown["paused"]) == (5, None, True)
    (limit,) = (await admin.get("/v1/limits", params={"kind": "queue"})).json()["items"]
    assert (limit["queue"], limit["max_running"], limit["used"], limit["room"]) == ("mail", 5, 0, 5)


async def test_tenants_and_keys_are_limited(served, admin):
    for name in ({"tenant": "acme"}, {"tenant": "acme", "concurrency_key": "customer/7 ü"}):
        made = (await admin.put("/v1/limits", json={**name, "max_running": 2})).json()
        assert made.items() >= {**name, "max_running": 2, "used": 0, "room": 2, "rate": None}.items()
        assert made["changed_by"].startswith("key:")
    assert [each["kind"] for each in (await admin.get("/v1/limits")).json()["items"]] == ["tenant", "key"]

    removed = (await admin.put("/v1/limits", json={"tenant": "acme"})).json()
    assert (removed["max_running"], removed["rate"], removed["room"]) == (None, None, None)
    assert (removed["changed_by"], removed["changed_at"] > made["changed_at"]) == (made["changed_by"], True)
    assert [each["kind"] for each in (await admin.get("/v1/limits")).json()["items"]] == ["key"]


async def test_types_and_tenants_are_paused_and_resumed(admin):
    rest = {"type": "render", "reason": "broken", "until": "2099-01-01T00:00:00Z"}
    made = (await admin.put("/v1/pauses", json=rest)).json()
    assert (made["kind"], made["name"], made["reason"], made["until"][:4]) == ("type", "render", "broken", "2099")
    (await admin.put("/v1/pauses", json={"tenant": "acme"})).raise_for_status()
    assert [each["name"] for each in (await admin.get("/v1/pauses")).json()["items"]] == ["render", "acme"]

    assert (await admin.delete("/v1/pauses", params={"type": "render"})).json() == made
    assert (await admin.delete("/v1/pauses", params={"type": "render"})).status_code == 204
    assert [each["name"] for each in (await admin.get("/v1/pauses")).json()["items"]] == ["acme"]


@pytest.mark.parametrize(
    "path, body, pointer",
    [
        ("/v1/limits", {"max_running": 1}, "/queue"),
        ("/v1/limits", {"queue": "a", "tenant": "b", "max_running": 1}, "/queue"),
        ("/v1/limits", {"concurrency_key": "k", "max_running": 1}, "/concurrency_key"),
        ("/v1/limits", {"queue": "a", "rate": {"limit": 0}}, "/rate/limit"),
        ("/v1/limits", {"queue": "a", "rate": {"limit": 1, "per": 0}}, "/rate/per"),
        ("/v1/pauses", {"reason": "no"}, "/type"),
        ("/v1/pauses", {"type": "a", "tenant": "b"}, "/type"),
        ("/v1/pauses", {"type": "a", "until": NOBODYS}, "/until"),
    ],
)
async def test_invalid_input_is_rejected_with_its_field(admin, path, body, pointer):
    assert problem(await admin.put(path, json=body), 422, "invalid")["pointer"] == pointer


async def test_only_administrators_set_limits(served):
    client = await served.client(await served.key("acme"))
    for answer in (
        await client.get("/v1/limits"),
        await client.put("/v1/limits", json={"queue": "a"}),
        await client.get("/v1/pauses"),
        await client.put("/v1/pauses", json={"type": "a"}),
        await client.delete("/v1/pauses", params={"type": "a"}),
    ):
        problem(answer, 403, "forbidden")
