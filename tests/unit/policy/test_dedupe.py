"""Fingerprints of submissions and unique keys (S10)."""

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
    """Return the same value with the keys of each object in reverse order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return [backwards(item) for item in value]
    return value


@given(payloads)
def test_a_fingerprint_does_not_depend_on_the_order_of_keys(payload: Any) -> None:
    one, other = JobSpec("send", payload), JobSpec("send", backwards(payload))

    assert body_fingerprint(one) == body_fingerprint(other)


@given(payloads, payloads)
def test_different_payloads_have_different_fingerprints(one: Any, other: Any) -> None:
    assume(json.encode(one, order="deterministic") != json.encode(other, order="deterministic"))

    assert body_fingerprint(JobSpec("send", one)) != body_fingerprint(JobSpec("send", other))


OTHER_FIELDS: list[dict[str, Any]] = [
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


@pytest.mark.parametrize("change", OTHER_FIELDS, ids=lambda change: next(iter(change)))
def test_every_field_of_a_submission_changes_its_fingerprint(change: dict[str, Any]) -> None:
    """S10: a key reused for different content is rejected, so the fingerprint covers every field."""
    assert body_fingerprint(JobSpec(**{"type": "send"} | change)) != body_fingerprint(JobSpec("send"))


def test_an_omitted_field_and_its_default_have_the_same_fingerprint() -> None:
    assert body_fingerprint(JobSpec("send")) == body_fingerprint(
        JobSpec("send", None, "default", "default", priority=0)
    )


def key(payload: Any = None, *by: str, job_type: str = "send", queue: str = "mail") -> str:
    return unique_key(job_type, queue, json.encode(payload), by)


@given(payloads)
def test_a_unique_key_does_not_depend_on_the_order_of_keys(payload: Any) -> None:
    assert key(payload, "payload") == key(backwards(payload), "payload")


@given(payloads, payloads)
def test_a_unique_key_ignores_parts_that_are_not_named(one: Any, other: Any) -> None:
    assert key(one, queue="a") == key(other, queue="b")
    assert key(one, "queue") == key(other, "queue")


@given(objects, st.data())
def test_a_unique_key_can_use_one_field_of_the_payload(payload: dict[str, Any], data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(sorted(payload)))
    same = {field: payload[field]}

    assert key(payload, f"payload.{field}") == key(same, f"payload.{field}")
    assert key(payload, f"payload.{field}") != key({field: [payload[field]]}, f"payload.{field}")


def test_a_unique_key_depends_on_every_named_part() -> None:
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


def test_a_unique_key_does_not_depend_on_the_order_of_the_parts() -> None:
    assert key({"a": 1}, "queue", "payload.a") == key({"a": 1}, "payload.a", "queue", "type")


def test_a_field_and_a_whole_payload_with_the_same_value_have_different_unique_keys() -> None:
    assert key({"a": 1}, "payload.a") != key({"a": 1}, "payload")
    assert key({"a": 1, "b": 2}, "payload.a") != key({"a": 1, "b": 1}, "payload.b")


@pytest.mark.parametrize("name", ["", "tenant", "payload_", "Payload", "queue.x", "type.x", "priority"])
def test_an_unknown_part_is_rejected(name: str) -> None:
    with pytest.raises(Invalid) as rejection:
        key({}, name)
    assert rejection.value.pointer == "/unique/by"


@pytest.mark.parametrize("payload", [{}, {"b": 1}, [1], "a", None, 5])
def test_a_field_that_the_payload_lacks_is_rejected(payload: Any) -> None:
    with pytest.raises(Invalid) as rejection:
        key(payload, "payload.a")
    assert rejection.value.pointer == "/unique/by"


@given(objects)
def test_a_unique_key_always_fits_its_column(payload: dict[str, Any]) -> None:
    found = key(payload, "payload", "queue")

    assert len(found) == 40
    assert set(found) <= set("0123456789abcdef")
