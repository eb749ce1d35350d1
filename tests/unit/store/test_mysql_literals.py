"""MySQL literals: no value is ever interpreted as SQL (T22)."""

import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.mysql.literal import items, literal, table, values

ONE_LITERAL = re.compile(r"NULL|-?[0-9]+|_utf8mb4'[A-Za-z0-9_.:/@ -]*'|(_utf8mb4 )?x'([0-9a-f]{2})*'", re.ASCII)

anything = st.one_of(st.none(), st.integers(), st.binary(), st.uuids(), st.text(st.characters(exclude_categories=[])))
HOSTILE = [
    "'",
    "\\",
    "\\'",
    "';--",
    "x' OR 1=1 -- ",
    "\x00",
    "\x1a",
    "ö'",
    "\u02bc",
    "\xbf'",
    "%s",
    "--",
    "/*",
    ":a",
    "\n",
]


@given(anything)
def test_a_value_becomes_exactly_one_literal(value: Any) -> None:
    assert ONE_LITERAL.fullmatch(literal(value))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_an_injection_attempt_stays_a_literal(text: str) -> None:
    assert ONE_LITERAL.fullmatch(literal(text))
    assert ONE_LITERAL.fullmatch(literal(text.encode()))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_literal_keeps_every_character(text: str) -> None:
    encoded = literal(text)
    quoted = re.fullmatch(r"_utf8mb4'(.*)'", encoded)

    assert (quoted[1] if quoted else bytes.fromhex(encoded.split("'")[1]).decode()) == text


@given(st.integers())
def test_an_integer_literal_keeps_every_digit(number: int) -> None:
    assert int(literal(number)) == number


@given(st.binary(), st.uuids())
def test_literals_of_bytes_and_ids_keep_every_byte(value: bytes, uuid: UUID) -> None:
    assert bytes.fromhex(literal(value)[2:-1]) == value
    assert bytes.fromhex(literal(uuid)[2:-1]) == uuid.bytes


@pytest.mark.parametrize("value", [1.5, True, [1], {"a": 1}, object()], ids=lambda value: type(value).__name__)
def test_a_value_of_another_type_is_rejected(value: object) -> None:
    with pytest.raises(KeyError):
        literal(value)


@given(st.lists(anything, min_size=1, max_size=5), st.integers(1, 4))
def test_lists_and_rows_are_comma_separated_literals(members: list[Any], times: int) -> None:
    one = ",".join(literal(member) for member in members)

    assert items(members) == f"({one})"
    assert values([members] * times) == ",".join([f"({one})"] * times)
    columns = [f"c{n}" for n in range(len(members))]
    assert table(columns, [members] * times).count(" UNION ALL SELECT ") >= times - 1
