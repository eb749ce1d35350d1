"""Instants and durations in integer microseconds, and strict parsing (T41, T21)."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.time import Duration, Instant, after, days, in_seconds, parse_duration, rfc3339, seconds

UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3_600 * 10**6, "d": 86_400 * 10**6}


@pytest.mark.parametrize(
    "value, micros",
    [
        (0, 0), (5, 5_000_000), (0.5, 500_000), ("90", 90_000_000), ("0.25", 250_000), ("5m", 300_000_000),
        ("1h30m", 5_400_000_000), ("250ms", 250_000), ("1.5s", 1_500_000), ("7d", 604_800_000_000), (" 3s ", 3_000_000),
        ("15us", 15), (1e-7, 0), (-0.0, 0),
    ],
)  # fmt: skip
def test_a_duration_is_parsed_from_seconds_or_text(value: float | str, micros: int) -> None:
    assert parse_duration(value) == micros
    assert type(parse_duration(value)) is int


@given(st.integers(0, 10**9), st.sampled_from(sorted(UNITS)))
def test_every_unit_is_parsed(n: int, unit: str) -> None:
    try:
        assert parse_duration(f"{n}{unit}") == n * UNITS[unit]
    except ValueError:
        assert n * UNITS[unit] >= 10**12 * UNITS["s"]


@given(st.lists(st.integers(0, 99), min_size=4, max_size=4))
def test_parts_of_a_duration_add_up(parts: list[int]) -> None:
    text = "".join(f"{n}{unit}" for n, unit in zip(parts, "dhms", strict=True))

    assert parse_duration(text) == sum(n * UNITS[unit] for n, unit in zip(parts, "dhms", strict=True))


@pytest.mark.parametrize(
    "text",
    ["", " ", "m", "-1", "-5m", "+5m", "5 m", "5m 3s", "1e3", "1e3s", "nan", "inf", "5x", "5M", "٥s", "５", "1m1",
     "1..5s", ".5s", "5.s", "0x5", "5m;", "5m\n3", "1_000", "P1D", "x" * 100_000, "1" * 100_000, "1s" * 50_000],
    ids=lambda text: ascii(text[:10]),
)  # fmt: skip
def test_an_invalid_duration_is_rejected_with_a_short_message(text: str) -> None:
    """T21: even for 100 KB of text."""
    with pytest.raises(ValueError, match="duration") as caught:
        parse_duration(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("number", [-1, -0.001, math.nan, math.inf, -math.inf, True, False, 10**12, 10**300])
def test_an_invalid_number_is_rejected(number: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(number)


@given(st.text(st.sampled_from("0123456789.dhmsu"), max_size=40))
def test_a_parsed_duration_fits_64_bits(text: str) -> None:
    """T41."""
    try:
        span = parse_duration(text)
    except ValueError:
        return
    assert 0 <= span < 2**63


@given(st.integers(0, 10**15))
def test_durations_and_instants_add_up(n: int) -> None:
    assert after(Instant(n), Duration(5)) == n + 5
    assert seconds(in_seconds(Duration(n))) == n
    assert days(1) == 86_400 * 10**6


@given(st.integers(0, 253_402_300_799_999_999))
def test_an_instant_is_formatted_in_utc_with_microseconds(micros: int) -> None:
    text = rfc3339(Instant(micros))

    assert len(text) == 27
    assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


@given(st.lists(st.integers(0, 253_402_300_799_999_999), min_size=2, max_size=10))
def test_formatted_instants_sort_by_time(instants: list[int]) -> None:
    assert [rfc3339(Instant(n)) for n in sorted(instants)] == sorted(rfc3339(Instant(n)) for n in instants)
