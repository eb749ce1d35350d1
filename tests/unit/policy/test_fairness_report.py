"""Fairness report: service is divided by weight, and no tenant is entitled to more than its demand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.time import Instant, seconds
from holdfast.policy.fairness.report import Fairness, ServiceSample, divide, fairness, jain
from holdfast.policy.rollups import MINUTE

T0 = Instant(1_000 * MINUTE)
TENANTS = st.sampled_from("abcdef")
SERVED = st.dictionaries(TENANTS, st.integers(1, 10_000), min_size=1)
WEIGHTS = st.dictionaries(TENANTS, st.integers(1, 100))


def report(*steps: tuple[str, int, int, float], waiting: dict[str, float] | None = None, **weights: int) -> Fairness:
    """Return the report over three minutes; a step is (tenant, minute, cost, seconds waited)."""
    return fairness(
        [ServiceSample(name, Instant(T0 + at * MINUTE), cost, seconds(waited)) for name, at, cost, waited in steps],
        {name: Instant(T0 + round(at * MINUTE)) for name, at in (waiting or {}).items()},
        weights,
        since=T0,
        until=Instant(T0 + 3 * MINUTE),
        step=MINUTE,
    )


@given(SERVED, st.sets(TENANTS), WEIGHTS)
def test_all_service_is_divided_by_weight_among_backlogged_tenants(
    served: dict[str, int], backlogged: set[str], weights: dict[str, int]
) -> None:
    entitled = divide(served, backlogged, weights)
    assert math.isclose(sum(entitled.values()), sum(served.values()))
    levels = [entitled[name] / weights.get(name, 1) for name in backlogged]
    assert all(math.isclose(level, levels[0]) for level in levels)
    for name in set(served) - backlogged:
        assert entitled[name] <= served[name] * (1 + 1e-9)
        if backlogged and entitled[name] < served[name] * (
            1 - 1e-9
        ):  # it received more than its share while others waited
            assert math.isclose(entitled[name] / weights.get(name, 1), levels[0], rel_tol=1e-6)


@given(st.lists(st.floats(0.01, 100), min_size=1))
def test_jains_index_is_between_one_nth_and_one(ratios: list[float]) -> None:
    index = jain(ratios)
    assert index is not None
    assert 1 / len(ratios) - 1e-9 <= index <= 1 + 1e-9


def test_jains_index_is_one_for_equal_ratios_and_none_for_no_ratios() -> None:
    assert jain([0.7] * 5) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([]) is jain([0.0]) is None


def test_backlogged_tenants_are_entitled_to_service_by_weight() -> None:
    found = report(("big", 0, 300, 50.0), ("small", 0, 100, 50.0), big=3)
    assert [(share.tenant, share.received, share.entitled) for share in found.tenants] == [
        ("big", 300, pytest.approx(300)),
        ("small", 100, pytest.approx(100)),
    ]
    assert found.jain == pytest.approx(1)


def test_a_small_demand_is_met_and_the_remainder_is_shared() -> None:
    found = {share.tenant: share for share in report(("a", 0, 60, 9.0), ("b", 0, 30, 9.0), ("c", 0, 10, 0.1)).tenants}
    assert (found["c"].entitled, found["c"].backlogged) == (10, 0)
    assert (found["a"].entitled, found["b"].entitled) == (45, 45)
    assert found["b"].ratio == pytest.approx(30 / 45)


def test_a_starved_tenant_is_detected_by_its_waiting_and_late_jobs() -> None:
    """It has no stats for the minutes in which it starved."""
    starved = report(("a", 0, 100, 9.0), ("a", 1, 100, 9.0), waiting={"b": 0.5})
    assert [(share.tenant, share.received, share.entitled) for share in starved.tenants] == [
        ("b", 0, 100),
        ("a", 200, 100),
    ]
    assert starved.jain == pytest.approx(0.5)
    late = report(("a", 0, 100, 9.0), ("a", 1, 100, 9.0), ("b", 2, 1, 130.0))
    assert {share.tenant: share.entitled for share in late.tenants} == {"a": 100, "b": 101}


def test_without_a_backlog_every_tenant_receives_its_fair_share() -> None:
    found = report(("a", 0, 100, 0.2), ("b", 0, 1, 0.0), ("b", 2, 7, 1.0))
    assert found.jain is None
    assert found.served == 108
    assert all(share.received == share.entitled for share in found.tenants)
    assert report().tenants == []
