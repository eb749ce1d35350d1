"""How long to wait before the next attempt (S9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, seconds
from holdfast.policy.retry import MAX_WAIT, backoff, clamp_wait
from tests.unit.policy.strategies import any_spans, attempts, chances, rules, spans


def wanted(rule: RetryRule, attempt: int) -> int:
    """The wait without jitter, as the promise words it."""
    if rule.delays:
        return rule.delays[min(attempt, len(rule.delays)) - 1]
    return min(rule.cap, rule.base << (attempt - 1))


@given(rules(), attempts, chances)
def test_the_wait_stays_within_the_jitter_around_the_doubled_base_up_to_the_cap(
    rule: RetryRule, attempt: int, rand: float
) -> None:
    """S9: within [w·(1−j), w·(1+j)], w = min(cap, base·2^(n−1)); rounding may move it by a microsecond."""
    wait, plain = backoff(rule, attempt, rand), wanted(rule, attempt)

    assert min(plain * (1 - rule.jitter) - 1, MAX_WAIT) <= wait <= plain * (1 + rule.jitter) + 1
    assert 0 <= wait <= MAX_WAIT
    assert type(wait) is int


@given(rules(), attempts)
def test_without_jitter_the_dice_decide_nothing(rule: RetryRule, attempt: int) -> None:
    calm = RetryRule(rule.base, rule.cap, 0.0, rule.delays)

    assert {backoff(calm, attempt, rand) for rand in (0.0, 0.25, 0.5, 0.999)} == {wanted(calm, attempt)}


def test_full_jitter_reaches_from_nothing_to_twice_the_wait() -> None:
    wild = RetryRule(base=seconds(10), cap=seconds(10), jitter=1.0)

    assert backoff(wild, 1, 0.0) == 0
    assert backoff(wild, 1, 0.5) == seconds(10)
    assert seconds(19.9) < backoff(wild, 1, 0.999999) <= seconds(20)


@given(spans, st.floats(0, 1), chances, st.integers(1, 10**9))
def test_no_number_of_attempts_overflows(base: Duration, jitter: float, rand: float, attempt: int) -> None:
    """S9: nothing overflows at attempt 1,000, nor at any other."""
    rule = RetryRule(base=base, cap=MAX_WAIT, jitter=jitter)

    assert 0 <= backoff(rule, max(attempt, 1_000), rand) <= MAX_WAIT


@given(st.lists(spans, min_size=1, max_size=100).map(tuple), attempts)
def test_an_explicit_list_is_followed_and_its_last_entry_repeats(delays: tuple[Duration, ...], attempt: int) -> None:
    rule = RetryRule(jitter=0.0, delays=delays)

    assert backoff(rule, attempt, 0.5) == (delays[attempt - 1] if attempt <= len(delays) else delays[-1])


@given(rules(), attempts, chances)
def test_without_jitter_a_later_attempt_never_waits_less(rule: RetryRule, attempt: int, rand: float) -> None:
    calm = RetryRule(rule.base, rule.cap, 0.0)

    assert backoff(calm, attempt, rand) <= backoff(calm, attempt + 1, rand)


@pytest.mark.parametrize(
    "attempt, wait", [(1, 1), (2, 2), (3, 4), (4, 8), (8, 128), (9, 256), (10, 300), (11, 300), (1_000, 300)]
)
def test_the_default_rule_doubles_from_one_second_to_five_minutes(attempt: int, wait: int) -> None:
    assert backoff(RetryRule(), attempt, 0.5) == seconds(wait)


@given(any_spans, spans)
def test_a_wait_somebody_asked_for_is_honoured_within_bounds(asked: Duration, maximum: Duration) -> None:
    wait = clamp_wait(asked, maximum=maximum)

    assert 0 <= wait <= maximum
    assert wait == asked or not 0 <= asked <= maximum
