"""Retry delays (S9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, seconds
from holdfast.policy.retry import MAX_WAIT, backoff, clamp_wait
from tests.unit.policy.strategies import any_spans, attempts, random_numbers, rules, spans


def without_jitter(rule: RetryRule, attempt: int) -> int:
    """Return the delay without jitter, as the documentation defines it."""
    if rule.delays:
        return rule.delays[min(attempt, len(rule.delays)) - 1]
    return min(rule.cap, rule.base << (attempt - 1))


@given(rules(), attempts, random_numbers)
def test_a_delay_is_within_the_jitter_around_the_capped_exponential(rule: RetryRule, attempt: int, rand: float) -> None:
    """S9: within [w·(1−j), w·(1+j)], w = min(cap, base·2^(n−1)); rounding may move it by a microsecond."""
    wait, plain = backoff(rule, attempt, rand), without_jitter(rule, attempt)

    assert min(plain * (1 - rule.jitter) - 1, MAX_WAIT) <= wait <= plain * (1 + rule.jitter) + 1
    assert 0 <= wait <= MAX_WAIT
    assert type(wait) is int


@given(rules(), attempts)
def test_a_delay_without_jitter_is_not_random(rule: RetryRule, attempt: int) -> None:
    exact = RetryRule(rule.base, rule.cap, 0.0, rule.delays)

    assert {backoff(exact, attempt, rand) for rand in (0.0, 0.25, 0.5, 0.999)} == {without_jitter(exact, attempt)}


def test_full_jitter_ranges_from_zero_to_twice_the_delay() -> None:
    full = RetryRule(base=seconds(10), cap=seconds(10), jitter=1.0)

    assert backoff(full, 1, 0.0) == 0
    assert backoff(full, 1, 0.5) == seconds(10)
    assert seconds(19.9) < backoff(full, 1, 0.999999) <= seconds(20)


@given(spans, st.floats(0, 1), random_numbers, st.integers(1, 10**9))
def test_no_number_of_attempts_overflows_the_delay(base: Duration, jitter: float, rand: float, attempt: int) -> None:
    """S9: nothing overflows at attempt 1,000, nor at any other."""
    rule = RetryRule(base=base, cap=MAX_WAIT, jitter=jitter)

    assert 0 <= backoff(rule, max(attempt, 1_000), rand) <= MAX_WAIT


@given(st.lists(spans, min_size=1, max_size=100).map(tuple), attempts)
def test_the_last_entry_of_explicit_delays_repeats(delays: tuple[Duration, ...], attempt: int) -> None:
    rule = RetryRule(jitter=0.0, delays=delays)

    assert backoff(rule, attempt, 0.5) == (delays[attempt - 1] if attempt <= len(delays) else delays[-1])


@given(rules(), attempts, random_numbers)
def test_a_later_attempt_never_waits_less_without_jitter(rule: RetryRule, attempt: int, rand: float) -> None:
    exact = RetryRule(rule.base, rule.cap, 0.0)

    assert backoff(exact, attempt, rand) <= backoff(exact, attempt + 1, rand)


@pytest.mark.parametrize(
    "attempt, wait", [(1, 1), (2, 2), (3, 4), (4, 8), (8, 128), (9, 256), (10, 300), (11, 300), (1_000, 300)]
)
def test_the_default_rule_doubles_from_one_second_to_five_minutes(attempt: int, wait: int) -> None:
    assert backoff(RetryRule(), attempt, 0.5) == seconds(wait)


@given(any_spans, spans)
def test_a_requested_wait_is_clamped_to_its_bounds(requested: Duration, maximum: Duration) -> None:
    wait = clamp_wait(requested, maximum=maximum)

    assert 0 <= wait <= maximum
    assert wait == requested or not 0 <= requested <= maximum
