"""Texts from outside, made fit to be stored and shown (T25, T26)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from holdfast.policy.text import sanitize

anything = st.text(st.characters(exclude_categories=[]))


@given(anything, st.integers(1, 200))
def test_what_is_cleaned_can_be_stored_anywhere(text: str, longest: int) -> None:
    fit = sanitize(text, longest)

    assert len(fit) <= longest
    assert "\x00" not in fit
    assert json.decode(json.encode(fit)) == fit


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=100))
def test_what_is_fit_already_stays_as_it_is(text: str) -> None:
    assert sanitize(text, 100) == text


@pytest.mark.parametrize(
    "text, fit", [("a\x00b", r"a\x00b"), ("\ud800", r"\ud800"), ("'\udcff'", r"'\udcff'")], ids=ascii
)
def test_what_was_not_fit_can_still_be_recognised(text: str, fit: str) -> None:
    assert sanitize(text, 100) == fit


def test_what_is_cut_is_said() -> None:
    assert sanitize("x" * 5_000, 100).endswith("… [5,000 characters in total]")
