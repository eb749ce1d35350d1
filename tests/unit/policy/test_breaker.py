"""When a destination rests and when it is tried again, decided without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.breaker import Breaker, BreakerState, Permit
from holdfast.model.time import Instant, seconds
from holdfast.policy import breaker as policy
from holdfast.policy.breaker import BreakerRules, destination_of

RULES = BreakerRules()
NOW = Instant(1_000_000_000)
CLOSED = Breaker("acme", "https://example.com:443")
PROBE = seconds(40)


def request_permit(breaker, now=NOW, rand=0.0):
    return policy.request_permit(breaker, now=now, probe_for=PROBE, rules=RULES, rand=rand)


def on_failure(breaker, *, probe=False, now=NOW):
    return policy.on_failure(breaker, "HTTP 500", probe=probe, now=now, rules=RULES)


def opened(breaker=CLOSED, now=NOW):
    for _ in range(RULES.failures):
        breaker = on_failure(breaker, now=now)
    return breaker


def test_a_destination_that_gave_no_trouble_is_open_to_all():
    assert request_permit(None) == request_permit(CLOSED) == (Permit(), None)
    assert policy.on_success(None) is None
    assert policy.on_success(CLOSED) is None


def test_it_opens_with_the_last_of_so_many_failures_in_a_row():
    breaker = CLOSED
    for n in range(1, RULES.failures):
        breaker = on_failure(breaker)
        assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, n)
        assert policy.on_success(breaker).failures == 0
    breaker = on_failure(breaker)
    assert (breaker.state, breaker.until) == (BreakerState.OPEN, NOW + RULES.cooldown)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, RULES.cooldown - 1))
def test_whoever_is_turned_away_comes_back_when_a_probe_is_due_or_a_little_later(rand, passed):
    permit, change = request_permit(opened(), Instant(NOW + passed), rand)
    left = RULES.cooldown - passed
    assert change is None
    assert left <= permit.wait <= left + max(left, seconds(1)) / 2


def test_nobody_waits_for_a_probe_until_it_is_given_up():
    breaker = opened()
    permit, probing = request_permit(breaker, breaker.until)
    assert permit == Permit(probe=True)
    assert probing.until == breaker.until + PROBE
    assert request_permit(probing, breaker.until) == (Permit(wait=RULES.cooldown), None)
    assert request_permit(probing, probing.until)[0] == Permit(probe=True)


def test_each_probe_that_fails_doubles_the_rest_up_to_its_longest():
    breaker, rests = opened(), []
    for _ in range(40):
        now = breaker.until
        _, probing = request_permit(breaker, now)
        breaker = on_failure(probing, probe=True, now=now)
        rests.append(breaker.until - now)
    assert rests[:3] == [seconds(30), seconds(60), seconds(60)]
    assert set(rests[2:]) == {RULES.max_cooldown}


def test_only_a_probe_tells_something_new_of_one_that_is_open():
    breaker = opened()
    _, probing = request_permit(breaker, breaker.until)
    assert on_failure(breaker) is None
    assert on_failure(breaker, probe=True) is None
    assert on_failure(probing) is None
    assert policy.on_success(probing).state is BreakerState.CLOSED


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
def test_a_destination_is_scheme_host_and_port(url, name):
    assert destination_of(url) == name
