"""Submission quotas, compared with an exact log of all accepted submissions."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BacklogFull, OverLimit, RateLimited
from holdfast.model.access import Quotas
from holdfast.model.time import Duration, Instant, in_seconds, seconds
from holdfast.policy import quotas
from holdfast.policy.quotas import MAX_QUEUES, SLICES, CountRequest, Demand, TenantQuota, UsageWindow
from tests.support.builders import a_job

START = Instant(1_000_000_000_000_000)

windows = st.sampled_from([seconds(1), seconds(7.000013), seconds(60), seconds(86_400)])
costs = st.integers(1, 40)


def pauses(window):
    """Draw the time between submissions: none, some, or about a slice or a window."""
    slice_ = window // SLICES
    return st.one_of(
        st.just(0),
        st.integers(0, window // 5),
        st.integers(slice_ - 2, slice_ + 2).map(lambda step: max(0, step)),
        st.integers(window - 2, window + slice_ + 2),
    )


@st.composite
def traffic(draw):
    """Draw a window and submissions: time since the previous one, time until insertion, and cost."""
    window = draw(windows)
    steps = st.tuples(pauses(window), pauses(window), costs)
    return window, draw(st.lists(steps, min_size=1, max_size=120))


class Log:
    """Exact log of accepted submissions."""

    def __init__(self):
        self.accepted = []

    def within(self, since, until):
        return sum(cost for at, cost in self.accepted if since < at <= until)


def one(cost=1, queue="mail"):
    return Demand(cost, {queue: 1})


def decide(usage, quota, demand, now):
    return quotas.admit(usage, quota, [demand], now)[0]


def with_counts(usage, quota, demands, now, *, total=None, queues=()):
    return quotas.with_counts(usage, quota, demands, total=total, queues=dict(queues), now=now)


class TestTheRateQuota:
    @given(traffic(), st.integers(1, 60))
    def test_no_window_exceeds_the_quota_or_is_cut_short_by_more_than_a_slice(self, traffic, rate):
        """S15: usage is recorded at insertion, which may be long after the decision."""
        window, steps = traffic
        quota = TenantQuota(rate=rate, window=window)
        width = -(-window // SLICES)
        usage, log, now = UsageWindow(), Log(), START
        for step, lag, cost in steps:
            now = Instant(now + step)
            rejection = decide(usage, quota, one(cost), now)
            spent = log.within(now - window, now)
            if rejection is None:
                assert spent + cost <= rate
                now = Instant(now + lag)
                log.accepted.append((now, cost))
                usage = quotas.record(usage, quota, cost, {}, now)
            elif cost > rate:
                assert isinstance(rejection, OverLimit)
            else:
                assert type(rejection) is RateLimited
                assert log.within(now - width * (SLICES + 1), now) + cost > rate
        for at, _ in log.accepted:
            assert log.within(at - window - 1, at) <= rate  # the window closed on both sides

    @given(traffic(), st.integers(1, 60))
    def test_a_rejected_submission_is_accepted_after_retry_after_and_not_before(self, traffic, rate):
        window, steps = traffic
        quota = TenantQuota(rate=rate, window=window)
        usage, now = UsageWindow(), START
        for step, _, cost in steps:
            now = Instant(now + step)
            rejection = decide(usage, quota, one(cost), now)
            if rejection is None:
                usage = quotas.record(usage, quota, cost, {}, now)
            elif isinstance(rejection, RateLimited):
                wait = seconds(rejection.retry_after)
                assert 0 < wait <= window + 2 * (window // SLICES + 1)
                assert decide(usage, quota, one(cost), Instant(now + wait)) is None
                assert decide(usage, quota, one(cost), Instant(now + wait - 1)) is not None

    @given(st.lists(costs, max_size=40), st.integers(1, 200))
    def test_admitting_many_at_once_equals_admitting_one_by_one(self, costs, rate):
        quota = TenantQuota(rate=rate, window=seconds(60))
        together = quotas.admit(UsageWindow(), quota, [one(cost) for cost in costs], START)
        usage, one_by_one = UsageWindow(), []
        for cost in costs:
            one_by_one.append(decide(usage, quota, one(cost), START))
            if one_by_one[-1] is None:
                usage = quotas.record(usage, quota, cost, {}, START)
        assert [(type(rejection), str(rejection)) for rejection in together] == [
            (type(rejection), str(rejection)) for rejection in one_by_one
        ]

    @given(traffic(), st.integers(1, 60), windows)
    def test_a_changed_window_keeps_all_usage_it_covers(self, traffic, rate, other):
        window, steps = traffic
        before, changed = TenantQuota(rate=rate, window=window), TenantQuota(rate=rate, window=other)
        usage, log, now = UsageWindow(), Log(), START
        for step, _, cost in steps:
            now = Instant(now + step)
            if decide(usage, before, one(cost), now) is None:
                usage = quotas.record(usage, before, cost, {}, now)
                log.accepted.append((now, cost))
        recent = log.within(now - min(window, other), now)
        assert decide(usage, changed, one(max(1, rate - recent + 1)), now) is not None

    @pytest.mark.parametrize("back", [1, 999_999, 1_000_000, 59_000_000, 62_000_000, 3_600_000_000])
    def test_a_clock_stepped_back_forgets_nothing_and_blocks_for_at_most_two_windows(self, back):
        """S24"""
        quota = TenantQuota(rate=10, window=seconds(60))
        usage = quotas.record(UsageWindow(), quota, 10, {}, START)
        now = Instant(START - back)
        usage = quotas.after_clock_step(usage, now)
        rejection = decide(usage, quota, one(), now)
        assert 60 < rejection.retry_after <= 122
        assert decide(usage, quota, one(), Instant(now + seconds(60))) is not None
        assert decide(usage, quota, one(), Instant(now + seconds(rejection.retry_after))) is None

    def test_stored_usage_stays_small_after_a_long_idle_time(self):
        quota = TenantQuota(rate=10, window=seconds(60))
        usage = quotas.record(UsageWindow(), quota, 10, {}, START)
        assert quotas.record(usage, quota, 1, {}, Instant(START + seconds(3_600))).costs[0] == 1
        assert len(quotas.encode(quotas.record(usage, quota, 1, {}, Instant(START + seconds(30))))) < 64

    def test_a_demand_larger_than_the_rate_quota_is_over_limit(self):
        """S15"""
        rejection = decide(UsageWindow(), TenantQuota(rate=10), one(11), START)
        assert isinstance(rejection, OverLimit)
        assert rejection.pointer == "/cost"
        assert "can never be accepted" in str(rejection)
        assert decide(UsageWindow(), TenantQuota(rate=10), Demand(10, {"mail": 3, "fax": 7}), START) is None
        assert isinstance(decide(UsageWindow(), TenantQuota(rate=10), Demand(11, {"mail": 11}), START), OverLimit)


class TestTheBacklogQuota:
    @given(
        st.integers(1, 30),
        st.integers(1, 30),
        st.lists(st.tuples(st.integers(0, 3_000_000), st.sampled_from("abc"), st.integers(0, 4)), max_size=80),
    )
    def test_the_backlog_never_exceeds_its_quota(self, backlog, queue_backlog, steps):
        """T20: jobs come and go, and are counted only when needed."""
        quota = TenantQuota(backlog=backlog, queue_backlog=queue_backlog)
        usage, unfinished, now = UsageWindow(), Counter(), START
        for step, queue, gone in steps:
            now = Instant(now + step)
            unfinished[queue] = max(0, unfinished[queue] - gone)
            demands = [one(queue=queue)]
            request = quotas.to_count(usage, quota, demands, now)
            usage = with_counts(
                usage, quota, demands, now,
                total=unfinished.total() if request.total else None,
                queues={name: unfinished[name] for name in request.queues},
            )  # fmt: skip
            if quotas.admit(usage, quota, demands, now)[0] is None:
                unfinished[queue] += 1
                usage = quotas.record(usage, quota, 1, {queue: 1}, now)
            assert unfinished.total() <= backlog
            assert max(unfinished.values()) <= queue_backlog
            assert usage.total is None or usage.total.upper_bound >= unfinished.total()

    def test_no_count_is_needed_while_the_estimate_leaves_room(self):
        quota = TenantQuota(backlog=100)
        assert quotas.to_count(UsageWindow(), quota, [one()], START) == CountRequest(total=True, queues=())
        usage = with_counts(UsageWindow(), quota, [one()], START, total=40)
        for _ in range(60):
            assert not quotas.to_count(usage, quota, [one()], START).total
            usage = quotas.record(usage, quota, 1, {"mail": 1}, START)
        assert isinstance(decide(usage, quota, one(), START), BacklogFull)

    def test_a_full_backlog_is_counted_less_and_less_often_down_to_once_a_second(self):
        """T20: frequent retries cost almost nothing."""
        quota = TenantQuota(backlog=100)
        usage, now, counts = UsageWindow(), START, []
        for _ in range(10_000):
            if quotas.to_count(usage, quota, [one()], now).total:
                counts.append(now)
                usage = with_counts(usage, quota, [one()], now, total=100)
            rejection = decide(usage, quota, one(), now)
            assert isinstance(rejection, BacklogFull)
            assert rejection.retry_after <= 1
            now = Instant(now + 1_000)
        gaps = [later - earlier for earlier, later in pairwise(counts)]
        assert gaps == sorted(gaps)
        assert gaps[-1] == seconds(1)
        assert len(counts) < 20

    def test_the_recount_interval_is_reset_when_there_is_room_again(self):
        quota = TenantQuota(backlog=100)
        usage = UsageWindow()
        for _ in range(10):
            usage = with_counts(usage, quota, [one()], START, total=100)
        assert decide(usage, quota, one(), START).retry_after == 1
        usage = with_counts(usage, quota, [one()], START, total=99)
        usage = quotas.record(usage, quota, 1, {"mail": 1}, START)
        assert decide(usage, quota, one(), START).retry_after == in_seconds(quotas.MIN_RECOUNT_INTERVAL)

    def test_a_large_backlog_is_counted_rarely(self):
        quota = TenantQuota(backlog=5_000_000)
        usage = with_counts(UsageWindow(), quota, [one()], START, total=5_000_000)
        assert decide(usage, quota, one(), START).retry_after == 5

    def test_a_count_expires(self):
        """Replayed jobs become unfinished again without a submission."""
        quota = TenantQuota(backlog=100)
        usage = with_counts(UsageWindow(), quota, [one()], START, total=5)
        assert not quotas.to_count(usage, quota, [one()], Instant(START + seconds(10))).total
        assert quotas.to_count(usage, quota, [one()], Instant(START + seconds(10) + 1)).total
        assert quotas.to_count(usage, quota, [one()], Instant(START - 1)).total

    def test_part_of_a_group_of_submissions_is_admitted(self):
        quota = TenantQuota(backlog=10, queue_backlog=4)
        demands = [one(queue=queue) for queue in "aaaaaabbbccccc"]
        usage = with_counts(UsageWindow(), quota, demands, START, total=1, queues={"a": 0, "b": 1, "c": 0})
        rejections = quotas.admit(usage, quota, demands, START)
        assert (
            "".join(queue for queue, rejection in zip("aaaaaabbbccccc", rejections, strict=True) if rejection is None)
            == "aaaabbbcc"
        )
        assert {type(rejection) for rejection in rejections if rejection} == {BacklogFull}

    def test_a_submission_rejected_for_the_backlog_uses_no_rate(self):
        quota = TenantQuota(rate=10, backlog=1)
        usage = with_counts(UsageWindow(), quota, [one()], START, total=0)
        rejections = quotas.admit(usage, quota, [one(1), one(9), one(9)], START)
        assert [type(rejection) for rejection in rejections] == [type(None), BacklogFull, BacklogFull]

    def test_a_demand_larger_than_the_backlog_quota_is_over_limit_without_a_count(self):
        quota = TenantQuota(backlog=10, queue_backlog=5)
        for demands in (Demand(11, {"a": 5, "b": 5, "c": 1}), Demand(6, {"a": 6})):
            assert quotas.to_count(UsageWindow(), quota, [demands], START) == CountRequest(total=False, queues=())
            assert isinstance(decide(UsageWindow(), quota, demands, START), OverLimit)

    def test_stored_usage_stays_small_with_many_queues(self):
        quota = TenantQuota(queue_backlog=5)
        usage = UsageWindow()
        for number in range(3 * MAX_QUEUES):
            queue = f"{number:0>128}"
            now = Instant(START + number)
            usage = with_counts(usage, quota, [one(queue=queue)], now, queues={queue: number % 5})
        assert len(usage.queues) == MAX_QUEUES
        assert quotas.to_count(usage, quota, [one(queue=queue)], now).queues == ()
        assert len(quotas.encode(usage)) < 32_768


def test_usage_survives_encoding():
    quota = TenantQuota(rate=10**12, backlog=10, queue_backlog=5)
    usage = with_counts(UsageWindow(), quota, [one()], START, total=3, queues={"mail": 3, "fax": 0})
    usage = quotas.record(usage, quota, 10**12, {"mail": 2}, START)
    assert quotas.decode(quotas.encode(usage)) == usage
    assert quotas.decode(b"") == UsageWindow()


def test_a_tenants_own_quota_overrides_the_defaults():
    defaults = TenantQuota(rate=5, window=seconds(10), backlog=6, queue_backlog=7)
    assert quotas.quota_of(None, defaults) == defaults
    assert quotas.quota_of(Quotas(), defaults) == defaults
    own = Quotas(rate=1, rate_window=seconds(2), backlog=0, queue_backlog=4)
    assert quotas.quota_of(own, defaults) == TenantQuota(1, seconds(2), 0, 4)
    assert not TenantQuota(window=Duration(5)).is_limited


def test_the_demand_of_jobs_is_their_total_cost_and_number_per_queue():
    jobs = [a_job(cost=3), a_job(queue="fax"), a_job()]
    assert quotas.demand_of(jobs) == Demand(5, {"mail": 2, "fax": 1})
