"""Webhooks: headers, signatures and the classification of responses."""

import base64
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.model.time import seconds
from holdfast.policy.webhooks import (
    MAX_EXCERPT_BYTES,
    check_headers,
    classify_response,
    excerpt,
    parse_retry_after,
    signature,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_signature_matches_the_test_vector_of_the_standard():
    """T15: the vector that the Standard Webhooks libraries are tested with."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [key])
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_every_key_signs():
    """T15."""
    one, two = (signature("m", 1, b"x", [key]) for key in (b"one", b"two"))
    assert signature("m", 1, b"x", [b"one", b"two"]) == f"{one} {two}"


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_accepted_header_can_end_a_line(name, value):
    """T14."""
    try:
        accepted = check_headers({name: value})
    except Invalid:
        return
    ((name, value),) = accepted.items()
    assert (name + value).isascii()
    assert (name + value).replace("\t", "").isprintable()
    assert ":" not in name
    assert value == value.strip()


@given(st.text(max_size=40) | st.integers(-(10**30), 10**30).map(str))
def test_retry_after_is_capped_at_one_hour(text):
    """T35."""
    wait = parse_retry_after(text, NOW)
    assert wait is None or 0 <= wait <= seconds(3_600)


@pytest.mark.parametrize(
    "text, wait",
    [
        ("0", 0), ("17", 17), (" 17 ", 17), ("3601", 3_600), ("9" * 400, 3_600), ("-1", None), ("1.5", None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30), ("١٧", None), ("", None),
        (format_datetime(NOW - timedelta(days=30), usegmt=True), 0), ("Fri, 31 Feb 9999 99:99:99 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(text, wait):
    assert parse_retry_after(text, NOW) == (None if wait is None else seconds(wait))


@given(st.integers(100, 599))
def test_a_status_is_classified_as_delivered_retryable_or_permanent(status):
    verdict = classify_response(status, None, expected=[], retry_on=[], now=NOW)
    assert verdict.delivered is (200 <= status <= 299)
    assert verdict.destination_failed is (status == 429 or status >= 500)
    assert verdict.retryable is (verdict.destination_failed or status in (408, 425))
    assert not (verdict.delivered and (verdict.destination_failed or verdict.retryable))


@given(st.binary(max_size=8_000))
def test_an_excerpt_is_short_and_has_no_control_characters(body):
    """T35."""
    text = excerpt(body)
    assert len(text.encode()) <= MAX_EXCERPT_BYTES
    assert all(c.isprintable() or c in "\n\t" for c in text)
