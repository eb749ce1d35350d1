"""Validation of submissions: the bounds of each field (T10, T17, T41), and build values stay unchanged."""

import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from holdfast.errors import Invalid, PayloadTooLarge
from holdfast.model.bounds import (
    MAX_ATTEMPTS,
    MAX_COST,
    MAX_DURATION,
    MAX_KEY_LENGTH,
    MAX_PAYLOAD_BYTES,
    MAX_PAYLOAD_DEPTH,
    MAX_PAYLOAD_KEYS,
)
from holdfast.model.job import JobSpec, NewJob, RetryRule, Unique, UniqueSpec
from holdfast.model.time import Duration
from holdfast.policy import submission
from holdfast.policy.submission import encode_payload
from tests.unit.policy.strategies import SOME_ID, build, payloads, rules, spans

LAST_INSTANT = 253_402_300_799_999_999
NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"


def rejection(**fields: Any) -> Invalid:
    """Return the error of a submission with these fields."""
    with pytest.raises(Invalid) as caught:
        build(**fields)
    assert str(caught.value)
    return caught.value


def nested(levels: int) -> Any:
    """Return a payload of this many nested lists."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_the_bounds_are_the_documented_ones() -> None:
    """T17 and T41."""
    assert MAX_PAYLOAD_BYTES == 256 * 1024
    assert MAX_PAYLOAD_DEPTH == 32
    assert MAX_PAYLOAD_KEYS == 10_000
    assert MAX_ATTEMPTS == 1_000
    assert MAX_DURATION == 366 * 86_400 * 1_000_000
    assert MAX_KEY_LENGTH == 255


def test_a_bare_submission_gets_the_defaults() -> None:
    assert build() == NewJob(SOME_ID, JobSpec("send"), payload=b"null", max_attempts=5)
    assert (JobSpec("send").tenant, JobSpec("send").queue) == ("default", "default")


# Payloads


@given(payloads)
def test_an_accepted_payload_is_unchanged(payload: Any) -> None:
    back = json.decode(encode_payload(payload))

    assert back == payload
    assert json.encode(back) == encode_payload(payload)


@given(payloads)
def test_a_payload_from_json_is_encoded_the_same_on_the_fast_path(payload: Any) -> None:
    assert encode_payload(payload, from_json=True) == encode_payload(payload)


@pytest.mark.parametrize(
    "payload",
    [
        nested(33),
        {str(n): n for n in range(10_001)},
        "x" * 65_537,
        ["x" * 60_000] * 5,
        {"a": "\0"},
        {"\0": 1},
    ],
    ids=["depth", "keys", "string", "size", "U+0000", "U+0000 in a key"],
)
def test_an_invalid_payload_from_json_gets_the_same_error(payload: Any) -> None:
    """T17."""
    with pytest.raises(Invalid) as walked:
        encode_payload(payload)
    with pytest.raises(Invalid) as read:
        encode_payload(payload, from_json=True)
    assert (str(read.value), read.value.pointer) == (str(walked.value), walked.value.pointer)


@pytest.mark.parametrize(
    "payload",
    [nested(32), {str(n): n for n in range(10_000)}, "x" * 65_536, [[]] * 40],
    ids=["depth", "keys", "string", "lists"],
)
def test_a_payload_from_json_may_reach_every_limit(payload: Any) -> None:
    assert encode_payload(payload, from_json=True) == encode_payload(payload)


@given(st.integers())
@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_of_any_size_stays_exact(sign: int, n: int) -> None:
    for number in (n, sign * (2**53 + 1), sign * 2**63, sign * (2**64 + 1), sign * 10**300 + n):
        assert json.decode(encode_payload({"n": number})) == {"n": number}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "where, wrap",
    [
        ("/payload", lambda number: number),
        ("/payload/a", lambda number: {"a": number}),
        ("/payload/a/2/b", lambda number: {"a": [0, 0, {"b": number}]}),
    ],
)
def test_a_number_that_json_lacks_is_rejected_with_its_position(
    number: float, where: str, wrap: Callable[[float], Any]
) -> None:
    """T17: NaN and infinities."""
    assert rejection(payload=wrap(number)).pointer == where


class Colour(IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


NOT_JSON = [b"bytes", {1, 2}, Decimal(1), datetime(2026, 1, 1), object(), 1j, range(3), Colour.RED, Text("x"), print]  # noqa: DTZ001


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_a_value_that_json_would_change_or_lose_is_rejected(value: object) -> None:
    """T23: only JSON is accepted."""
    assert rejection(payload=value).pointer == "/payload"
    assert rejection(payload=[{"deep": value}]).pointer == "/payload/0/deep"


@pytest.mark.parametrize("name", [1, None, 1.5, True, (1, 2), b"a"])
def test_a_key_that_is_not_a_string_is_rejected(name: object) -> None:
    assert rejection(payload={"a": {name: 1}}).pointer.startswith("/payload/a")


@pytest.mark.parametrize("payload", ["\ud800", ["ok", "\udfff"], {"a": "x\ud83d"}, {"\ud800": 1}])
def test_a_lone_surrogate_is_rejected(payload: Any) -> None:
    """T17: UTF-8 cannot encode it."""
    assert rejection(payload=payload).pointer == "/payload"


@pytest.mark.parametrize("number", [math.nan, object()])
def test_an_error_can_always_be_encoded_in_a_response(number: object) -> None:
    error = rejection(payload={"\ud800": number})

    assert f"{error} {error.pointer}".encode()


def test_a_pointer_is_escaped_as_a_json_pointer() -> None:
    assert rejection(payload={"a/b": {"~": math.nan}}).pointer == "/payload/a~1b/~0"
    assert rejection(payload={"": {"a": math.nan}}).pointer == "/payload//a"


def test_a_payload_may_be_nested_up_to_the_limit() -> None:
    assert build(payload=nested(MAX_PAYLOAD_DEPTH)).payload
    assert rejection(payload=nested(MAX_PAYLOAD_DEPTH + 1)).pointer.startswith("/payload")
    assert rejection(payload={"a": nested(MAX_PAYLOAD_DEPTH)}).pointer.startswith("/payload")


def test_a_payload_nested_a_hundred_thousand_levels_is_rejected() -> None:
    """T17: no recursion error."""
    assert rejection(payload=nested(100_000)).pointer.startswith("/payload")


def test_a_payload_that_contains_itself_is_rejected() -> None:
    recursive: list[Any] = []
    recursive.append(recursive)

    assert rejection(payload=recursive).pointer.startswith("/payload")


def test_all_objects_of_a_payload_share_the_limit_of_keys() -> None:
    half = {str(n): 0 for n in range(MAX_PAYLOAD_KEYS // 2)}

    assert build(payload=[half, half]).payload
    assert rejection(payload=[half, half, {"one": "more"}]).pointer.startswith("/payload")


def test_a_payload_may_have_256_kibibytes_and_not_one_byte_more() -> None:
    texts = ["x" * (MAX_PAYLOAD_BYTES // 8 - 3)] * 8  # each with two quotes and a comma
    largest = [*texts[:-1], texts[-1][:-1]]  # all with two brackets, and one comma fewer

    assert len(build(payload=largest).payload) == MAX_PAYLOAD_BYTES
    error = rejection(payload=texts)
    assert type(error) is PayloadTooLarge
    assert error.pointer == "/payload"


def test_the_size_of_a_payload_is_counted_in_bytes() -> None:
    assert type(rejection(payload=["é" * (MAX_PAYLOAD_BYTES // 8)] * 4)) is PayloadTooLarge


def test_a_string_longer_than_any_payload_is_reported_as_too_large() -> None:
    assert type(rejection(payload="x" * (MAX_PAYLOAD_BYTES + 1))) is PayloadTooLarge


# Names


@pytest.mark.parametrize("field", ["type", "queue", "tenant"])
class TestANameField:
    @given(st.text(NAME, min_size=1, max_size=1), st.text(NAME + ".:/@+-", max_size=127))
    def test_accepts_letters_digits_and_some_punctuation(self, field: str, first: str, rest: str) -> None:
        assert getattr(build(**{field: first + rest}).spec, field) == first + rest

    @pytest.mark.parametrize(
        "value",
        ["", "x" * 129, ".x", "-x", "/x", "a b", "a\n", "a\x00", "é", "a\ud800", "a'b", "a;b", 5, None, b"a"],
        ids=repr,
    )
    def test_rejects_anything_else_with_its_pointer(self, field: str, value: object) -> None:
        assert rejection(**{field: value}).pointer == f"/{field}"

    def test_rejects_100_kilobytes_with_a_short_message(self, field: str) -> None:
        """T21."""
        assert len(str(rejection(**{field: "x" * 100_000}))) < 300


@pytest.mark.parametrize("field", ["concurrency_key", "idempotency_key"])
class TestAKeyField:
    @given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255))
    def test_accepts_printable_ascii(self, field: str, value: str) -> None:
        assert getattr(build(**{field: value}).spec, field) == value

    @pytest.mark.parametrize("value", ["", "x" * 256, "a\tb", "a\n", "\x7f", "é", "\x00", "\ud800", 5, b"a"], ids=repr)
    def test_rejects_anything_else_with_its_pointer(self, field: str, value: object) -> None:
        """T17: at maximum 255 printable ASCII characters."""
        assert rejection(**{field: value}).pointer == f"/{field}"


# Numbers and times

INTEGERS = [
    ("max_attempts", 1, MAX_ATTEMPTS),
    ("priority", -1_000, 1_000),
    ("cost", 1, MAX_COST),
    ("scheduled_at", 0, LAST_INSTANT),
    ("deadline", 0, LAST_INSTANT),
    ("delay", 0, MAX_DURATION),
    ("timeout", 1, MAX_DURATION),
]


@pytest.mark.parametrize("field, minimum, maximum", INTEGERS)
class TestANumberField:
    @given(data=st.data())
    def test_accepts_values_within_its_bounds(
        self, field: str, minimum: int, maximum: int, data: st.DataObject
    ) -> None:
        for value in (minimum, maximum, data.draw(st.integers(minimum, maximum))):
            job = build(**{field: value})
            assert getattr(job if field == "max_attempts" else job.spec, field) == value

    @given(data=st.data())
    def test_rejects_values_outside_its_bounds_with_its_pointer(
        self, field: str, minimum: int, maximum: int, data: st.DataObject
    ) -> None:
        outside = data.draw(st.integers(max_value=minimum - 1) | st.integers(min_value=maximum + 1))
        for value in (minimum - 1, maximum + 1, outside):
            assert rejection(**{field: value}).pointer == f"/{field}"

    @pytest.mark.parametrize(
        "value", [True, 1.0, 1.5, math.nan, math.inf, "1", [1], 10**400], ids=lambda v: repr(v)[:8]
    )
    def test_rejects_values_that_are_not_integers(self, field: str, minimum: int, maximum: int, value: object) -> None:
        """T41."""
        assert rejection(**{field: value}).pointer == f"/{field}"


def test_the_default_of_max_attempts_is_validated_too() -> None:
    with pytest.raises(Invalid) as caught:
        submission.build_job(JobSpec("send"), SOME_ID, max_attempts=0)
    assert caught.value.pointer == "/max_attempts"


def test_scheduled_at_and_delay_are_mutually_exclusive() -> None:
    assert rejection(scheduled_at=1, delay=1).pointer == "/delay"


# Retry


@given(rules())
def test_a_valid_retry_rule_is_unchanged(rule: RetryRule) -> None:
    assert build(retry=rule).spec.retry == rule


LONG = MAX_DURATION + 1


@pytest.mark.parametrize(
    "pointer, rule",
    [
        ("/retry/jitter", {"jitter": -0.01}),
        ("/retry/jitter", {"jitter": 1.01}),
        ("/retry/jitter", {"jitter": math.nan}),
        ("/retry/jitter", {"jitter": math.inf}),
        ("/retry/jitter", {"jitter": "1"}),
        ("/retry/base", {"base": -1}),
        ("/retry/base", {"base": LONG, "cap": LONG}),
        ("/retry/base", {"base": 1.5}),
        ("/retry/base", {"base": None}),
        ("/retry/cap", {"cap": LONG}),
        ("/retry/cap", {"base": 2, "cap": 1}),
        ("/retry/delays", {"delays": (1,) * 101}),
        ("/retry/delays/0", {"delays": (-1,)}),
        ("/retry/delays/2", {"delays": (1, 2, LONG)}),
        ("/retry/delays/1", {"delays": (1, 2.5)}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_invalid_retry_rule_is_rejected_with_its_pointer(pointer: str, rule: dict[str, Any]) -> None:
    assert rejection(retry=RetryRule(**rule)).pointer == pointer


# Tags and uniqueness


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=100), max_size=20)
)
def test_tags_are_strings_without_control_characters(tags: list[str]) -> None:
    assert build(tags=tuple(tags)).spec.tags == tuple(tags)


@pytest.mark.parametrize("tag", ["", "x" * 101, "a\n", "\x00", "\x85", "\u2028", "\u2029", "\ud800", 5, None], ids=repr)
def test_an_invalid_tag_is_rejected_with_its_index(tag: object) -> None:
    assert rejection(tags=("fine", tag)).pointer == "/tags/1"


def test_there_are_at_most_twenty_tags() -> None:
    assert len(build(tags=("t",) * 20).spec.tags) == 20
    assert rejection(tags=("t",) * 21).pointer == "/tags"


@given(spans, st.sampled_from(["return", "replace", "reject"]))
def test_uniqueness_has_a_key_a_period_and_a_conflict_rule(within: Duration, on_conflict: Any) -> None:
    unique = build(unique=UniqueSpec(within=within, on_conflict=on_conflict)).unique

    assert unique == Unique(unique.key if unique else "", within, on_conflict)


@pytest.mark.parametrize("within", [-1, LONG, 1.5])
def test_the_period_of_uniqueness_is_bounded(within: Any) -> None:
    assert rejection(unique=UniqueSpec(within=within)).pointer == "/unique/within"


def test_the_number_of_parts_of_a_unique_key_is_bounded() -> None:
    """T21: each part costs a lookup in the payload."""
    assert rejection(payload={"a": 1}, unique=UniqueSpec(by=("payload.a",) * 10_000)).pointer == "/unique/by"


@pytest.mark.parametrize("part", ["tenant", "", "payload.gone", 5])
def test_an_unknown_part_of_a_unique_key_is_rejected(part: Any) -> None:
    assert rejection(payload={}, unique=UniqueSpec(by=(part,))).pointer == "/unique/by"


# Idempotency


@given(payloads)
def test_only_a_submission_with_an_idempotency_key_is_fingerprinted(payload: Any) -> None:
    assert build(payload=payload).fingerprint == b""
    assert len(build(payload=payload, idempotency_key="k").fingerprint) == 16


def test_a_repeated_submission_has_the_same_fingerprint() -> None:
    """S10."""
    spec = JobSpec("send", {"a": 1}, idempotency_key="k")
    jobs = [submission.build_job(spec, SOME_ID, max_attempts=attempts) for attempts in (5, 7)]

    assert jobs[0].fingerprint == jobs[1].fingerprint


def test_a_spec_has_no_field_that_only_the_engine_may_set() -> None:
    """T10: no mass assignment."""
    internal = {
        "id",
        "status",
        "fence",
        "worker",
        "attempts",
        "releases",
        "generation",
        "seq",
        "created_at",
        "fingerprint",
    }

    assert internal.isdisjoint(JobSpec.__struct_fields__)


def test_a_deadline_before_scheduled_at_is_rejected() -> None:
    assert build(scheduled_at=5, deadline=6).spec.deadline == 6
    with pytest.raises(Invalid, match="could never start") as caught:
        build(scheduled_at=5, deadline=5)
    assert caught.value.pointer == "/deadline"
