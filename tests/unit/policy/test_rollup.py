"""Figures: percentiles are right within a tenth, and adding up in any order gives the same."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.change_log import ChangeBody, ChangeEntry, ChangeGroup, Histogram, JobChange, bucket_of, merge_histogram
from holdfast.model.ids import new_job_id
from holdfast.model.state import Status
from holdfast.model.time import Instant, seconds
from holdfast.policy import rollups
from holdfast.policy.rollups import ALL_TENANTS, HOUR, MINUTE, JobStats, SeriesKey, quantile

SPANS = st.lists(st.integers(0, 10**13), min_size=1, max_size=200)


def histogram(spans: list[int]) -> Histogram:
    counted: Histogram = {}
    for span in spans:
        merge_histogram(counted, {bucket_of(span): 1})
    return counted


@given(SPANS, st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_a_percentile_is_off_by_a_tenth_at_the_most(spans: list[int], part: float) -> None:
    exact = sorted(spans)[max(0, math.ceil(part * len(spans)) - 1)]
    found = quantile(histogram(spans), part)

    assert found is not None
    assert abs(found - exact) <= max(1, 0.1 * exact)


@given(SPANS, SPANS)
def test_histograms_of_two_are_those_of_both(some: list[int], others: list[int]) -> None:
    assert merge_histogram(histogram(some), histogram(others)) == histogram([*some, *others])


def test_there_is_no_percentile_of_nothing() -> None:
    assert quantile({}, 0.5) is None
    assert JobStats().failure_ratio is None


def test_a_negative_span_of_clocks_that_disagree_counts_as_none() -> None:
    assert quantile({bucket_of(-5): 1}, 0.5) == 1


GROUPS = st.builds(
    ChangeGroup,
    tenant=st.sampled_from(["a", "b"]),
    queue=st.sampled_from(["q", "r"]),
    type=st.just("t"),
    status=st.sampled_from([status.code for status in Status]),
    jobs=st.integers(1, 50),
    failed=st.integers(0, 5),
    wait=st.dictionaries(st.integers(0, 9), st.integers(1, 5), max_size=3),
    run=st.dictionaries(st.integers(0, 9), st.integers(1, 5), max_size=3),
    reaped=st.integers(0, 5),
)
ENTRIES = st.lists(
    st.builds(
        ChangeEntry,
        st.integers(1, 99),
        st.integers(0, 3 * HOUR).map(Instant),
        st.builds(ChangeBody, g=st.lists(GROUPS, min_size=1, max_size=3), new=st.booleans()),
    ),
    max_size=20,
)


@given(ENTRIES, st.integers(0, 20))
def test_what_is_counted_in_parts_adds_up_to_the_whole(entries: list[ChangeEntry], cut: int) -> None:
    parts = rollups.add(rollups.count(entries[:cut]), rollups.count(entries[cut:]))

    assert parts == rollups.count(entries)
    assert rollups.downsample(parts, HOUR) == rollups.downsample(rollups.count(entries), HOUR)


@given(ENTRIES)
def test_all_tenants_together_are_the_sum_of_each(entries: list[ChangeEntry]) -> None:
    counted = rollups.count(entries)
    everybody = rollups.total(figures for place, figures in counted.items() if place.tenant == ALL_TENANTS)
    each = rollups.total(figures for place, figures in counted.items() if place.tenant != ALL_TENANTS)

    assert everybody == each


@given(ENTRIES, st.sampled_from(["a", "b", ALL_TENANTS]))
def test_one_tenant_counted_alone_is_as_among_all(entries: list[ChangeEntry], tenant: str) -> None:
    among_all = {place: figures for place, figures in rollups.count(entries).items() if place.tenant == tenant}

    assert rollups.count(entries, only=tenant) == among_all


def test_changes_that_are_listed_count_as_much_as_those_that_are_counted() -> None:
    job = new_job_id()
    listed = ChangeBody(c=[JobChange(job, "a", "q", "t", Status.READY.code, 0, 0)] * 2, new=True)
    counted = ChangeBody(g=[ChangeGroup("a", "q", "t", Status.READY.code, 2)], new=True)
    at = Instant(MINUTE + 1)

    assert rollups.count([ChangeEntry(1, at, listed)]) == rollups.count([ChangeEntry(1, at, counted)])
    assert rollups.count([ChangeEntry(1, at, listed)])[SeriesKey("a", Instant(MINUTE), "q", "t")].submitted == 2


def test_only_what_is_new_was_submitted() -> None:
    back = ChangeBody(g=[ChangeGroup("a", "q", "t", Status.READY.code, 2, 1)])

    (figures, _) = rollups.count([ChangeEntry(1, Instant(seconds(5)), back)]).values()
    assert (figures.submitted, figures.failed) == (0, 1)
