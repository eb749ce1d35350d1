"""Payloads are checked against the schema of their type, within a bounded number of steps."""

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest

from holdfast.policy.payload_schema import MAX_STEPS, compile_schema, invalid_payload
from holdfast.worker.handlers.signature import Arguments


@dataclass
class Line:
    sku: str
    amount: int


def order(
    order_id: int,
    lines: list[Line],
    *,
    kind: Literal["sale", "return"] = "sale",
    price: float | None = None,
    total: Decimal = Decimal(0),
    wait: timedelta | None = None,
    at: datetime | None = None,
    by: UUID | None = None,
    extra: dict[str, int] | None = None,
    anything: Any = None,
) -> None: ...


CHECK = compile_schema(Arguments(order, "order").schema())
GOOD = {"order_id": 1, "lines": [{"sku": "x", "amount": 2}]}


@pytest.mark.parametrize(
    "payload",
    [
        GOOD,
        GOOD | {"kind": "return", "price": 3, "total": "1.5", "wait": "PT5S", "extra": {"a": 1}},
        GOOD | {"total": 1.5, "anything": [{"x": None}], "price": None},
        GOOD | {"at": "2030-01-01T00:00:00Z", "by": str(UUID(int=1))},
    ],
)
def test_a_payload_that_the_handler_accepts_is_valid(payload):
    assert CHECK.fault(payload) is None
    Arguments(order, "order").decode(msgspec.json.encode(payload))


@pytest.mark.parametrize(
    "payload, pointer, problem",
    [
        (None, "/payload/order_id", "payload.order_id: it is missing"),
        ([1], "/payload", "payload: expected an object, got a list"),
        (GOOD | {"order_id": "1"}, "/payload/order_id", "expected a whole number, got a text"),
        (GOOD | {"order_id": True}, "/payload/order_id", "expected a whole number, got a boolean"),
        (GOOD | {"order_id": 1.5}, "/payload/order_id", "expected a whole number, got a number"),
        (GOOD | {"lines": [{"sku": "x"}]}, "/payload/lines/0/amount", "payload.lines.0.amount: it is missing"),
        (GOOD | {"kind": "gift"}, "/payload/kind", 'it must be one of "return", "sale"'),
        (GOOD | {"price": "1"}, "/payload/price", "expected a number or null, got a text"),
        (GOOD | {"extra": {"a/b": "x"}}, "/payload/extra/a~1b", "expected a whole number, got a text"),
        (GOOD | {"user": 1}, "/payload/user", "it is not known: the fields are order_id, lines, kind"),
    ],
)
def test_a_fault_names_the_field(payload, pointer, problem):
    error = invalid_payload("order", CHECK.fault(payload))
    assert error.pointer == pointer
    assert problem in str(error)


@pytest.mark.parametrize(
    "schema, value, problem",
    [
        ({"type": "string", "minLength": 1, "maxLength": 3}, "", "it has 0 characters; 1 to 3 are allowed"),
        ({"type": "array", "minItems": 2}, [1], "it has 1 items; 2 or more are allowed"),
        ({"type": "integer", "minimum": 5}, 4, "it must be at least 5"),
        ({"exclusiveMaximum": 5}, 5.0, "it must be less than 5"),
        ({"const": 1}, True, "it must be 1"),
        ({"type": ["string", "null"]}, 1, "expected a text or null, got a number"),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "no value is allowed here"),
        ({"allOf": [{"type": "integer"}, {"maximum": 3}]}, 4, "it must be at most 3"),
    ],
)
def test_other_keywords_are_checked(schema, value, problem):
    assert compile_schema(msgspec.json.encode(schema).decode()).fault(value).problem == problem


def test_a_schema_may_refer_to_itself():
    schema = '{"$ref":"#/$defs/T","$defs":{"T":{"type":"object","properties":{"next":{"$ref":"#/$defs/T"}}}}}'
    fault = compile_schema(schema).fault({"next": {"next": {"next": 1}}})
    assert fault.path == ("next", "next", "next")


def test_a_hostile_schema_has_a_bounded_cost():
    """A worker of a tenant chooses the schema; then the payload counts as valid."""
    both = [{"properties": {"x": {"$ref": "#"}}}] * 2
    doubling = compile_schema(msgspec.json.encode({"anyOf": both, "required": ["y"]}).decode())
    deep: Any = {}
    for _ in range(200):
        deep = {"x": deep, "y": 1}
    looping = compile_schema('{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}')
    assert doubling.fault(deep) is None
    assert looping.fault({}) is None
    assert compile_schema('{"items":{"type":"integer"}}').fault([1] * (MAX_STEPS + 1) + ["x"]) is None
    assert compile_schema('{"pattern":"(a+)+$"}').fault("a" * 50 + "b") is None


def count_calls(function, *args):
    """Return the number of Python function calls and generator steps, which does not depend on the machine."""
    calls = 0

    def profile(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return calls


DEEP: Any = {}
for _ in range(30):
    DEEP = {"x": DEEP}


@pytest.mark.parametrize(
    "schema, payload",
    [
        ({"items": {"enum": [f"v{n}" for n in range(1_500)]}}, ["v1499"] * 9_000),
        ({"items": {"enum": [{"a": n} for n in range(1_200)]}}, [{"a": 1_199}] * 9_000),
        ({"items": {"anyOf": [{"const": n} for n in range(900)]}}, [899] * 5_000),
        ({"allOf": [{"anyOf": [{"properties": {"x": {"$ref": "#"}}}] * 2}, {"const": 1}]}, DEEP),
    ],
)
def test_a_schema_that_is_made_to_be_expensive_takes_a_bounded_number_of_calls(schema, payload):
    """F35: a check runs on the event loop of the node, which other tenants use too."""
    check = compile_schema(msgspec.json.encode(schema).decode())
    assert count_calls(check.fault, payload) < 5 * MAX_STEPS


def test_an_enumeration_distinguishes_booleans_from_numbers_and_compares_objects():
    check = compile_schema('{"enum":[1,"a",null,{"a":[1]}]}')
    assert [check.fault(value) is None for value in (1, 1.0, "a", {"a": [1]})] == [True] * 4
    assert {check.fault(value).problem for value in (True, "b", {"a": [2]}, [])} == {
        'it must be one of 1, "a", null, {"a":[1]}'
    }


@pytest.mark.parametrize(
    "text", ["", "[]x", '"text"', '{"$ref":"#/nowhere"}', '{"type":"nonsense"}', '{"properties":3}']
)
def test_an_unusable_schema_checks_nothing(text):
    assert compile_schema(text) is None
