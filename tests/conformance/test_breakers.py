"""Circuit breakers and webhook signing keys are shared by all workers, on every database."""

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
    # Its own clock does not advance, because the database clock counts.
    return Deliveries(store, RULES, rng=lambda: 0.0, monotonic=lambda: 0.0)


async def fail(worker: Deliveries, times: int, *, tenant: str = "acme", probe: bool = False) -> None:
    for _ in range(times):
        await worker.record_failure(tenant, AT, "HTTP 503", probe=probe)


async def request_permit(worker: Deliveries, tenant: str = "acme", at: str = AT) -> Permit:
    return await worker.request_permit(tenant, at, probe_for=PROBE)


async def test_failures_of_all_workers_together_open_the_breaker_for_all(
    manual_store: Store, clock: ManualClock
) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 2)
    assert await request_permit(other) == Permit()
    await fail(other, 1)

    assert await request_permit(one) == await request_permit(other) == Permit(wait=seconds(10))
    (breaker,) = await one.breakers("acme")
    until = clock.now + seconds(10)
    assert breaker == Breaker("acme", AT, BreakerState.OPEN, 3, 1, until, "HTTP 503", clock.now)


async def test_a_breaker_does_not_affect_other_destinations_and_tenants(manual_store: Store) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)

    assert await request_permit(worker, tenant="globex") == Permit()
    assert await request_permit(worker, at="https://example.com:8443") == Permit()
    assert await worker.breakers("globex") == []


async def test_a_success_resets_the_count_of_failures(manual_store: Store) -> None:
    worker = a_worker(manual_store)
    for _ in range(3):
        await fail(worker, 2)
        await request_permit(worker)
        await worker.record_success("acme", AT, probe=False)
    assert await request_permit(worker) == Permit()


async def test_one_worker_sends_a_probe_when_it_is_due(manual_store: Store, clock: ManualClock) -> None:
    workers = [a_worker(manual_store) for _ in range(6)]
    await fail(workers[0], 3)
    await clock.advance(seconds(10))

    permits = await asyncio.gather(*map(request_permit, workers))
    assert sum(permit.probe for permit in permits) == 1
    assert [permit.wait for permit in permits if not permit.probe] == [RULES.cooldown] * 5


async def test_failed_probes_lengthen_the_pause_up_to_its_maximum(manual_store: Store, clock: ManualClock) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)
    for rest in (10, 20, 20):
        assert await request_permit(worker) == Permit(wait=seconds(rest))
        await clock.advance(seconds(rest))
        assert await request_permit(worker) == Permit(probe=True)
        await fail(worker, 1, probe=False)  # a delivery that started before the breaker opened does not count
        await fail(worker, 1, probe=True)


async def test_a_successful_probe_closes_the_breaker_for_all(manual_store: Store, clock: ManualClock) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 3)
    await clock.advance(seconds(10))
    assert (await request_permit(one)).probe
    await one.record_success("acme", AT, probe=True)

    assert await request_permit(other) == Permit()
    (breaker,) = await one.breakers(None)
    assert (breaker.state, breaker.failures, breaker.openings, breaker.until) == (BreakerState.CLOSED, 0, 0, None)


async def test_opening_and_closing_a_breaker_are_each_logged_once(manual_store: Store, clock: ManualClock) -> None:
    told: list[Event] = []
    worker = Deliveries(manual_store, RULES, rng=lambda: 0.0, monotonic=lambda: 0.0, emit=told.append)
    await fail(worker, 5)
    for answered in (False, True):
        await clock.advance(seconds(20))
        assert (await request_permit(worker)).probe
        await (worker.record_success("acme", AT, probe=True) if answered else fail(worker, 1, probe=True))

    assert told == [BreakerChanged("acme", AT, True, "HTTP 503"), BreakerChanged("acme", AT, False, "HTTP 503")]


async def test_another_worker_repeats_a_probe_without_a_result(manual_store: Store, clock: ManualClock) -> None:
    one, other = a_worker(manual_store), a_worker(manual_store)
    await fail(one, 3)
    await clock.advance(seconds(10))
    assert (await request_permit(one)).probe  # the worker dies
    await clock.advance(PROBE)
    assert (await request_permit(other)).probe


async def test_concurrent_failures_are_all_counted(store: Store) -> None:
    workers = [Deliveries(store, BreakerRules(failures=100)) for _ in range(8)]
    await asyncio.gather(*(fail(worker, 2) for worker in workers))
    (breaker,) = await workers[0].breakers("acme")
    assert breaker.failures == 16


async def test_breakers_are_listed_in_order_and_by_tenant(store: Store) -> None:
    worker = a_worker(store)
    names = [(tenant, f"https://{host}:443") for tenant in ("a", "b") for host in ("x.example", "y.example")]
    for tenant, at in reversed(names):
        await worker.record_failure(tenant, at, "HTTP 500", probe=False)

    def named(breakers: list[Breaker]) -> list[tuple[str, str]]:
        return [(breaker.tenant, breaker.destination) for breaker in breakers]

    assert named(await worker.breakers(None)) == names
    assert named(await worker.breakers("b")) == names[2:]
    assert named(await worker.breakers(None, after=names[0], limit=2)) == names[1:3]


async def test_closed_breakers_are_deleted_after_a_day(manual_store: Store, clock: ManualClock) -> None:
    worker = a_worker(manual_store)
    await fail(worker, 3)
    await fail(worker, 1, tenant="globex")
    await worker.record_success("globex", AT, probe=True)
    await clock.advance(days(1) - 1)
    assert await deliveries.prune(manual_store, 100) == 0
    await clock.advance(seconds(1))
    assert await deliveries.prune(manual_store, 100) == 1
    assert [breaker.tenant for breaker in await worker.breakers(None)] == ["acme"]


async def test_the_previous_signing_key_stays_valid_for_the_overlap(manual_store: Store, clock: ManualClock) -> None:
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


async def test_each_tenant_has_its_own_signing_keys(store: Store) -> None:
    worker = a_worker(store)
    for tenant in ("acme", "globex"):
        await worker.rotate_secret(tenant, seconds(60))
    assert await worker.signing_keys("acme") != await worker.signing_keys("globex")
