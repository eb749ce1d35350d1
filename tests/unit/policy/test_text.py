"""Sanitizing of untrusted text (T25, T26)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from holdfast.policy.text import sanitize

anything = st.text(st.characters(exclude_categories=[]))


@given(anything, st.integers(1, 200))
def test_sanitized_text_can_be_stored_in_any_database(text: str, max_length: int) -> None:
    safe = sanitize(text, max_length)

    assert len(safe) <= max_length
    assert "\x00" not in safe
    assert json.decode(json.encode(safe)) == safe


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=100))
def test_safe_text_is_unchanged(text: str) -> None:
    assert sanitize(text, 100) == text


@pytest.mark.parametrize(
    "text, safe", [("a\x00b", r"a\x00b"), ("\ud800", r"\ud800"), ("'\udcff'", r"'\udcff'")], ids=ascii
)
def test_rejected_characters_are_escaped(text: str, safe: str) -> None:
    assert sanitize(text, 100) == safe


def test_truncated_text_says_its_original_length() -> None:
    assert sanitize("x" * 5_000, 100).endswith("… [5,000 characters in total]")
