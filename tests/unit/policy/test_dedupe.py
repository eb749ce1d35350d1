"""Keys that tell a repetition from something new (S10)."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import json

from holdfast.errors import Invalid
from holdfast.model.job import JobSpec
from holdfast.policy.dedupe import body_fingerprint, unique_key
from tests.unit.policy.strategies import payloads, texts

objects = st.dictionaries(texts, payloads, min_size=1, max_size=6)


def backwards(value: Any) -> Any:
    """The same value with the keys of each object in the opposite order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return [backwards(item) for item in value]
    return value


@given(payloads)
def test_the_order_of_keys_does_not_make_another_body(payload: Any) -> None:
    one, other = JobSpec("send", payload), JobSpec("send", backwards(payload))

    assert body_fingerprint(one) == body_fingerprint(other)


@given(payloads, payloads)
def test_another_payload_makes_another_body(one: Any, other: Any) -> None:
    assume(json.encode(one, order="deterministic") != json.encode(other, order="deterministic"))

    assert body_fingerprint(JobSpec("send", one)) != body_fingerprint(JobSpec("send", other))


ANOTHER: list[dict[str, Any]] = [
    {"type": "other"},
    {"tenant": "acme"},
    {"queue": "mail"},
    {"priority": 1},
    {"delay": 1},
    {"scheduled_at": 1},
    {"max_attempts": 7},
    {"timeout": 5},
    {"cost": 2},
    {"tags": ("red",)},
    {"deadline": 9},
    {"concurrency_key": "k"},
]


@pytest.mark.parametrize("change", ANOTHER, ids=lambda change: next(iter(change)))
def test_whatever_else_is_asked_makes_another_body(change: dict[str, Any]) -> None:
    """S10: the same key with another body is refused, so the body is all that was asked for."""
    assert body_fingerprint(JobSpec(**{"type": "send"} | change)) != body_fingerprint(JobSpec("send"))


def test_what_is_left_out_and_what_is_the_default_ask_for_the_same() -> None:
    assert body_fingerprint(JobSpec("send")) == body_fingerprint(
        JobSpec("send", None, "default", "default", priority=0)
    )


def key(payload: Any = None, *by: str, job_type: str = "send", queue: str = "mail") -> str:
    return unique_key(job_type, queue, json.encode(payload), by)


@given(payloads)
def test_a_unique_key_does_not_depend_on_the_order_of_keys(payload: Any) -> None:
    assert key(payload, "payload") == key(backwards(payload), "payload")


@given(payloads, payloads)
def test_what_is_not_named_does_not_count(one: Any, other: Any) -> None:
    assert key(one, queue="a") == key(other, queue="b")
    assert key(one, "queue") == key(other, "queue")


@given(objects, st.data())
def test_one_field_of_the_payload_can_be_the_key(payload: dict[str, Any], data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(sorted(payload)))
    same = {field: payload[field]}

    assert key(payload, f"payload.{field}") == key(same, f"payload.{field}")
    assert key(payload, f"payload.{field}") != key({field: [payload[field]]}, f"payload.{field}")


def test_each_part_that_is_named_counts() -> None:
    by = ("queue", "payload")
    keys = {
        key(1, *by),
        key(2, *by),
        key(1, *by, queue="other"),
        key(1, *by, job_type="other"),
        key(1, "queue"),
        key(1),
    }

    assert len(keys) == 6


def test_the_order_in_which_parts_are_named_does_not_count() -> None:
    assert key({"a": 1}, "queue", "payload.a") == key({"a": 1}, "payload.a", "queue", "type")


def test_a_field_and_a_whole_payload_of_the_same_look_differ() -> None:
    assert key({"a": 1}, "payload.a") != key({"a": 1}, "payload")
    assert key({"a": 1, "b": 2}, "payload.a") != key({"a": 1, "b": 1}, "payload.b")


@pytest.mark.parametrize("name", ["", "tenant", "payload_", "Payload", "queue.x", "type.x", "priority"])
def test_a_part_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        key({}, name)
    assert refusal.value.pointer == "/unique/by"


@pytest.mark.parametrize("payload", [{}, {"b": 1}, [1], "a", None, 5])
def test_a_field_that_the_payload_lacks_is_refused(payload: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        key(payload, "payload.a")
    assert refusal.value.pointer == "/unique/by"


@given(objects)
def test_a_key_fits_its_column_whatever_it_is_made_of(payload: dict[str, Any]) -> None:
    made = key(payload, "payload", "queue")

    assert len(made) == 40
    assert set(made) <= set("0123456789abcdef")
