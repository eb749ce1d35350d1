"""Limits, decided: held against a log of all that was accepted."""

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


def after_window(window):
    """Steps between submissions: none, some, or about a slice or a window."""
    slice_ = window // SLICES
    return st.one_of(
        st.just(0),
        st.integers(0, window // 5),
        st.integers(slice_ - 2, slice_ + 2).map(lambda step: max(0, step)),
        st.integers(window - 2, window + slice_ + 2),
    )


@st.composite
def traffic(draw):
    """A window, and submissions: how long after the one before, how long until inserted, and their cost."""
    window = draw(windows)
    steps = st.tuples(after_window(window), after_window(window), costs)
    return window, draw(st.lists(steps, min_size=1, max_size=120))


class Log:
    """What was accepted when: the truth that a ledger is held against."""

    def __init__(self):
        self.accepted = []

    def within(self, since, until):
        return sum(cost for at, cost in self.accepted if since < at <= until)


def one(cost=1, queue="mail"):
    return Demand(cost, {queue: 1})


def decide(ledger, limits, asked, now):
    return quotas.admit(ledger, limits, [asked], now)[0]


def settled(ledger, limits, asked, now, *, total=None, queues=()):
    return quotas.with_counts(ledger, limits, asked, total=total, queues=dict(queues), now=now)


class TestTheRate:
    @given(traffic(), st.integers(1, 60))
    def test_no_window_is_over_the_limit_and_none_is_under_it_by_more_than_a_slice(self, traffic, rate):
        """S15: what is accepted is booked when it was inserted, which may be long after it was decided."""
        window, steps = traffic
        limits = TenantQuota(rate=rate, window=window)
        width = -(-window // SLICES)
        ledger, log, now = UsageWindow(), Log(), START
        for step, lag, cost in steps:
            now = Instant(now + step)
            answer = decide(ledger, limits, one(cost), now)
            spent = log.within(now - window, now)
            if answer is None:
                assert spent + cost <= rate
                now = Instant(now + lag)
                log.accepted.append((now, cost))
                ledger = quotas.record(ledger, limits, cost, {}, now)
            elif cost > rate:
                assert isinstance(answer, OverLimit)
            else:
                assert type(answer) is RateLimited
                assert log.within(now - width * (SLICES + 1), now) + cost > rate
        for at, _ in log.accepted:
            assert log.within(at - window - 1, at) <= rate  # the window closed on both sides

    @given(traffic(), st.integers(1, 60))
    def test_after_retry_after_it_is_accepted_and_before_it_is_not(self, traffic, rate):
        window, steps = traffic
        limits = TenantQuota(rate=rate, window=window)
        ledger, now = UsageWindow(), START
        for step, _, cost in steps:
            now = Instant(now + step)
            answer = decide(ledger, limits, one(cost), now)
            if answer is None:
                ledger = quotas.record(ledger, limits, cost, {}, now)
            elif isinstance(answer, RateLimited):
                wait = seconds(answer.retry_after)
                assert 0 < wait <= window + 2 * (window // SLICES + 1)
                assert decide(ledger, limits, one(cost), Instant(now + wait)) is None
                assert decide(ledger, limits, one(cost), Instant(now + wait - 1)) is not None

    @given(st.lists(costs, max_size=40), st.integers(1, 200))
    def test_many_at_once_are_as_many_one_by_one(self, asked, rate):
        limits = TenantQuota(rate=rate, window=seconds(60))
        together = quotas.admit(UsageWindow(), limits, [one(cost) for cost in asked], START)
        ledger, alone = UsageWindow(), []
        for cost in asked:
            alone.append(decide(ledger, limits, one(cost), START))
            if alone[-1] is None:
                ledger = quotas.record(ledger, limits, cost, {}, START)
        assert [(type(each), str(each)) for each in together] == [(type(each), str(each)) for each in alone]

    @given(traffic(), st.integers(1, 60), windows)
    def test_a_change_of_the_window_forgets_nothing_that_the_new_one_holds(self, traffic, rate, other):
        window, steps = traffic
        before, changed = TenantQuota(rate=rate, window=window), TenantQuota(rate=rate, window=other)
        ledger, log, now = UsageWindow(), Log(), START
        for step, _, cost in steps:
            now = Instant(now + step)
            if decide(ledger, before, one(cost), now) is None:
                ledger = quotas.record(ledger, before, cost, {}, now)
                log.accepted.append((now, cost))
        known = log.within(now - min(window, other), now)
        assert decide(ledger, changed, one(max(1, rate - known + 1)), now) is not None

    @pytest.mark.parametrize("back", [1, 999_999, 1_000_000, 59_000_000, 62_000_000, 3_600_000_000])
    def test_a_clock_set_back_forgets_nothing_and_blocks_for_two_windows_at_the_most(self, back):
        """S24"""
        limits = TenantQuota(rate=10, window=seconds(60))
        ledger = quotas.record(UsageWindow(), limits, 10, {}, START)
        now = Instant(START - back)
        ledger = quotas.after_clock_step(ledger, now)
        refused = decide(ledger, limits, one(), now)
        assert 60 < refused.retry_after <= 122
        assert decide(ledger, limits, one(), Instant(now + seconds(60))) is not None
        assert decide(ledger, limits, one(), Instant(now + seconds(refused.retry_after))) is None

    def test_an_hour_of_silence_costs_nothing(self):
        limits = TenantQuota(rate=10, window=seconds(60))
        ledger = quotas.record(UsageWindow(), limits, 10, {}, START)
        assert quotas.record(ledger, limits, 1, {}, Instant(START + seconds(3_600))).costs[0] == 1
        assert len(quotas.encode(quotas.record(ledger, limits, 1, {}, Instant(START + seconds(30))))) < 64

    def test_what_is_larger_than_the_limit_can_never_pass(self):
        """S15"""
        refused = decide(UsageWindow(), TenantQuota(rate=10), one(11), START)
        assert isinstance(refused, OverLimit)
        assert refused.pointer == "/cost"
        assert "can never be accepted" in str(refused)
        assert decide(UsageWindow(), TenantQuota(rate=10), Demand(10, {"mail": 3, "fax": 7}), START) is None
        assert isinstance(decide(UsageWindow(), TenantQuota(rate=10), Demand(11, {"mail": 11}), START), OverLimit)


class TestTheBacklog:
    @given(
        st.integers(1, 30),
        st.integers(1, 30),
        st.lists(st.tuples(st.integers(0, 3_000_000), st.sampled_from("abc"), st.integers(0, 4)), max_size=80),
    )
    def test_no_limit_is_ever_passed(self, backlog, queue_backlog, steps):
        """T20: jobs come and go, and are counted only when it matters."""
        limits = TenantQuota(backlog=backlog, queue_backlog=queue_backlog)
        ledger, there, now = UsageWindow(), Counter(), START
        for step, queue, gone in steps:
            now = Instant(now + step)
            there[queue] = max(0, there[queue] - gone)
            asked = [one(queue=queue)]
            wanted = quotas.to_count(ledger, limits, asked, now)
            ledger = settled(
                ledger, limits, asked, now,
                total=there.total() if wanted.total else None,
                queues={each: there[each] for each in wanted.queues},
            )  # fmt: skip
            if quotas.admit(ledger, limits, asked, now)[0] is None:
                there[queue] += 1
                ledger = quotas.record(ledger, limits, 1, {queue: 1}, now)
            assert there.total() <= backlog
            assert max(there.values()) <= queue_backlog
            assert ledger.total is None or ledger.total.upper_bound >= there.total()

    def test_nothing_is_counted_while_the_bound_leaves_room(self):
        limits = TenantQuota(backlog=100)
        assert quotas.to_count(UsageWindow(), limits, [one()], START) == CountRequest(total=True, queues=())
        ledger = settled(UsageWindow(), limits, [one()], START, total=40)
        for _ in range(60):
            assert not quotas.to_count(ledger, limits, [one()], START).total
            ledger = quotas.record(ledger, limits, 1, {"mail": 1}, START)
        assert isinstance(decide(ledger, limits, one(), START), BacklogFull)

    def test_a_full_backlog_is_counted_ever_less_often_down_to_once_a_second(self):
        """T20: hammering it costs next to nothing."""
        limits = TenantQuota(backlog=100)
        ledger, now, counts = UsageWindow(), START, []
        for _ in range(10_000):
            if quotas.to_count(ledger, limits, [one()], now).total:
                counts.append(now)
                ledger = settled(ledger, limits, [one()], now, total=100)
            answer = decide(ledger, limits, one(), now)
            assert isinstance(answer, BacklogFull)
            assert answer.retry_after <= 1
            now = Instant(now + 1_000)
        gaps = [later - earlier for earlier, later in pairwise(counts)]
        assert gaps == sorted(gaps)
        assert gaps[-1] == seconds(1)
        assert len(counts) < 20

    def test_once_there_is_room_again_it_is_counted_quickly_again(self):
        limits = TenantQuota(backlog=100)
        ledger = UsageWindow()
        for _ in range(10):
            ledger = settled(ledger, limits, [one()], START, total=100)
        assert decide(ledger, limits, one(), START).retry_after == 1
        ledger = settled(ledger, limits, [one()], START, total=99)
        ledger = quotas.record(ledger, limits, 1, {"mail": 1}, START)
        assert decide(ledger, limits, one(), START).retry_after == in_seconds(quotas.MIN_RECOUNT_INTERVAL)

    def test_what_takes_long_to_count_is_counted_seldom(self):
        limits = TenantQuota(backlog=5_000_000)
        ledger = settled(UsageWindow(), limits, [one()], START, total=5_000_000)
        assert decide(ledger, limits, one(), START).retry_after == 5

    def test_a_count_is_not_relied_upon_for_ever(self):
        """Replayed jobs come back without having been submitted."""
        limits = TenantQuota(backlog=100)
        ledger = settled(UsageWindow(), limits, [one()], START, total=5)
        assert not quotas.to_count(ledger, limits, [one()], Instant(START + seconds(10))).total
        assert quotas.to_count(ledger, limits, [one()], Instant(START + seconds(10) + 1)).total
        assert quotas.to_count(ledger, limits, [one()], Instant(START - 1)).total

    def test_some_of_many_go_in(self):
        limits = TenantQuota(backlog=10, queue_backlog=4)
        asked = [one(queue=queue) for queue in "aaaaaabbbccccc"]
        ledger = settled(UsageWindow(), limits, asked, START, total=1, queues={"a": 0, "b": 1, "c": 0})
        answers = quotas.admit(ledger, limits, asked, START)
        assert (
            "".join(queue for queue, answer in zip("aaaaaabbbccccc", answers, strict=True) if answer is None)
            == "aaaabbbcc"
        )
        assert {type(answer) for answer in answers if answer} == {BacklogFull}

    def test_what_is_refused_for_its_backlog_costs_nothing_of_the_rate(self):
        limits = TenantQuota(rate=10, backlog=1)
        ledger = settled(UsageWindow(), limits, [one()], START, total=0)
        answers = quotas.admit(ledger, limits, [one(1), one(9), one(9)], START)
        assert [type(answer) for answer in answers] == [type(None), BacklogFull, BacklogFull]

    def test_more_than_the_limit_can_never_pass_and_is_not_counted(self):
        limits = TenantQuota(backlog=10, queue_backlog=5)
        for asked in (Demand(11, {"a": 5, "b": 5, "c": 1}), Demand(6, {"a": 6})):
            assert quotas.to_count(UsageWindow(), limits, [asked], START) == CountRequest(total=False, queues=())
            assert isinstance(decide(UsageWindow(), limits, asked, START), OverLimit)

    def test_the_ledger_stays_small_whatever_the_number_of_queues(self):
        limits = TenantQuota(queue_backlog=5)
        ledger = UsageWindow()
        for number in range(3 * MAX_QUEUES):
            queue = f"{number:0>128}"
            now = Instant(START + number)
            ledger = settled(ledger, limits, [one(queue=queue)], now, queues={queue: number % 5})
        assert len(ledger.queues) == MAX_QUEUES
        assert quotas.to_count(ledger, limits, [one(queue=queue)], now).queues == ()
        assert len(quotas.encode(ledger)) < 32_768


def test_a_ledger_is_kept_as_it_is():
    limits = TenantQuota(rate=10**12, backlog=10, queue_backlog=5)
    ledger = settled(UsageWindow(), limits, [one()], START, total=3, queues={"mail": 3, "fax": 0})
    ledger = quotas.record(ledger, limits, 10**12, {"mail": 2}, START)
    assert quotas.decode(quotas.encode(ledger)) == ledger
    assert quotas.decode(b"") == UsageWindow()


def test_a_tenants_own_limits_come_before_the_installations():
    defaults = TenantQuota(rate=5, window=seconds(10), backlog=6, queue_backlog=7)
    assert quotas.quota_of(None, defaults) == defaults
    assert quotas.quota_of(Quotas(), defaults) == defaults
    own = Quotas(rate=1, rate_window=seconds(2), backlog=0, queue_backlog=4)
    assert quotas.quota_of(own, defaults) == TenantQuota(1, seconds(2), 0, 4)
    assert not TenantQuota(window=Duration(5)).is_limited


def test_jobs_cost_what_they_say_and_a_batch_no_less_than_its_length():
    jobs = [a_job(cost=3), a_job(queue="fax"), a_job()]
    assert quotas.demand_of(jobs) == Demand(5, {"mail": 2, "fax": 1})
