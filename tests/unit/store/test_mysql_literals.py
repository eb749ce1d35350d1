"""Values as SQL text, for MySQL: whatever a value contains, it is never read as SQL (T22)."""

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
def test_a_value_is_one_literal_and_nothing_else(value: Any) -> None:
    assert ONE_LITERAL.fullmatch(literal(value))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_text_made_to_break_out_stays_a_text(text: str) -> None:
    assert ONE_LITERAL.fullmatch(literal(text))
    assert ONE_LITERAL.fullmatch(literal(text.encode()))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_keeps_every_character(text: str) -> None:
    written = literal(text)
    plain = re.fullmatch(r"_utf8mb4'(.*)'", written)

    assert (plain[1] if plain else bytes.fromhex(written.split("'")[1]).decode()) == text


@given(st.integers())
def test_a_number_keeps_every_digit(number: int) -> None:
    assert int(literal(number)) == number


@given(st.binary(), st.uuids())
def test_bytes_and_ids_keep_every_byte(value: bytes, made: UUID) -> None:
    assert bytes.fromhex(literal(value)[2:-1]) == value
    assert bytes.fromhex(literal(made)[2:-1]) == made.bytes


@pytest.mark.parametrize("value", [1.5, True, [1], {"a": 1}, object()], ids=lambda value: type(value).__name__)
def test_what_has_no_writing_is_refused_rather_than_guessed(value: object) -> None:
    with pytest.raises(KeyError):
        literal(value)


@given(st.lists(anything, min_size=1, max_size=5), st.integers(1, 4))
def test_sets_are_literals_with_commas_between(members: list[Any], times: int) -> None:
    one = ",".join(literal(member) for member in members)

    assert items(members) == f"({one})"
    assert values([members] * times) == ",".join([f"({one})"] * times)
    columns = [f"c{n}" for n in range(len(members))]
    assert table(columns, [members] * times).count(" UNION ALL SELECT ") >= times - 1
