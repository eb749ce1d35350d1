"""Breakers of destinations are one for all workers, on every database; so are the keys of webhooks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.engine import deliveries
from holdfast.engine.deliveries import Deliveries
from holdfast.errors import NotFound
from holdfast.model.breaker import Breaker, BreakerState, Permit
from holdfast.model.time import days, seconds
from holdfast.policy.breaker import BreakerRules
from holdfast.telemetry.events import BreakerChanged

if TYPE_CHECKING:
    from holdfast.store.port.store import Store
    from holdfast.telemetry.events import Event
    from tests.support.clock import ManualClock

RULES = BreakerRules(failures=3, cooldown=seconds(10), max_cooldown=seconds(20))
AT = "https://example.com:443"
PROBE = seconds(40)


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "BREAKER_CACHE_S", 0)
    monkeypatch.setattr(deliveries, "SIGNING_KEY_CACHE_S", 0)


def a_worker(store: Store) -> Deliveries:
    # Its own clock stands still: what counts is the database's.
    return Deliveries(store, RULES, rng=lambda: 0.0, monotonic=lambda: 0.0)


async def fail(worker: Deliveries, times: int, *, tenant: str = "acme", probe: bool = False) -> None:
    for _ in range(times):
        await worker.record_failure(tenant, AT, "HTTP 503", probe=probe)


async def request_permit(worker: Deliveries, tenant: str = "acme", at: str = AT) -> Permit:
    return await worker.request_permit(tenant, at, probe_for=PROBE)


async def test_failures_of_all_workers_together_open_it_for_all(manual_store: Store, clock: ManualClock) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 2)
    assert await request_permit(other) == Permit()
    await fail(other, 1)

    assert await request_permit(one) == await request_permit(other) == Permit(wait=seconds(10))
    (breaker,) = await one.breakers("acme")
    until = clock.now + seconds(10)
    assert breaker == Breaker("acme", AT, BreakerState.OPEN, 3, 1, until, "HTTP 503", clock.now)


async def test_other_destinations_and_other_tenants_are_undisturbed(manual_store: Store) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)

    assert await request_permit(worker, tenant="globex") == Permit()
    assert await request_permit(worker, at="https://example.com:8443") == Permit()
    assert await worker.breakers("globex") == []


async def test_an_answer_in_between_begins_the_count_anew(manual_store: Store) -> None:
    worker = a_worker(manual_store)
    for _ in range(3):
        await fail(worker, 2)
        await request_permit(worker)
        await worker.record_success("acme", AT, probe=False)
    assert await request_permit(worker) == Permit()


async def test_one_probe_goes_out_when_its_time_has_come_whoever_asks(manual_store: Store, clock: ManualClock) -> None:
    workers = [a_worker(manual_store) for _ in range(6)]
    await fail(workers[0], 3)
    await clock.advance(seconds(10))

    permits = await asyncio.gather(*map(request_permit, workers))
    assert sum(permit.probe for permit in permits) == 1
    assert [permit.wait for permit in permits if not permit.probe] == [RULES.cooldown] * 5


async def test_a_probe_that_fails_lengthens_the_rest_to_its_longest(manual_store: Store, clock: ManualClock) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)
    for rest in (10, 20, 20):
        assert await request_permit(worker) == Permit(wait=seconds(rest))
        await clock.advance(seconds(rest))
        assert await request_permit(worker) == Permit(probe=True)
        await fail(worker, 1, probe=False)  # one that went out before tells nothing new
        await fail(worker, 1, probe=True)


async def test_a_probe_that_is_answered_closes_it_for_all(manual_store: Store, clock: ManualClock) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 3)
    await clock.advance(seconds(10))
    assert (await request_permit(one)).probe
    await one.record_success("acme", AT, probe=True)

    assert await request_permit(other) == Permit()
    (breaker,) = await one.breakers(None)
    assert (breaker.state, breaker.failures, breaker.openings, breaker.until) == (BreakerState.CLOSED, 0, 0, None)


async def test_it_is_told_once_that_a_destination_rests_and_once_that_it_is_back(
    manual_store: Store, clock: ManualClock
) -> None:
    told: list[Event] = []
    worker = Deliveries(manual_store, RULES, rng=lambda: 0.0, monotonic=lambda: 0.0, emit=told.append)
    await fail(worker, 5)
    for answered in (False, True):
        await clock.advance(seconds(20))
        assert (await request_permit(worker)).probe
        await (worker.record_success("acme", AT, probe=True) if answered else fail(worker, 1, probe=True))

    assert told == [BreakerChanged("acme", AT, True, "HTTP 503"), BreakerChanged("acme", AT, False, "HTTP 503")]


async def test_a_probe_that_nobody_hears_of_is_given_to_another(manual_store: Store, clock: ManualClock) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 3)
    await clock.advance(seconds(10))
    assert (await request_permit(one)).probe  # and is killed
    await clock.advance(PROBE)
    assert (await request_permit(other)).probe


async def test_failures_at_the_same_instant_are_all_counted(store: Store) -> None:
    workers = [Deliveries(store, BreakerRules(failures=100)) for _ in range(8)]
    await asyncio.gather(*(fail(worker, 2) for worker in workers))
    (breaker,) = await workers[0].breakers("acme")
    assert breaker.failures == 16


async def test_they_are_listed_in_order_and_by_tenant(store: Store) -> None:
    worker = a_worker(store)
    names = [(tenant, f"https://{host}:443") for tenant in ("a", "b") for host in ("x.example", "y.example")]
    for tenant, at in reversed(names):
        await worker.record_failure(tenant, at, "HTTP 500", probe=False)

    def named(breakers: list[Breaker]) -> list[tuple[str, str]]:
        return [(each.tenant, each.destination) for each in breakers]

    assert named(await worker.breakers(None)) == names
    assert named(await worker.breakers("b")) == names[2:]
    assert named(await worker.breakers(None, after=names[0], limit=2)) == names[1:3]


async def test_those_that_closed_are_forgotten_after_a_day(manual_store: Store, clock: ManualClock) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)
    await fail(worker, 1, tenant="globex")
    await worker.record_success("globex", AT, probe=True)
    await clock.advance(days(1) - 1)
    assert await deliveries.prune(manual_store, 100) == 0
    await clock.advance(seconds(1))
    assert await deliveries.prune(manual_store, 100) == 1
    assert [each.tenant for each in await worker.breakers(None)] == ["acme"]


async def test_a_rotated_secret_signs_beside_the_new_one_until_its_time_is_over(
    manual_store: Store, clock: ManualClock
) -> None:
    """T15."""
    worker = a_worker(manual_store)
    assert await worker.signing_keys("acme") == []
    with pytest.raises(NotFound, match="POST /v1/tenants/acme/webhook-secret"):
        await worker.secret("acme")
    first, made = await worker.rotate_secret("acme", seconds(60))
    assert first.startswith("whsec_")
    assert (made.created_at, made.previous, made.previous_until) == (clock.now, None, None)
    (one,) = await worker.signing_keys("acme")

    await clock.advance(seconds(5))
    _, made = await worker.rotate_secret("acme", seconds(60))
    assert (made.created_at, made.previous_until) == (clock.now, clock.now + seconds(60))
    two, previous = await a_worker(manual_store).signing_keys("acme")
    assert previous == one != two
    await clock.advance(seconds(60))
    assert await worker.signing_keys("acme") == [two]
    assert (await worker.secret("acme")).previous_until is None

    assert await worker.drop_secret("acme")
    assert not await worker.drop_secret("acme")
    with pytest.raises(NotFound, match="no tenant 'acem'"):
        await worker.drop_secret("acem")
    assert await worker.signing_keys("acme") == []


async def test_the_secrets_of_tenants_are_their_own(store: Store) -> None:
    worker = a_worker(store)
    for tenant in ("acme", "globex"):
        await worker.rotate_secret(tenant, seconds(60))
    assert await worker.signing_keys("acme") != await worker.signing_keys("globex")
