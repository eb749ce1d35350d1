"""Results of steps, as JSON: a step gives the same at its first attempt as at those that reuse it."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import Invalid, NonDeterministic

MAX_RESULT_BYTES = 1024 * 1024
"""Bytes that the result of one step may take."""


def encode(key: str, value: Any) -> bytes:
    """A result as it is recorded; `Invalid` when JSON cannot hold it."""
    try:
        stored = msgspec.json.encode(value)
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Invalid(
            f"step {key!r} was done, but its result cannot be recorded ({error}): return what JSON can hold "
            "(text, numbers, lists, dicts, dataclasses, msgspec structs)",
            pointer="/step",
        ) from error
    if len(stored) > MAX_RESULT_BYTES:
        raise Invalid(
            f"step {key!r} was done, but its result takes {len(stored):,} bytes, and at most {MAX_RESULT_BYTES:,} are "
            "recorded: store it elsewhere and return where",
            pointer="/step",
        )
    return stored


def decode(key: str, stored: bytes | None, function: Callable[..., Any]) -> Any:
    """A recorded result, of the type that the function says it returns, where JSON can be read as that."""
    try:
        if (kind := _returns(function)) is not Any:
            try:
                return msgspec.json.decode(stored or b"null", type=kind)
            except (msgspec.ValidationError, TypeError, NotImplementedError):  # it returned something else than it says
                pass
        return msgspec.json.decode(stored or b"null")
    except msgspec.DecodeError as error:
        raise NonDeterministic(
            f"step {key!r}: an earlier attempt recorded something else than a step under this key: give each step "
            "and transaction its own"
        ) from error


def _returns(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(inspect.unwrap(function)).get("return", Any)
    except (TypeError, NameError, AttributeError):
        return Any
