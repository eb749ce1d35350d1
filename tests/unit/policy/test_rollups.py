"""Statistics: percentiles are exact within 10 %, and sums do not depend on the order."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.change_log import (
    ChangeBody,
    ChangeEntry,
    ChangeGroup,
    Histogram,
    JobChange,
    bucket_of,
    merge_histogram,
)
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
def test_a_percentile_has_an_error_of_at_most_ten_percent(spans: list[int], fraction: float) -> None:
    exact = sorted(spans)[max(0, math.ceil(fraction * len(spans)) - 1)]
    found = quantile(histogram(spans), fraction)

    assert found is not None
    assert abs(found - exact) <= max(1, 0.1 * exact)


@given(SPANS, SPANS)
def test_merged_histograms_equal_the_histogram_of_all(first: list[int], second: list[int]) -> None:
    assert merge_histogram(histogram(first), histogram(second)) == histogram([*first, *second])


def test_an_empty_histogram_has_no_percentile() -> None:
    assert quantile({}, 0.5) is None
    assert JobStats().failure_ratio is None


def test_a_negative_duration_counts_as_zero() -> None:
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
def test_stats_of_parts_add_up_to_the_stats_of_all(entries: list[ChangeEntry], cut: int) -> None:
    parts = rollups.add(rollups.count(entries[:cut]), rollups.count(entries[cut:]))

    assert parts == rollups.count(entries)
    assert rollups.downsample(parts, HOUR) == rollups.downsample(rollups.count(entries), HOUR)


@given(ENTRIES)
def test_the_stats_of_all_tenants_are_the_sum_of_each(entries: list[ChangeEntry]) -> None:
    counted = rollups.count(entries)
    of_all = rollups.total(stats for key, stats in counted.items() if key.tenant == ALL_TENANTS)
    of_each = rollups.total(stats for key, stats in counted.items() if key.tenant != ALL_TENANTS)

    assert of_all == of_each


@given(ENTRIES, st.sampled_from(["a", "b", ALL_TENANTS]))
def test_counting_one_tenant_gives_the_same_stats_as_counting_all(entries: list[ChangeEntry], tenant: str) -> None:
    among_all = {key: stats for key, stats in rollups.count(entries).items() if key.tenant == tenant}

    assert rollups.count(entries, only=tenant) == among_all


def test_listed_and_counted_changes_give_the_same_stats() -> None:
    job = new_job_id()
    listed = ChangeBody(c=[JobChange(job, "a", "q", "t", Status.READY.code, 0, 0)] * 2, new=True)
    counted = ChangeBody(g=[ChangeGroup("a", "q", "t", Status.READY.code, 2)], new=True)
    at = Instant(MINUTE + 1)

    assert rollups.count([ChangeEntry(1, at, listed)]) == rollups.count([ChangeEntry(1, at, counted)])
    assert rollups.count([ChangeEntry(1, at, listed)])[SeriesKey("a", Instant(MINUTE), "q", "t")].submitted == 2


def test_only_new_jobs_count_as_submitted() -> None:
    back = ChangeBody(g=[ChangeGroup("a", "q", "t", Status.READY.code, 2, 1)])

    (stats, _) = rollups.count([ChangeEntry(1, Instant(seconds(5)), back)]).values()
    assert (stats.submitted, stats.failed) == (0, 1)
