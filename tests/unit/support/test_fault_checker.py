"""The checker of `bench/faults.py` detects planted violations, and nothing else."""

import pytest

from tests.support.fault_checker import (
    Attempt,
    Claim,
    Facts,
    Freeze,
    RateLimit,
    StoredJob,
    attempts_in,
    find_violations,
    limit_peaks,
    rate_excess,
)
from tests.support.ledger import Entry

RATE = RateLimit(per_second=5, burst=5)
CORRECT = Facts(
    acknowledged=[("a", "1"), ("b", "2"), ("b", "2")],
    stored=[StoredJob("a", "1", "succeeded", ("few",)), StoredJob("b", "2", "succeeded", ("few",))],
    effects={"a": 1, "b": 1},
    attempts=[Attempt("1", 1, 0.0, 1.0), Attempt("1", 2, 1.5, 2.0), Attempt("2", 1, 1.0, 2.0)],
    limits={"few": 2},
    claims={"slow": [Claim(100.0, 5), Claim(101.0, 5)]},
    rates={"slow": RATE},
    sampled={"few": 2},
)


def kinds(facts):
    return [violation.kind for violation in find_violations(facts)]


def test_a_correct_run_has_no_violation():
    assert find_violations(CORRECT) == []
    assert limit_peaks(CORRECT) == {"few": 2}


@pytest.mark.parametrize(
    "planted, kind",
    [
        ({"acknowledged": [("a", "1"), ("c", "3")]}, "job lost"),
        ({"acknowledged": [("a", "1"), ("b", "9")]}, "job under another id"),
        ({"acknowledged": [("b", "2"), ("b", "1")]}, "job under another id"),
        ({"stored": [*CORRECT.stored, StoredJob("b", "3", "succeeded")]}, "job doubled"),
        ({"stored": [*CORRECT.stored, StoredJob("c", "3", "running")]}, "job not succeeded"),
        ({"effects": {"a": 1, "b": 2}}, "effect doubled"),
        ({"effects": {"a": 1}}, "effect missing"),
        ({"attempts": [*CORRECT.attempts, Attempt("2", 1, 3.0, 4.0)]}, "claim started twice"),
        ({"attempts": [Attempt("1", 1, 0.0, 2.0), Attempt("1", 2, 1.0, 3.0)]}, "attempts of one job overlap"),
        ({"limits": {"few": 1}, "sampled": {}}, "concurrency limit exceeded"),
        ({"sampled": {"few": 3}}, "concurrency limit exceeded"),
        ({"claims": {"slow": [Claim(100.0, 5), Claim(100.021, 5)]}}, "rate exceeded"),
    ],
)
def test_a_planted_violation_is_detected(planted, kind):
    assert kinds(CORRECT._replace(**planted)) == [kind]


def test_a_small_excess_that_lasts_exceeds_the_rate():
    """A start too many in twenty adds up."""
    steady = [Claim(100 + n / 5, 1) for n in range(500)]
    assert rate_excess(steady, RATE)[0] == 0
    assert rate_excess([Claim(100 + n / 5.25, 1) for n in range(500)], RATE)[0] > 0


def test_a_claim_that_was_frozen_may_be_recorded_later_than_its_refill():
    """The worker had locked the limit at 100.0; the next claims follow when it has committed."""
    claims = [Claim(90.0, 1), Claim(103.0, 5), Claim(103.1, 5), Claim(103.3, 1)]
    assert rate_excess(claims, RATE)[0] > 0
    assert rate_excess(claims, RATE, [Freeze(frozenset({7}), 100.0, 103.0)])[0] == 0


def entry(event, fence, pid, at):
    return Entry(event, "1", "a", fence, fence, pid, at)


def test_an_attempt_ends_with_its_record_or_with_the_kill_of_its_process():
    entries = [
        entry("start", 1, 7, 1.0),
        entry("start", 2, 8, 3.0),
        entry("stopped", 2, 8, 4.0),
        entry("start", 3, 9, 5.0),
    ]
    found = attempts_in(entries, {7: [2.0], 8: [9.0]}, [])
    assert found.all == [Attempt("1", 1, 1.0, 2.0), Attempt("1", 2, 3.0, 4.0), Attempt("1", 3, 5.0, 5.0)]
    assert (found.interrupted, found.stale, found.unknown) == (1, 0, 1)


def test_a_killed_attempt_ends_with_its_own_process_if_the_process_id_is_used_again():
    entries = [entry("start", 1, 7, 1.0), entry("start", 2, 8, 3.0), entry("end", 2, 8, 4.0)]
    found = attempts_in(entries, {7: [2.0, 90.0]}, [])
    assert [each.end for each in found.all] == [2.0, 4.0]


def test_an_attempt_that_lost_its_lease_in_a_freeze_ends_with_the_freeze():
    frozen = [Freeze(frozenset({7}), 1.5, 6.0)]
    entries = [entry("start", 1, 7, 1.0), entry("start", 2, 8, 5.0), entry("end", 1, 7, 6.1), entry("end", 2, 8, 7.0)]
    found = attempts_in(entries, {}, frozen)
    assert (found.all[0].end, found.stale) == (1.5, 1)
    assert kinds(CORRECT._replace(attempts=found.all)) == []
    unfrozen = attempts_in(entries, {}, [])
    assert kinds(CORRECT._replace(attempts=unfrozen.all)) == ["attempts of one job overlap"]


def test_an_attempt_that_kept_its_lease_in_a_freeze_lasts_until_its_end():
    found = attempts_in([entry("start", 1, 7, 1.0), entry("end", 1, 7, 3.0)], {}, [Freeze(frozenset({7}), 1.5, 2.0)])
    assert found.all == [Attempt("1", 1, 1.0, 3.0)]
