"""Gaps of the change log: late rows are found, and gaps expire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.time import Instant
from holdfast.policy.gaps import GAP_TIMEOUT, MAX_GAP, Gap, GapTracker

NOW = Instant(1_000_000)


@given(st.permutations(list(range(1, 30))), st.lists(st.integers(1, 6), min_size=30, max_size=30))
def test_every_number_is_seen_once_in_any_order_of_appearance(order: list[int], sizes: list[int]) -> None:
    """A reader that queries new and missing numbers gets every row exactly once."""
    seen, committed, read = GapTracker(0), set[int](), list[int]()
    left = list(order)
    for size in sizes:
        committed |= set(left[:size])
        left = left[size:]
        late = [number for number in seen.missing() if number in committed]
        new = sorted(number for number in committed if number > seen.upto)
        seen.mark_seen([*late, *new], NOW)
        read += [*late, *new]
        assert set(range(1, seen.low_water + 1)) <= set(read)
    assert sorted(read) == list(range(1, 30))
    assert (seen.low_water, seen.gaps) == (29, [])


def test_the_low_water_mark_stays_below_missing_numbers() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12, 15], NOW)
    assert (seen.upto, seen.low_water, seen.missing()) == (15, 10, [11, 13, 14])
    seen.mark_seen([11], NOW)
    assert seen.low_water == 12


def test_a_gap_expires_after_its_timeout() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12], NOW)
    seen.mark_seen([14], Instant(NOW + 5))
    seen.expire(Instant(NOW + GAP_TIMEOUT - 1))
    assert seen.missing() == [11, 13]
    seen.expire(Instant(NOW + GAP_TIMEOUT))
    assert (seen.missing(), seen.low_water) == ([13], 12)


def test_a_large_jump_leaves_a_bounded_gap() -> None:
    seen = GapTracker(0)
    seen.mark_seen([10**9], NOW)
    assert seen.gaps == [Gap(10**9 - MAX_GAP, 10**9 - 1, NOW)]


def test_a_tracker_survives_encoding() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12, 15], NOW)
    assert GapTracker.read(seen.upto, seen.encode_gaps()) == seen
