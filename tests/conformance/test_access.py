"""Tenants and API keys on every database."""

import asyncio
from hashlib import sha256

import pytest

from holdfast.model.access import KeyPosition, NewApiKey, Quotas, Scope
from holdfast.model.time import Duration, Instant, seconds
from tests.support.builders import roll_back
from tests.support.clock import START

FULL = Quotas(weight=5, rate=1_000_000_000, rate_window=seconds(60), backlog=10_000_000_000, queue_backlog=0)


def a_key(key_id="aa11", **changes):
    given = {
        "tenant": "acme",
        "name": "ci – ключ ✓",
        "digest": sha256(b"s").digest(),
        "scopes": frozenset({Scope.READ}),
    }
    return NewApiKey(id=key_id, **(given | changes))


async def add(store, *keys):
    for key in keys:
        await store.run(lambda tx, key=key: tx.add_key(key))


async def key(store, key_id="aa11"):
    found = await store.single(lambda tx: tx.key(key_id))
    return found and found[0]


class TestTenants:
    async def test_all_fields_of_a_tenant_are_stored(self, manual_store):
        assert await manual_store.run(lambda tx: tx.add_tenant("acme", FULL))

        found = await manual_store.single(lambda tx: tx.tenant("acme"))
        assert (found.name, found.quotas, found.created_at) == ("acme", FULL, START)

    async def test_all_quotas_are_optional(self, manual_store):
        await manual_store.run(lambda tx: tx.add_tenant("acme", Quotas()))

        assert (await manual_store.single(lambda tx: tx.tenant("acme"))).quotas == Quotas()

    async def test_adding_an_existing_tenant_changes_nothing(self, manual_store):
        await manual_store.run(lambda tx: tx.add_tenant("acme", FULL))

        assert not await manual_store.run(lambda tx: tx.add_tenant("acme", Quotas(weight=9)))
        assert (await manual_store.single(lambda tx: tx.tenant("acme"))).quotas == FULL

    async def test_one_of_many_concurrent_inserts_of_a_tenant_succeeds(self, manual_store):
        answers = await asyncio.gather(
            *[manual_store.run(lambda tx, n=n: tx.add_tenant("acme", Quotas(weight=n))) for n in range(1, 9)]
        )

        assert answers.count(True) == 1

    @pytest.mark.parametrize("field", Quotas._fields)
    async def test_a_change_updates_only_the_given_fields(self, manual_store, field):
        await manual_store.run(lambda tx: tx.add_tenant("acme", FULL))

        assert await manual_store.run(lambda tx: tx.change_tenant("acme", {field: 7}))
        assert (await manual_store.single(lambda tx: tx.tenant("acme"))).quotas == FULL._replace(**{field: 7})

        assert await manual_store.run(lambda tx: tx.change_tenant("acme", {field: None}))
        assert (await manual_store.single(lambda tx: tx.tenant("acme"))).quotas == FULL._replace(**{field: None})

    async def test_a_change_to_the_same_value_succeeds(self, manual_store):
        await manual_store.run(lambda tx: tx.add_tenant("acme", FULL))

        assert await manual_store.run(lambda tx: tx.change_tenant("acme", {"weight": 5}))
        assert await manual_store.run(lambda tx: tx.change_tenant("acme", {}))

    async def test_an_unknown_tenant_cannot_be_changed(self, manual_store):
        assert not await manual_store.run(lambda tx: tx.change_tenant("acme", {"weight": 5}))
        assert await manual_store.single(lambda tx: tx.tenant("acme")) is None

    async def test_tenants_are_listed_by_name_byte_by_byte(self, manual_store):
        for name in ("b", "B", "a/1", "_x", "a"):
            await manual_store.run(lambda tx, name=name: tx.add_tenant(name, Quotas()))

        first = await manual_store.single(lambda tx: tx.tenants("", 3))
        second = await manual_store.single(lambda tx: tx.tenants(first[-1].name, 3))
        assert [tenant.name for tenant in first + second] == ["B", "_x", "a", "a/1", "b"]


class TestKeys:
    async def test_all_fields_of_a_key_are_stored(self, manual_store):
        new = a_key(scopes=frozenset(Scope), digest=bytes(range(32)))
        await add(manual_store, new)

        found, at = await manual_store.single(lambda tx: tx.key("aa11"))
        assert found[:5] == new[:5]
        assert (found.created_at, found.expires_at, found.revoked_at, found.last_used_at) == (START, None, None, None)
        assert at == START

    async def test_a_key_expires_at_an_instant_or_after_a_duration(self, manual_store):
        at = Instant(START + 5)
        await add(
            manual_store,
            a_key("aa", expires_at=at),
            a_key("bb", lifetime=seconds(9)),
            a_key("cc", expires_at=at, lifetime=seconds(9)),
        )

        assert [(await key(manual_store, key_id)).expires_at - START for key_id in ("aa", "bb", "cc")] == [
            5,
            9_000_000,
            5,
        ]

    async def test_an_unknown_key_is_not_found(self, manual_store):
        assert await manual_store.single(lambda tx: tx.key("unknown")) is None
        assert not await manual_store.run(lambda tx: tx.revoke_key("unknown"))

    async def test_key_ids_are_compared_byte_by_byte(self, manual_store):
        await add(manual_store, a_key("aa11"))

        assert await key(manual_store, "AA11") is None

    async def test_the_first_revocation_of_a_key_counts(self, manual_store, clock):
        await add(manual_store, a_key())
        assert await manual_store.run(lambda tx: tx.revoke_key("aa11"))
        await clock.advance(seconds(1))
        assert await manual_store.run(lambda tx: tx.revoke_key("aa11"))

        assert (await key(manual_store)).revoked_at == START

    async def test_a_revocation_that_is_rolled_back_has_no_effect(self, manual_store):
        await add(manual_store, a_key())

        await roll_back(manual_store, lambda tx: tx.revoke_key("aa11"))
        assert (await key(manual_store)).revoked_at is None

    async def test_the_last_use_of_a_key_is_updated_coarsely(self, manual_store, clock):
        await add(manual_store, a_key())
        noted = []
        for _ in range(4):
            await manual_store.single(lambda tx: tx.record_key_use("aa11", seconds(20)))
            noted.append((await key(manual_store)).last_used_at - START)
            await clock.advance(seconds(10))

        assert noted == [0, 0, 20_000_000, 20_000_000]

    async def test_keys_are_listed_newest_first(self, manual_store, clock):
        for number, tenant in enumerate(["acme", "blue", "acme", "blue"]):
            await add(manual_store, a_key(f"a{number}", tenant=tenant), a_key(f"b{number}", tenant=tenant))
            await clock.advance(Duration(1))

        listed = []
        place = None
        while page := await manual_store.single(lambda tx, place=place: tx.keys(None, place, 3)):
            listed += [api_key.id for api_key in page]
            place = KeyPosition(page[-1].created_at, page[-1].id)
        of_acme = await manual_store.single(lambda tx: tx.keys("acme", None, 10))

        assert listed == ["b3", "a3", "b2", "a2", "b1", "a1", "b0", "a0"]
        assert [api_key.id for api_key in of_acme] == ["b2", "a2", "b0", "a0"]

    async def test_a_good_key_is_neither_revoked_nor_expired(self, manual_store, clock):
        good = manual_store.single
        assert not await good(lambda tx: tx.has_valid_key())
        await add(manual_store, a_key("aa", lifetime=seconds(1)))
        assert await good(lambda tx: tx.has_valid_key())
        await clock.advance(seconds(1))
        assert not await good(lambda tx: tx.has_valid_key())
        await add(manual_store, a_key("bb"))
        assert await good(lambda tx: tx.has_valid_key())
        await manual_store.run(lambda tx: tx.revoke_key("bb"))
        assert not await good(lambda tx: tx.has_valid_key())
