"""What may be submitted: each bound of each field (T10, T17, T41), and what is accepted is stored as it is."""

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
from tests.unit.policy.strategies import SOME_ID, accepted, payloads, rules, spans

LAST_INSTANT = 253_402_300_799_999_999
NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"


def refusal(**fields: Any) -> Invalid:
    """The error that such a submission gets."""
    with pytest.raises(Invalid) as caught:
        accepted(**fields)
    assert str(caught.value)
    return caught.value


def nested(levels: int) -> Any:
    """A payload of so many lists in each other."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_the_bounds_are_those_that_were_promised() -> None:
    """T17 and T41."""
    assert MAX_PAYLOAD_BYTES == 256 * 1024
    assert MAX_PAYLOAD_DEPTH == 32
    assert MAX_PAYLOAD_KEYS == 10_000
    assert MAX_ATTEMPTS == 1_000
    assert MAX_DURATION == 366 * 86_400 * 1_000_000
    assert MAX_KEY_LENGTH == 255


def test_a_bare_submission_gets_the_defaults() -> None:
    assert accepted() == NewJob(SOME_ID, JobSpec("send"), payload=b"null", max_attempts=5)
    assert (JobSpec("send").tenant, JobSpec("send").queue) == ("default", "default")


# Payloads


@given(payloads)
def test_an_accepted_payload_comes_back_as_it_was(payload: Any) -> None:
    back = json.decode(encode_payload(payload))

    assert back == payload
    assert json.encode(back) == encode_payload(payload)


@given(payloads)
def test_what_was_read_from_json_is_kept_the_same_without_a_walk(payload: Any) -> None:
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
    ids=["depth", "keys", "text", "size", "U+0000", "U+0000 in a name"],
)
def test_what_was_read_from_json_is_refused_all_the_same(payload: Any) -> None:
    """T17."""
    with pytest.raises(Invalid) as walked:
        encode_payload(payload)
    with pytest.raises(Invalid) as read:
        encode_payload(payload, from_json=True)
    assert (str(read.value), read.value.pointer) == (str(walked.value), walked.value.pointer)


@pytest.mark.parametrize(
    "payload",
    [nested(32), {str(n): n for n in range(10_000)}, "x" * 65_536, [[]] * 40],
    ids=["depth", "keys", "text", "lists"],
)
def test_what_was_read_from_json_may_go_as_far_as_the_limits(payload: Any) -> None:
    assert encode_payload(payload, from_json=True) == encode_payload(payload)


@given(st.integers())
@pytest.mark.parametrize("sign", [1, -1])
def test_a_whole_number_stays_exact_however_big(sign: int, n: int) -> None:
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
def test_what_is_no_json_number_is_refused_where_it_stands(
    number: float, where: str, wrap: Callable[[float], Any]
) -> None:
    """T17: NaN and infinities."""
    assert refusal(payload=wrap(number)).pointer == where


class Colour(IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


FOREIGN = [b"bytes", {1, 2}, Decimal(1), datetime(2026, 1, 1), object(), 1j, range(3), Colour.RED, Text("x"), print]  # noqa: DTZ001


@pytest.mark.parametrize("value", FOREIGN, ids=lambda value: type(value).__name__)
def test_what_json_would_change_or_lose_is_refused(value: object) -> None:
    """T23: nothing but JSON goes in."""
    assert refusal(payload=value).pointer == "/payload"
    assert refusal(payload=[{"deep": value}]).pointer == "/payload/0/deep"


@pytest.mark.parametrize("name", [1, None, 1.5, True, (1, 2), b"a"])
def test_a_key_that_is_no_text_is_refused(name: object) -> None:
    assert refusal(payload={"a": {name: 1}}).pointer.startswith("/payload/a")


@pytest.mark.parametrize("payload", ["\ud800", ["ok", "\udfff"], {"a": "x\ud83d"}, {"\ud800": 1}])
def test_a_lone_surrogate_is_refused(payload: Any) -> None:
    """T17: it is no text that UTF-8 can carry."""
    assert refusal(payload=payload).pointer == "/payload"


@pytest.mark.parametrize("number", [math.nan, object()])
def test_a_refusal_can_always_be_written_into_an_answer(number: object) -> None:
    error = refusal(payload={"\ud800": number})

    assert f"{error} {error.pointer}".encode()


def test_a_pointer_is_escaped_as_json_pointers_are() -> None:
    assert refusal(payload={"a/b": {"~": math.nan}}).pointer == "/payload/a~1b/~0"
    assert refusal(payload={"": {"a": math.nan}}).pointer == "/payload//a"


def test_a_payload_may_be_nested_to_the_bound_and_not_deeper() -> None:
    assert accepted(payload=nested(MAX_PAYLOAD_DEPTH)).payload
    assert refusal(payload=nested(MAX_PAYLOAD_DEPTH + 1)).pointer.startswith("/payload")
    assert refusal(payload={"a": nested(MAX_PAYLOAD_DEPTH)}).pointer.startswith("/payload")


def test_a_payload_nested_a_hundred_thousand_levels_is_refused_like_any_other() -> None:
    """T17: no recursion error."""
    assert refusal(payload=nested(100_000)).pointer.startswith("/payload")


def test_a_payload_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert refusal(payload=endless).pointer.startswith("/payload")


def test_all_objects_of_a_payload_share_the_bound_on_keys() -> None:
    half = {str(n): 0 for n in range(MAX_PAYLOAD_KEYS // 2)}

    assert accepted(payload=[half, half]).payload
    assert refusal(payload=[half, half, {"one": "more"}]).pointer.startswith("/payload")


def test_a_payload_may_have_256_kilobytes_and_not_one_byte_more() -> None:
    texts = ["x" * (MAX_PAYLOAD_BYTES // 8 - 3)] * 8  # each with two quotes and a comma
    largest = [*texts[:-1], texts[-1][:-1]]  # all with two brackets, and one comma fewer

    assert len(accepted(payload=largest).payload) == MAX_PAYLOAD_BYTES
    error = refusal(payload=texts)
    assert type(error) is PayloadTooLarge
    assert error.pointer == "/payload"


def test_bytes_count_not_characters() -> None:
    assert type(refusal(payload=["é" * (MAX_PAYLOAD_BYTES // 8)] * 4)) is PayloadTooLarge


def test_a_text_longer_than_any_payload_is_told_to_be_too_large() -> None:
    assert type(refusal(payload="x" * (MAX_PAYLOAD_BYTES + 1))) is PayloadTooLarge


# Names


@pytest.mark.parametrize("field", ["type", "queue", "tenant"])
class TestANameField:
    @given(st.text(NAME, min_size=1, max_size=1), st.text(NAME + ".:/@+-", max_size=127))
    def test_takes_letters_digits_and_some_marks(self, field: str, first: str, rest: str) -> None:
        assert getattr(accepted(**{field: first + rest}).spec, field) == first + rest

    @pytest.mark.parametrize(
        "value",
        ["", "x" * 129, ".x", "-x", "/x", "a b", "a\n", "a\x00", "é", "a\ud800", "a'b", "a;b", 5, None, b"a"],
        ids=repr,
    )
    def test_refuses_anything_else_by_its_name(self, field: str, value: object) -> None:
        assert refusal(**{field: value}).pointer == f"/{field}"

    def test_refuses_100_kilobytes_with_a_short_message(self, field: str) -> None:
        """T21."""
        assert len(str(refusal(**{field: "x" * 100_000}))) < 300


@pytest.mark.parametrize("field", ["concurrency_key", "idempotency_key"])
class TestAKeyField:
    @given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255))
    def test_takes_printable_ascii(self, field: str, value: str) -> None:
        assert getattr(accepted(**{field: value}).spec, field) == value

    @pytest.mark.parametrize("value", ["", "x" * 256, "a\tb", "a\n", "\x7f", "é", "\x00", "\ud800", 5, b"a"], ids=repr)
    def test_refuses_anything_else_by_its_name(self, field: str, value: object) -> None:
        """T17: at most 255 printable ASCII characters."""
        assert refusal(**{field: value}).pointer == f"/{field}"


# Numbers and times

WHOLE_NUMBERS = [
    ("max_attempts", 1, MAX_ATTEMPTS),
    ("priority", -1_000, 1_000),
    ("cost", 1, MAX_COST),
    ("scheduled_at", 0, LAST_INSTANT),
    ("deadline", 0, LAST_INSTANT),
    ("delay", 0, MAX_DURATION),
    ("timeout", 1, MAX_DURATION),
]


@pytest.mark.parametrize("field, least, most", WHOLE_NUMBERS)
class TestANumberField:
    @given(data=st.data())
    def test_takes_what_lies_within_its_bounds(self, field: str, least: int, most: int, data: st.DataObject) -> None:
        for value in (least, most, data.draw(st.integers(least, most))):
            job = accepted(**{field: value})
            assert getattr(job if field == "max_attempts" else job.spec, field) == value

    @given(data=st.data())
    def test_refuses_what_lies_outside_by_its_name(
        self, field: str, least: int, most: int, data: st.DataObject
    ) -> None:
        outside = data.draw(st.integers(max_value=least - 1) | st.integers(min_value=most + 1))
        for value in (least - 1, most + 1, outside):
            assert refusal(**{field: value}).pointer == f"/{field}"

    @pytest.mark.parametrize(
        "value", [True, 1.0, 1.5, math.nan, math.inf, "1", [1], 10**400], ids=lambda v: repr(v)[:8]
    )
    def test_refuses_what_is_no_whole_number(self, field: str, least: int, most: int, value: object) -> None:
        """T41."""
        assert refusal(**{field: value}).pointer == f"/{field}"


def test_the_engine_s_own_default_of_attempts_is_checked_too() -> None:
    with pytest.raises(Invalid) as caught:
        submission.build_job(JobSpec("send"), SOME_ID, max_attempts=0)
    assert caught.value.pointer == "/max_attempts"


def test_a_time_and_a_delay_exclude_each_other() -> None:
    assert refusal(scheduled_at=1, delay=1).pointer == "/delay"


# Retry


@given(rules())
def test_a_sensible_retry_rule_is_taken_as_it_is(rule: RetryRule) -> None:
    assert accepted(retry=rule).spec.retry == rule


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
def test_a_retry_rule_that_makes_no_sense_is_refused_by_its_field(pointer: str, rule: dict[str, Any]) -> None:
    assert refusal(retry=RetryRule(**rule)).pointer == pointer


# Tags and uniqueness


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=100), max_size=20)
)
def test_tags_are_any_text_without_control_characters(tags: list[str]) -> None:
    assert accepted(tags=tuple(tags)).spec.tags == tuple(tags)


@pytest.mark.parametrize("tag", ["", "x" * 101, "a\n", "\x00", "\x85", "\u2028", "\u2029", "\ud800", 5, None], ids=repr)
def test_a_tag_that_is_none_is_refused_by_its_index(tag: object) -> None:
    assert refusal(tags=("fine", tag)).pointer == "/tags/1"


def test_there_are_at_most_twenty_tags() -> None:
    assert len(accepted(tags=("t",) * 20).spec.tags) == 20
    assert refusal(tags=("t",) * 21).pointer == "/tags"


@given(spans, st.sampled_from(["return", "replace", "reject"]))
def test_uniqueness_is_a_key_a_span_and_what_to_do(within: Duration, on_conflict: Any) -> None:
    unique = accepted(unique=UniqueSpec(within=within, on_conflict=on_conflict)).unique

    assert unique == Unique(unique.key if unique else "", within, on_conflict)


@pytest.mark.parametrize("within", [-1, LONG, 1.5])
def test_the_span_of_uniqueness_has_bounds(within: Any) -> None:
    assert refusal(unique=UniqueSpec(within=within)).pointer == "/unique/within"


def test_the_parts_of_a_unique_key_are_few() -> None:
    """T21: each is looked up in the payload."""
    assert refusal(payload={"a": 1}, unique=UniqueSpec(by=("payload.a",) * 10_000)).pointer == "/unique/by"


@pytest.mark.parametrize("part", ["tenant", "", "payload.gone", 5])
def test_a_part_of_a_unique_key_that_does_not_exist_is_refused(part: Any) -> None:
    assert refusal(payload={}, unique=UniqueSpec(by=(part,))).pointer == "/unique/by"


# Idempotency


@given(payloads)
def test_only_a_submission_with_an_idempotency_key_is_fingerprinted(payload: Any) -> None:
    assert accepted(payload=payload).fingerprint == b""
    assert len(accepted(payload=payload, idempotency_key="k").fingerprint) == 16


def test_a_repeated_submission_has_the_same_fingerprint_whatever_its_id() -> None:
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


def test_a_deadline_before_its_own_time_is_refused() -> None:
    assert accepted(scheduled_at=5, deadline=6).spec.deadline == 6
    with pytest.raises(Invalid, match="could never start") as refused:
        accepted(scheduled_at=5, deadline=5)
    assert refused.value.pointer == "/deadline"
