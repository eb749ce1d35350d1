"""What of the feed was seen: nothing is lost that appears late, and nothing waited for without end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.time import Instant
from holdfast.policy.gaps import GAP_TIMEOUT, MAX_GAP, Gap, GapTracker

NOW = Instant(1_000_000)


@given(st.permutations(list(range(1, 30))), st.lists(st.integers(1, 6), min_size=30, max_size=30))
def test_every_number_is_seen_once_in_whatever_order_they_appear(order: list[int], sizes: list[int]) -> None:
    """Whoever asks for what follows and for what is missing gets every row exactly once."""
    seen, there, got = GapTracker(0), set[int](), list[int]()
    left = list(order)
    for size in sizes:
        there |= set(left[:size])
        left = left[size:]
        late = [number for number in seen.missing() if number in there]
        fresh = sorted(number for number in there if number > seen.upto)
        seen.mark_seen([*late, *fresh], NOW)
        got += [*late, *fresh]
        assert set(range(1, seen.low_water + 1)) <= set(got)
    assert sorted(got) == list(range(1, 30))
    assert (seen.low_water, seen.gaps) == (29, [])


def test_the_low_water_stays_below_what_is_missing() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12, 15], NOW)
    assert (seen.upto, seen.low_water, seen.missing()) == (15, 10, [11, 13, 14])
    seen.mark_seen([11], NOW)
    assert seen.low_water == 12


def test_what_was_rolled_back_is_given_up_in_the_end() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12], NOW)
    seen.mark_seen([14], Instant(NOW + 5))
    seen.expire(Instant(NOW + GAP_TIMEOUT - 1))
    assert seen.missing() == [11, 13]
    seen.expire(Instant(NOW + GAP_TIMEOUT))
    assert (seen.missing(), seen.low_water) == ([13], 12)


def test_a_leap_of_the_numbers_is_not_waited_for_as_a_whole() -> None:
    seen = GapTracker(0)
    seen.mark_seen([10**9], NOW)
    assert seen.gaps == [Gap(10**9 - MAX_GAP, 10**9 - 1, NOW)]


def test_it_is_read_as_it_was_written() -> None:
    seen = GapTracker(10)
    seen.mark_seen([12, 15], NOW)
    assert GapTracker.read(seen.upto, seen.encode_gaps()) == seen
