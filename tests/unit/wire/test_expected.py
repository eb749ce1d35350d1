"""Errors of request fields name the allowed values or the form, not a regular expression."""

import pytest

from holdfast.errors import Invalid
from holdfast.wire.access import NewKeyRequest
from holdfast.wire.json import convert
from holdfast.wire.types import SubmitJob


@pytest.mark.parametrize(
    "kind, value, text",
    [
        (SubmitJob, {"type": "a", "queue": "?"}, "queue: wrong form: use letters, digits and _ . : / @ + -"),
        (
            SubmitJob,
            {"type": "a", "unique": {"on_conflict": "x"}},
            "unique.on_conflict: 'x' is not allowed: use reject, replace, return",
        ),
        (NewKeyRequest, {"name": "a", "scopes": ["x"]}, "scopes.0: 'x' is not allowed: use admin, cancel"),
        (NewKeyRequest, {"name": "\x01", "scopes": ["read"]}, "name: wrong form: use printable characters"),
    ],
)
def test_an_error_names_the_allowed_values_or_the_form(kind, value, text):
    with pytest.raises(Invalid) as caught:
        convert(value, kind)
    assert str(caught.value).startswith(text)
    assert "^" not in str(caught.value)
