"""Circuit breaker decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.breaker import Breaker, BreakerState, Permit
from holdfast.model.time import Instant, seconds
from holdfast.policy.breaker import BreakerRules, destination_of, on_failure, on_success, request_permit

RULES = BreakerRules()
NOW = Instant(1_000_000_000)
CLOSED = Breaker("acme", "https://example.com:443")
PROBE = seconds(40)


def ask(breaker, now=NOW, rand=0.0):
    return request_permit(breaker, now=now, probe_for=PROBE, rules=RULES, rand=rand)


def fail(breaker, *, probe=False, now=NOW):
    return on_failure(breaker, "HTTP 500", probe=probe, now=now, rules=RULES)


def opened(breaker=CLOSED, now=NOW):
    for _ in range(RULES.failures):
        breaker = fail(breaker, now=now)
    return breaker


def test_a_healthy_destination_accepts_all_deliveries():
    assert ask(None) == ask(CLOSED) == (Permit(), None)
    assert on_success(None) is None
    assert on_success(CLOSED) is None


def test_a_breaker_opens_after_consecutive_failures():
    breaker = CLOSED
    for n in range(1, RULES.failures):
        breaker = fail(breaker)
        assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, n)
        assert on_success(breaker).failures == 0
    breaker = fail(breaker)
    assert (breaker.state, breaker.until) == (BreakerState.OPEN, NOW + RULES.cooldown)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, RULES.cooldown - 1))
def test_a_rejected_delivery_waits_until_a_probe_is_due_plus_jitter(rand, passed):
    permit, change = ask(opened(), Instant(NOW + passed), rand)
    left = RULES.cooldown - passed
    assert change is None
    assert left <= permit.wait <= left + max(left, seconds(1)) / 2


def test_the_wait_for_a_probe_in_flight_is_capped():
    breaker = opened()
    permit, probing = ask(breaker, breaker.until)
    assert permit == Permit(probe=True)
    assert probing.until == breaker.until + PROBE
    assert ask(probing, breaker.until) == (Permit(wait=RULES.cooldown), None)
    assert ask(probing, probing.until)[0] == Permit(probe=True)


def test_each_failed_probe_doubles_the_cooldown_up_to_the_maximum():
    breaker, cooldowns = opened(), []
    for _ in range(40):
        now = breaker.until
        _, probing = ask(breaker, now)
        breaker = fail(probing, probe=True, now=now)
        cooldowns.append(breaker.until - now)
    assert cooldowns[:3] == [seconds(30), seconds(60), seconds(60)]
    assert set(cooldowns[2:]) == {RULES.max_cooldown}


def test_only_the_result_of_a_probe_changes_an_open_breaker():
    breaker = opened()
    _, probing = ask(breaker, breaker.until)
    assert fail(breaker) is None
    assert fail(breaker, probe=True) is None
    assert fail(probing) is None
    assert on_success(probing).state is BreakerState.CLOSED


@pytest.mark.parametrize(
    "url, name",
    [
        ("https://example.com/a?b", "https://example.com:443"),
        ("http://Example.COM.:8080/", "http://example.com:8080"),
        ("https://[::1]/", "https://[::1]:443"),
        ("ftp://example.com/", None),
        ("https://[::1", None),
        ("https://h:99999/", None),
        ("", None),
    ],
)
def test_a_destination_consists_of_scheme_host_and_port(url, name):
    assert destination_of(url) == name
