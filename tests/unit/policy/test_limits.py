"""Limits applied to the shares of a claim (S16)."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.lane import Lane, Share
from holdfast.model.limit import TOKEN, Limit, Rate, queue_limit, slots, slots_to_release, tenant_limit
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy.limits import admit, counting_limits, lane_limits, reserve
from tests.unit.policy.strategies import a_job

NOW = Instant(1_000_000_000)
RATES = st.none() | st.builds(
    Rate, st.integers(1, 1_000), st.integers(1_000, 10**9).map(Duration), st.integers(1, 1_000)
)
QUEUES, TENANTS = "pq", "ab"


def limit_of(name):
    return st.builds(
        Limit,
        st.just(name),
        st.none() | st.integers(0, 20),
        RATES,
        st.integers(0, 25),
        st.booleans(),
        st.integers(-5 * TOKEN, 20 * TOKEN),
        st.integers(0, 2 * NOW).map(Instant),
    )


LIMITS = st.tuples(*[limit_of(queue_limit(q)) for q in QUEUES], *[limit_of(tenant_limit(t)) for t in TENANTS])
SHARES = st.lists(
    st.builds(
        Share,
        st.builds(Lane, st.sampled_from(QUEUES), st.sampled_from(TENANTS), st.just(0)),
        st.integers(1, 30),
        st.just(0),
    ),
    max_size=6,
)


@given(SHARES, LIMITS)
def test_admitted_shares_fit_all_limits_and_use_all_capacity(shares, limits):
    admitted = admit(shares, limits, NOW, {})

    offered = {limit.of: 0 for limit in limits}
    for share in admitted.shares:
        for name in lane_limits(share.lane):
            offered[name] += share.max_jobs
    assert all(offered[limit.of] <= limit.room(NOW) for limit in limits)
    full = {limit.of for limit in limits if offered[limit.of] >= limit.room(NOW)}
    for share in shares:
        if share not in admitted.shares:
            assert full & set(lane_limits(share.lane)), share
    assert set(admitted.full) <= {limit.of for limit in limits if limit.room(NOW) <= 0}


@given(LIMITS, st.integers(0, 40))
def test_reserved_slots_equal_the_slots_that_the_jobs_release(limits, jobs):
    counting = counting_limits(limits)
    claimed = [
        a_job(queue=QUEUES[n % 2], tenant=TENANTS[n % 3 % 2], slots=slots(QUEUES[n % 2], TENANTS[n % 3 % 2], counting))
        for n in range(jobs)
    ]
    after = {limit.of: limit for limit in reserve(limits, claimed, NOW)}
    held = dict(slots_to_release(claimed))

    assert all(after[limit.of].used - held.get(limit.of, 0) == limit.used for limit in limits)


class TestBuckets:
    FULL = Limit(queue_limit("q"), rate=Rate(6, seconds(60), 3), tokens=3 * TOKEN, refilled_at=NOW)

    def test_allow_their_burst_and_then_the_rate(self):
        empty = self.FULL.after(3, NOW)
        assert (self.FULL.room(NOW), empty.room(NOW), empty.opens_in(NOW)) == (3, 0, seconds(10))
        assert empty.room(Instant(NOW + seconds(9))) == 0
        assert empty.room(Instant(NOW + seconds(10))) == 1
        assert empty.room(Instant(NOW + seconds(3_600))) == 3

    def test_are_not_refilled_by_a_clock_that_stepped_back(self):
        empty = self.FULL.after(3, NOW)
        back = empty.refilled(Instant(NOW - seconds(600)))
        assert back.room(NOW) == 0
        assert back.room(Instant(NOW + seconds(10))) == 1

    def test_do_not_bound_the_wait_for_a_concurrency_limit(self):
        limit = self.FULL._replace(max_running=1, used=1)
        assert (limit.room(NOW), limit.opens_in(NOW)) == (0, None)
