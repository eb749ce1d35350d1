"""Tenants and keys over HTTP: made, listed, changed, ended."""

import logging

import pytest

from holdfast.model.time import Duration, seconds
from tests.e2e.api.conftest import ADMIN, problem
from tests.support.clock import console
from tests.support.eventually import eventually

__all__ = ["console"]

KEY = {"name": "ci", "tenant": "acme", "scopes": ["read", "submit"]}
KEY_FIELDS = {"id", "tenant", "name", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at"}
TENANT_FIELDS = {"name", "weight", "rate", "rate_window", "backlog", "queue_backlog", "created_at"}


async def status(served, token, path="/v1/jobs", **options):
    client = await served.client(token, **options)
    return (await client.get(path)).status_code


class TestKeys:
    async def test_a_key_permits_its_scopes_for_its_own_tenant(self, served, admin):
        made = (await admin.post("/v1/keys", json=KEY)).json()
        client = await served.client(made["token"])

        job = (await client.post("/v1/jobs", json={"type": "send"})).json()
        assert job["tenant"] == "acme"
        assert [each["id"] for each in (await client.get("/v1/jobs")).json()["items"]] == [job["id"]]
        problem(await client.post(f"/v1/jobs/{job['id']}/cancel", json={}), 403, "forbidden")

    async def test_a_key_is_shown_once(self, admin):
        """T07: 256 random bits, the id in clear; T10: answers have the documented fields."""
        answer = await admin.post("/v1/keys", json=KEY)
        made = answer.json()
        listed = (await admin.get("/v1/keys")).json()["items"]

        prefix, key_id, secret = made["token"].split("_")
        assert (answer.status_code, prefix, key_id, len(bytes.fromhex(secret))) == (201, "hf", made["id"], 32)
        assert set(made) == KEY_FIELDS | {"token"}
        assert set(listed[0]) == KEY_FIELDS
        assert listed == [{name: value for name, value in made.items() if name != "token"}]
        assert answer.headers["cache-control"] == "no-store"

    async def test_creating_a_key_creates_its_tenant(self, admin):
        await admin.post("/v1/keys", json=KEY)

        assert [each["name"] for each in (await admin.get("/v1/tenants")).json()["items"]] == ["acme"]

    async def test_keys_are_listed_newest_first(self, admin):
        made = [(await admin.post("/v1/keys", json=KEY | {"tenant": f"t{n % 2}"})).json()["id"] for n in range(5)]

        found, cursor = [], None
        while True:
            page = (await admin.get("/v1/keys", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
            found += [each["id"] for each in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        of_one = (await admin.get("/v1/keys?tenant=t1")).json()["items"]

        assert sorted(found) == sorted(made)
        assert {each["id"] for each in of_one} == {made[1], made[3]}

    async def test_a_revoked_key_is_rejected_at_once_on_this_node(self, served, admin):
        made = (await admin.post("/v1/keys", json=KEY)).json()
        assert await status(served, made["token"]) == 200

        revoked = await admin.delete(f"/v1/keys/{made['id']}")

        assert revoked.json()["revoked_at"] is not None
        assert await status(served, made["token"]) == 401
        assert (await admin.delete(f"/v1/keys/{made['id']}")).json() == revoked.json()

    async def test_a_revoked_key_is_rejected_on_all_nodes_within_five_seconds(self, served, ticking, ticker):
        """T07: also for streams, which ask whether their caller is still good."""
        token = await served.key()
        caller = await ticking.api.service.auth.caller(_request(token))
        assert await status(ticking, token) == 200

        await served.engine.access.revoke_key(token.split("_")[1])
        ticker.advance(5)

        assert await status(ticking, token) == 401
        assert not await ticking.api.service.auth.is_still_valid(caller)

    async def test_nodes_cache_keys_for_some_seconds(self, served, ticking, ticker):
        token = await served.key()
        assert [await status(ticking, token) for _ in range(2)] == [200, 200]

        await served.engine.access.revoke_key(token.split("_")[1])
        ticker.advance(1)

        assert await status(ticking, token) == 200, "remembered for three seconds"

    async def test_unknown_key_ids_use_bounded_memory(self, ticking):
        """T08: of made-up keys a node remembers a bounded number."""
        ring = ticking.engine.access.key_cache
        for number in range(1_200):
            await ring.valid_key(f"{number:016x}")

        assert len(ring._invalid) == 1_000
        assert not ring._valid

    async def test_an_expired_key_is_rejected(self, served):
        token = await served.key(lifetime=Duration(1_000))

        async def dead():
            return await status(served, token) == 401

        await eventually(dead)

    async def test_a_key_is_cached_no_longer_than_it_is_valid(self, served, ticking, ticker):
        token = await served.key(lifetime=seconds(3_600))
        ring = ticking.engine.access.key_cache
        await ring.valid_key(token.split("_")[1])

        assert ring._valid[token.split("_")[1]].until <= ticker.now + 3

    async def test_the_last_use_of_a_key_is_recorded(self, served, admin):
        """T07: coarsely, and only that of the right secret."""
        token = await served.key()
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        assert await status(served, wrong) == 401
        assert (await admin.get("/v1/keys")).json()["items"][0]["last_used_at"] is None

        assert await status(served, token) == 200
        assert (await admin.get("/v1/keys")).json()["items"][0]["last_used_at"] is not None

    @pytest.mark.parametrize(
        "change, pointer",
        [
            ({"scopes": []}, "/scopes"),
            ({"scopes": ["root"]}, "/scopes/0"),
            ({"name": ""}, "/name"),
            ({"name": "a\nb"}, "/name"),
            ({"tenant": "a b"}, "/tenant"),
            ({"token": "hf_x"}, "/token"),
            ({"id": "1"}, "/id"),
            ({"digest": "x"}, "/digest"),
            ({"revoked_at": None}, "/revoked_at"),
            ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
            ({"expires_at": "2101-01-01T00:00:00"}, "/expires_at"),
            ({"expires_in": 0}, "/expires_in"),
            ({"expires_in": "20000d"}, "/expires_in"),
            ({"expires_in": 60, "expires_at": "2101-01-01T00:00:00Z"}, "/expires_in"),
        ],
    )
    async def test_an_invalid_key_request_is_rejected(self, admin, change, pointer):
        """T10, T41."""
        refused = problem(await admin.post("/v1/keys", json=KEY | change), 422, "invalid")

        assert refused["pointer"] == pointer
        assert (await admin.get("/v1/keys")).json()["items"] == []

    @pytest.mark.parametrize("key_id", ["0" * 16, "unknown", "%00", "a%20", "é", "x" * 500])
    async def test_an_unknown_key_cannot_be_revoked(self, admin, key_id):
        problem(await admin.delete(f"/v1/keys/{key_id}"), 404, "not_found")

    @pytest.mark.parametrize("cursor", ["x", "!!!!", "AAAA", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OSBhYQ"])
    async def test_a_forged_cursor_is_rejected(self, admin, cursor):
        """T02."""
        problem(await admin.get("/v1/keys", params={"cursor": cursor}), 422, "invalid")


class TestTenants:
    async def test_a_tenant_needs_only_a_name(self, admin):
        made = await admin.post("/v1/tenants", json={"name": "acme"})

        assert made.status_code == 201
        assert set(made.json()) == TENANT_FIELDS
        assert {name for name, value in made.json().items() if value is not None} == {"name", "created_at"}

    async def test_the_quotas_of_a_tenant_are_stored_and_changed(self, admin):
        given = {"name": "a/b", "weight": 3, "rate": 500, "rate_window": "1m", "backlog": 10_000, "queue_backlog": 0}
        made = (await admin.post("/v1/tenants", json=given)).json()
        changed = await admin.patch("/v1/tenants/a%2Fb", json={"weight": None, "rate_window": 10})

        assert {name: made[name] for name in given} == given | {"rate_window": 60.0}
        assert changed.json() == made | {"weight": None, "rate_window": 10.0}
        assert (await admin.get("/v1/tenants")).json() == {"items": [changed.json()], "next_cursor": None}

    async def test_a_tenant_cannot_be_created_twice(self, admin):
        await admin.post("/v1/tenants", json={"name": "acme", "weight": 2})

        problem(await admin.post("/v1/tenants", json={"name": "acme"}), 409, "conflict")

    @pytest.mark.parametrize("name", ["unknown", "a%20b", "%00", "é"])
    async def test_an_unknown_tenant_cannot_be_changed(self, admin, name):
        problem(await admin.patch(f"/v1/tenants/{name}", json={"weight": 2}), 404, "not_found")

    async def test_tenants_are_listed_by_name(self, admin):
        for name in ("c", "a", "b"):
            await admin.post("/v1/tenants", json={"name": name})

        first = (await admin.get("/v1/tenants?limit=2")).json()
        second = (await admin.get("/v1/tenants", params={"limit": 2, "cursor": first["next_cursor"]})).json()
        assert [each["name"] for each in first["items"] + second["items"]] == ["a", "b", "c"]
        assert second["next_cursor"] is None

    @pytest.mark.parametrize(
        "change, pointer",
        [
            ({"weight": 0}, "/weight"),
            ({"weight": 1.5}, "/weight"),
            ({"rate": 0}, "/rate"),
            ({"rate_window": "0.5s"}, "/rate_window"),
            ({"rate_window": "2d"}, "/rate_window"),
            ({"rate_window": "soon"}, "/rate_window"),
            ({"backlog": -1}, "/backlog"),
            ({"queue_backlog": 10**13}, "/queue_backlog"),
            ({"created_at": "2001-01-01T00:00:00Z"}, "/created_at"),
        ],
    )
    async def test_an_invalid_change_is_rejected(self, admin, change, pointer):
        """T10, T41."""
        await admin.post("/v1/tenants", json={"name": "acme"})

        assert problem(await admin.patch("/v1/tenants/acme", json=change), 422, "invalid")["pointer"] == pointer


async def test_the_secret_is_in_no_table_and_no_log(served, admin, console, caplog):
    """T07, T25: what a thief finds in the database or in the logs opens nothing."""
    caplog.set_level(logging.DEBUG)
    token = (await admin.post("/v1/keys", json=KEY)).json()["token"]
    assert await status(served, token) == 200
    assert await status(served, token[:-4] + "beef") == 401
    await admin.get("/v1/jobs?nonsense=1")

    tables = {
        "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table'",
        "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
        "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    }[console.dialect]
    dump = [await console.run(f"SELECT * FROM {table}") for (table,) in await console.run(tables)]
    said = repr(dump) + caplog.text + repr([vars(record) for record in caplog.records])

    secret = token.split("_")[2]
    assert repr(KEY["name"]) in said, "the dump has the key's row"
    for hidden in (secret, bytes.fromhex(secret).hex(), repr(bytes.fromhex(secret)), ADMIN):
        assert hidden not in said


def _request(token):
    from holdfast.api.asgi import request_from_scope

    head = {"type": "http", "method": "GET", "path": "/", "headers": [(b"authorization", f"Bearer {token}".encode())]}
    return request_from_scope(head, None)
