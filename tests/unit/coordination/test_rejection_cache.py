"""The rejection cache in Redis slides its window like the policy, and rejects only what the database would reject."""

import random
import secrets
import time

import pytest

from holdfast.coordination.redis_connection import RedisConnection
from holdfast.coordination.redis_coordination import REJECTION_WINDOW, WINDOW_LIFETIME, RedisRejectionCache
from holdfast.errors import RateLimited
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy import quotas
from holdfast.policy.quotas import SLICES, Demand, TenantQuota, UsageWindow
from holdfast.policy.rate_limit import WindowSnapshot, rate_limited
from tests.support.eventually import TIMEOUT_S


@pytest.fixture
async def connection(redis_server):
    connection = RedisConnection(redis_server.url, [REJECTION_WINDOW], timeout=TIMEOUT_S)
    await connection.start()
    yield connection
    await connection.aclose()


@pytest.fixture
def cache(connection):
    return RedisRejectionCache(connection, f"holdfast:test-{secrets.token_hex(8)}:")


def decide(usage, quota, cost, now):
    (decision,) = quotas.admit(usage, quota, [Demand(cost, {"q": 1})], now)
    return decision


async def test_the_cache_rejects_like_the_policy(cache):
    """S15: the same sum over the same slices, by cost, and the same wait minus the time passed."""
    rng = random.Random(15)
    rejections = 0
    for number in range(60):
        window = seconds(rng.choice([3_600, 7_200, 86_400]))
        width = -(-window // SLICES)
        now = Instant(1_800_000_000_000_000 // width * width + width // 2)  # in the middle of a slice
        costs = tuple(rng.choice([0, 0, 1, 5, 40]) for _ in range(rng.randint(1, SLICES + 1)))
        usage = UsageWindow(window, now // width - rng.choice([0, 0, 1, 7]), costs)
        quota = TenantQuota(rate=max(1, sum(costs) + rng.randint(-30, 10)), window=window)
        tenant = f"t{number}"
        began = time.monotonic()
        # The snapshot may be older than `now`, so that some slices have left the window.
        spent = WindowSnapshot(quota.rate, window, usage.newest, costs, now)
        cache.add(tenant, rate_limited(quota.rate, window, sum(costs), Duration(1), spent))
        for cost in {1, 2, 7, 30, quota.rate}:
            found = await cache.lookup(tenant, cost)
            passed = time.monotonic() - began
            expected = decide(usage, quota, cost, now)
            if passed > WINDOW_LIFETIME / 1e6:
                break
            if not isinstance(expected, RateLimited):  # it fits, or can never fit: the database decides
                assert found is None
                continue
            rejections += 1
            assert str(found).rpartition(":")[0] == str(expected).rpartition(":")[0]
            assert expected.retry_after - passed - 1e-5 <= found.retry_after <= expected.retry_after + 1e-5
    assert rejections > 50


def full(at=1_800_000_000_000_000, rate=10):
    evidence = WindowSnapshot(rate, seconds(3_600), at // seconds(60), (rate,), Instant(at))
    return rate_limited(rate, seconds(3_600), rate, Duration(1), evidence)


async def test_the_cache_keeps_only_the_newest_window_and_briefly(cache, connection):
    cache.add("acme", full(rate=10))
    assert "10 in 3600 s" in str(await cache.lookup("acme", 1))
    cache.add("acme", full(at=1_799_999_999_000_000, rate=9))  # arrives late
    assert "10 in 3600 s" in str(await cache.lookup("acme", 1))
    cache.add("acme", full(at=1_800_000_000_100_000, rate=11))
    assert "11 in 3600 s" in str(await cache.lookup("acme", 1))
    assert await cache.lookup("acme", 12) is None  # can never pass: the database decides
    left = await connection.query("PTTL", cache._name("acme"))
    assert 0 < left <= WINDOW_LIFETIME / 1_000
    assert await connection.run(REJECTION_WINDOW, cache._name("acme"), "ask", 0, 1) is None  # older than the trust time
    cache.invalidate("acme")
    assert await cache.lookup("acme", 1) is None


async def test_a_tenant_that_this_node_did_not_reject_is_not_looked_up(cache, connection):
    other = RedisRejectionCache(connection, cache._prefix)
    cache.add("acme", full())
    assert await cache.lookup("acme", 1)
    assert await other.lookup("acme", 1) is None
    assert connection.lookups == {("limits", "hit"): 1}


async def test_a_full_backlog_is_not_cached(cache, connection):
    cache.add("acme", RateLimited("the backlog is full", retry_after=1.0))
    assert await cache.lookup("acme", 1) is None


def test_a_rejection_by_the_policy_carries_its_window():
    now = Instant(1_800_000_000_000_000)
    usage = quotas.record(UsageWindow(), TenantQuota(rate=5), 4, {}, now)
    demands = [Demand(1, {"q": 1}), Demand(1, {"q": 1})]
    accepted, rejected = quotas.admit(usage, TenantQuota(rate=5), demands, now)
    assert accepted is None
    assert isinstance(rejected, RateLimited)
    assert sum(rejected.evidence.costs) == 5
