"""Shares seen afterwards: what was served is divided once, by weight, and nobody gets more than it asked for."""

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


def told(*steps: tuple[str, int, int, float], waiting: dict[str, float] | None = None, **weights: int) -> Fairness:
    """Over three minutes: (tenant, minute, cost, seconds waited)."""
    return fairness(
        [ServiceSample(name, Instant(T0 + at * MINUTE), cost, seconds(waited)) for name, at, cost, waited in steps],
        {name: Instant(T0 + round(at * MINUTE)) for name, at in (waiting or {}).items()},
        weights,
        since=T0,
        until=Instant(T0 + 3 * MINUTE),
        step=MINUTE,
    )


@given(SERVED, st.sets(TENANTS), WEIGHTS)
def test_all_that_was_served_is_divided_and_by_weight_among_those_who_waited(
    served: dict[str, int], hungry: set[str], weights: dict[str, int]
) -> None:
    entitled = divide(served, hungry, weights)
    assert math.isclose(sum(entitled.values()), sum(served.values()))
    levels = [entitled[name] / weights.get(name, 1) for name in hungry]
    assert all(math.isclose(level, levels[0]) for level in levels)
    for name in set(served) - hungry:
        assert entitled[name] <= served[name] * (1 + 1e-9)
        if hungry and entitled[name] < served[name] * (1 - 1e-9):  # it got more than its part while others waited
            assert math.isclose(entitled[name] / weights.get(name, 1), levels[0], rel_tol=1e-6)


@given(st.lists(st.floats(0.01, 100), min_size=1))
def test_jains_index_lies_between_one_of_n_and_one(ratios: list[float]) -> None:
    index = jain(ratios)
    assert index is not None
    assert 1 / len(ratios) - 1e-9 <= index <= 1 + 1e-9


def test_jains_index_of_equals_is_one_and_of_nothing_there_is_none() -> None:
    assert jain([0.7] * 5) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([]) is jain([0.0]) is None


def test_weights_are_what_backlogged_tenants_are_entitled_to() -> None:
    found = told(("big", 0, 300, 50.0), ("small", 0, 100, 50.0), big=3)
    assert [(each.tenant, each.received, each.entitled) for each in found.tenants] == [
        ("big", 300, pytest.approx(300)),
        ("small", 100, pytest.approx(100)),
    ]
    assert found.jain == pytest.approx(1)


def test_who_asks_for_little_gets_it_and_the_rest_is_shared() -> None:
    found = {each.tenant: each for each in told(("a", 0, 60, 9.0), ("b", 0, 30, 9.0), ("c", 0, 10, 0.1)).tenants}
    assert (found["c"].entitled, found["c"].backlogged) == (10, 0)
    assert (found["a"].entitled, found["b"].entitled) == (45, 45)
    assert found["b"].ratio == pytest.approx(30 / 45)


def test_a_tenant_that_was_given_nothing_is_seen_by_what_waits_and_by_what_came_late() -> None:
    """It has no figures of the minutes in which it starved."""
    starved = told(("a", 0, 100, 9.0), ("a", 1, 100, 9.0), waiting={"b": 0.5})
    assert [(each.tenant, each.received, each.entitled) for each in starved.tenants] == [("b", 0, 100), ("a", 200, 100)]
    assert starved.jain == pytest.approx(0.5)
    late = told(("a", 0, 100, 9.0), ("a", 1, 100, 9.0), ("b", 2, 1, 130.0))
    assert {each.tenant: each.entitled for each in late.tenants} == {"a": 100, "b": 101}


def test_where_nobody_waits_all_have_what_they_are_entitled_to() -> None:
    found = told(("a", 0, 100, 0.2), ("b", 0, 1, 0.0), ("b", 2, 7, 1.0))
    assert found.jain is None
    assert found.served == 108
    assert all(each.received == each.entitled for each in found.tenants)
    assert told().tenants == []
