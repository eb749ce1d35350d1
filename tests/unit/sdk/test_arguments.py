"""Arguments are checked against the annotations at enqueue and again at run time."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CONTEXT, Invalid
from holdfast.worker.handlers.signature import Arguments

if TYPE_CHECKING:
    from holdfast import SyncContext

SOME_ID = UUID("01890000-0000-7000-8000-000000000001")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Address:
    street: str
    number: int = 1


class Order(msgspec.Struct):
    id: UUID
    lines: list[Address]


class Options(TypedDict, total=False):
    loud: bool


class Model:
    """Interface of the models of validation libraries."""

    def __init__(self, n):
        self.n = n

    @classmethod
    def model_validate(cls, value):
        if not isinstance(value, dict) or not isinstance(value.get("n"), int):
            raise ValueError("n must be a number")
        return cls(value["n"])

    def model_dump(self, *, mode):
        return {"n": self.n}

    def __eq__(self, other):
        return type(other) is Model and other.n == self.n

    __hash__ = None


def everything(
    a: int,
    b: str = "",
    *,
    key: UUID | None = None,
    at: datetime | None = None,
    day: date | None = None,
    span: timedelta | None = None,
    price: Decimal | None = None,
    raw: bytes = b"",
    colour: Colour = Colour.RED,
    level: Level | None = None,
    address: Address | None = None,
    order: Order | None = None,
    options: Options | None = None,
    by_id: dict[UUID, int] | None = None,
    pair: tuple[int, str] | None = None,
    some: set[int] | None = None,
    word: Literal["a", "b"] = "a",
    positive: Annotated[int, msgspec.Meta(gt=0)] = 1,
    ratio: float = 0.5,
    model: Model | None = None,
    anything=None,
    any_json: Any = None,
    ctx: SyncContext = CONTEXT,
) -> None: ...


ARGUMENTS = Arguments(everything, "everything")


def there_and_back(*args, **kwargs):
    return ARGUMENTS.decode(msgspec.json.encode(ARGUMENTS.check(args, kwargs)))


@pytest.mark.parametrize(
    "name, value",
    [
        ("b", "grüße"),
        ("key", SOME_ID),
        ("key", None),
        ("at", NOON),
        ("day", date(2026, 3, 1)),
        ("span", timedelta(seconds=90)),
        ("price", Decimal("12.30")),
        ("raw", b"\x00\xff"),
        ("colour", Colour.RED),
        ("level", Level.HIGH),
        ("address", Address("Elm", 3)),
        ("order", Order(SOME_ID, [Address("Elm")])),
        ("options", {"loud": True}),
        ("by_id", {SOME_ID: 1}),
        ("pair", (1, "x")),
        ("some", {1, 2}),
        ("word", "b"),
        ("positive", 7),
        ("ratio", 0.25),
        ("model", Model(3)),
        ("anything", {"a": [1, 2.5, None, True, "x"]}),
        ("any_json", [1]),
    ],
)
def test_an_argument_is_decoded_as_its_annotation(name, value):
    back = there_and_back(1, **{name: value})
    assert back == {"a": 1, name: value}
    assert type(back[name]) is type(value)


def test_the_payload_contains_only_the_given_arguments():
    assert ARGUMENTS.check((1,), {}) == {"a": 1}
    assert ARGUMENTS.check((), {"a": 1, "b": ""}) == {"a": 1, "b": ""}


def test_arguments_may_be_given_in_their_json_form():
    assert there_and_back(1, key=str(SOME_ID), address={"street": "Elm"}) == {
        "a": 1,
        "key": SOME_ID,
        "address": Address("Elm"),
    }


def test_a_caller_cannot_pass_the_context():
    assert ARGUMENTS.context == "ctx"
    with pytest.raises(Invalid, match="passed by the worker") as refused:
        ARGUMENTS.check((1,), {"ctx": None})
    assert refused.value.pointer == "/payload/ctx"


def test_the_context_parameter_may_be_in_any_position():
    def work(ctx: SyncContext, n: int): ...

    arguments = Arguments(work, "work")
    assert (arguments.context, arguments.check((3,), {})) == ("ctx", {"n": 3})


def test_the_context_parameter_may_have_a_default():
    def work(n: int, ctx: SyncContext | None = None): ...

    assert Arguments(work, "work").context == "ctx"


@pytest.mark.parametrize(
    "args, kwargs, pointer, said",
    [
        (("x",), {}, "/payload/a", "everything: a: expected int, got str"),
        ((True,), {}, "/payload/a", "everything: a: expected int, got bool"),
        ((), {}, "/payload/a", "the argument 'a' is missing"),
        ((1, "x", 3), {}, "/payload", "takes 2 positional arguments and got 3"),
        ((1,), {"a": 2}, "/payload/a", "got 'a' twice"),
        ((1,), {"zzz": 2}, "/payload/zzz", "has no argument 'zzz'"),
        ((1, SOME_ID), {}, "/payload/b", "expected str, got uuid"),
        ((1,), {"key": "x"}, "/payload/key", "invalid UUID"),
        ((1,), {"at": 5}, "/payload/at", "expected datetime | None, got int"),
        ((1,), {"colour": "blue"}, "/payload/colour", "invalid enum value 'blue'"),
        ((1,), {"address": {"street": 5}}, "/payload/address/street", "expected str, got int"),
        ((1,), {"address": Address("Elm", "x")}, "/payload/address/number", "expected int, got str"),
        ((1,), {"order": {"id": str(SOME_ID), "lines": [{}]}}, "/payload/order/lines/0/street", "is missing"),
        ((1,), {"by_id": {SOME_ID: "x"}}, "/payload/by_id", "expected int, got str"),
        ((1,), {"word": "c"}, "/payload/word", "invalid enum value 'c'"),
        ((1,), {"positive": 0}, "/payload/positive", "expected int >= 1"),
        ((1,), {"model": {"n": "x"}}, "/payload/model", "n must be a number"),
        ((1,), {"model": Model("x")}, "/payload/model", "n must be a number"),
    ],
)
def test_arguments_that_do_not_match_the_signature_are_rejected(args, kwargs, pointer, said):
    with pytest.raises(Invalid) as refused:
        ARGUMENTS.check(args, kwargs)
    assert refused.value.pointer == pointer
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "payload, pointer",
    [
        (b"null", "/payload/a"),
        (b"{}", "/payload/a"),
        (b"[]", "/payload"),
        (b'{"a":"x"}', "/payload/a"),
        (b'{"a":1,"c":2}', "/payload/c"),
        (b"{", "/payload"),
    ],
)
def test_a_payload_that_does_not_match_the_signature_is_rejected_at_run_time(payload, pointer):
    with pytest.raises(Invalid) as refused:
        ARGUMENTS.decode(payload)
    assert refused.value.pointer == pointer


def test_a_null_payload_fits_a_function_without_required_parameters():
    def work(n: int = 3): ...

    assert Arguments(work, "work").decode(b"null") == {}


def test_a_result_is_decoded_as_the_return_annotation():
    def orders() -> list[Order]: ...
    def says_nothing(): ...
    def cannot_be_read() -> pytest.Item: ...  # an abstract class: the value may be of another one
    def is_not_there() -> Nonsense: ...  # noqa: F821

    order = Order(SOME_ID, [])
    assert Arguments(orders, "orders").decode_result(msgspec.json.encode([order])) == [order]
    for function in (says_nothing, cannot_be_read, is_not_there):
        assert Arguments(function, "f").decode_result(b'{"a":1}') == {"a": 1}
    assert Arguments(orders, "orders").decode_result(None) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_any_json_passes_through_a_parameter_without_annotation(value):
    assert there_and_back(1, anything=value) == {"a": 1, "anything": value}


@given(json_values)
def test_every_accepted_value_can_be_run(value):
    for name in ("b", "key", "address", "by_id", "positive"):
        try:
            payload = ARGUMENTS.check((1,), {name: value})
        except Invalid:
            continue
        assert set(ARGUMENTS.decode(msgspec.json.encode(payload))) == {"a", name}
