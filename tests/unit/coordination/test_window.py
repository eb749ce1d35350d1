"""The window in Redis slides as the policy has it, refuses what the database would refuse, and nothing else."""

import random
import secrets
import time

import pytest

from holdfast.coordination.in_redis import SCRIPTS, TRUSTED, WINDOW, LimiterInRedis
from holdfast.coordination.redis_connection import Link
from holdfast.errors import RateLimited
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy import quotas
from holdfast.policy.quotas import SLICES, Demand, TenantQuota, UsageWindow
from holdfast.policy.rate_limit import WindowSnapshot, rate_limited
from tests.support.eventually import PATIENCE


@pytest.fixture
async def link(redis_server):
    made = Link(redis_server.url, SCRIPTS, deadline=PATIENCE)
    await made.start()
    yield made
    await made.aclose()


@pytest.fixture
def limiter(link):
    return LimiterInRedis(link, f"holdfast:test-{secrets.token_hex(8)}:")


def refusal_of(ledger, limits, cost, now):
    (answer,) = quotas.admit(ledger, limits, [Demand(cost, {"q": 1})], now)
    return answer


async def test_it_says_what_the_policy_says(limiter):
    """S15: the same sum over the same slices, by cost, and the same time to wait less what has passed."""
    rand = random.Random(15)
    refused = 0
    for number in range(60):
        window = seconds(dice.choice([3_600, 7_200, 86_400]))
        width = -(-window // SLICES)
        now = Instant(1_800_000_000_000_000 // width * width + width // 2)  # in the middle of a slice
        costs = tuple(dice.choice([0, 0, 1, 5, 40]) for _ in range(dice.randint(1, SLICES + 1)))
        ledger = UsageWindow(window, now // width - dice.choice([0, 0, 1, 7]), costs)
        limits = TenantQuota(rate=max(1, sum(costs) + dice.randint(-30, 10)), window=window)
        tenant = f"t{number}"
        began = time.monotonic()
        # As it was a while ago: some of it may have left by now.
        spent = WindowSnapshot(limits.rate, window, ledger.newest, costs, now)
        limiter.note(tenant, rate_limited(limits.rate, window, sum(costs), Duration(1), spent))
        for cost in {1, 2, 7, 30, limits.rate}:
            found = await limiter.refusal(tenant, cost)
            passed = time.monotonic() - began
            expected = refusal_of(ledger, limits, cost, now)
            if passed > TRUSTED / 1e6:
                break
            if not isinstance(expected, RateLimited):  # there is room, or it never fits: the database says so itself
                assert found is None
                continue
            refused += 1
            assert str(found).rpartition(":")[0] == str(expected).rpartition(":")[0]
            assert expected.retry_after - passed - 1e-5 <= found.retry_after <= expected.retry_after + 1e-5
    assert refused > 50


def full(at=1_800_000_000_000_000, rate=10):
    evidence = WindowSnapshot(rate, seconds(3_600), at // seconds(60), (rate,), Instant(at))
    return rate_limited(rate, seconds(3_600), rate, Duration(1), evidence)


async def test_only_the_latest_window_is_kept_and_not_for_long(limiter, link):
    limiter.note("acme", full(rate=10))
    assert "10 in 3600 s" in str(await limiter.refusal("acme", 1))
    limiter.note("acme", full(at=1_799_999_999_000_000, rate=9))  # it comes late
    assert "10 in 3600 s" in str(await limiter.refusal("acme", 1))
    limiter.note("acme", full(at=1_800_000_000_100_000, rate=11))
    assert "11 in 3600 s" in str(await limiter.refusal("acme", 1))
    assert await limiter.refusal("acme", 12) is None  # never passes: the database tells
    left = await link.ask("PTTL", limiter._name("acme"))
    assert 0 < left <= TRUSTED / 1_000
    assert await link.run(WINDOW, limiter._name("acme"), "ask", 0, 1) is None  # as if it were older than is trusted
    limiter.forget("acme")
    assert await limiter.refusal("acme", 1) is None


async def test_a_tenant_that_was_not_refused_here_is_not_looked_up(limiter, link):
    other = LimiterInRedis(link, limiter._prefix)
    limiter.note("acme", full())
    assert await limiter.refusal("acme", 1)
    assert await other.refusal("acme", 1) is None
    assert link.counted == {("limits", "hit"): 1}


async def test_a_full_backlog_is_no_full_window(limiter, link):
    limiter.note("acme", RateLimited("the backlog is full", retry_after=1.0))
    assert await limiter.refusal("acme", 1) is None


def test_a_refusal_of_the_policy_tells_by_what_it_was_decided():
    now = Instant(1_800_000_000_000_000)
    ledger = quotas.record(UsageWindow(), TenantQuota(rate=5), 4, {}, now)
    asked = [Demand(1, {"q": 1}), Demand(1, {"q": 1})]
    accepted, refused = quotas.admit(ledger, TenantQuota(rate=5), asked, now)
    assert accepted is None
    assert isinstance(refused, RateLimited)
    assert sum(refused.evidence.costs) == 5
