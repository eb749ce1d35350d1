"""JSON encoding of step results.

The first attempt decodes its result too, so that all attempts get the same value.
"""

import contextlib
import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import Invalid, NonDeterministic
from holdfast.worker.handlers.annotations import never_json, read_model, write_model

MAX_RESULT_BYTES = 1024 * 1024
"""Largest encoded size of the result of a step."""

_ENCODE = msgspec.json.Encoder(enc_hook=write_model).encode


def check_return_type(key: str, function: Callable[..., Any]) -> None:
    """Raise `Invalid` if JSON cannot represent what the function of a step returns."""
    if (unsupported := never_json(_return_type(function))) is not None:
        raise Invalid(
            f"step {key!r} was not run, because its result cannot be recorded: it returns a {unsupported.__name__}, "
            "which JSON cannot represent: return plain values, a dataclass, a msgspec Struct or a model",
            pointer="/step",
        )


def encode(key: str, value: Any) -> bytes:
    """Encode a result; raise `Invalid` if JSON cannot represent it or it is too large."""
    try:
        stored = _ENCODE(value)
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Invalid(
            f"step {key!r} ran, but its result cannot be recorded ({error}): return a value that JSON can "
            "represent (text, numbers, lists, dicts, dataclasses, msgspec structs, Pydantic models)",
            pointer="/step",
        ) from error
    if len(stored) > MAX_RESULT_BYTES:
        raise Invalid(
            f"step {key!r} ran, but its result of {len(stored):,} bytes exceeds the limit of {MAX_RESULT_BYTES:,}: "
            "store it elsewhere and return its location",
            pointer="/step",
        )
    return stored


def decode(key: str, stored: bytes | None, function: Callable[..., Any]) -> Any:
    """Decode a result to the function's return type, or to plain values if it does not match."""
    try:
        if (kind := _return_type(function)) is not Any:
            # If the function returned another type than annotated, the result stays plain JSON values.
            with contextlib.suppress(msgspec.ValidationError, TypeError, NotImplementedError):
                return msgspec.json.decode(stored or b"null", type=kind, dec_hook=read_model)
        return msgspec.json.decode(stored or b"null")
    except msgspec.DecodeError as error:
        raise NonDeterministic(
            f"step {key!r}: an earlier attempt used this key for a transaction: give each step and transaction its "
            "own key"
        ) from error


def _return_type(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(inspect.unwrap(function)).get("return", Any)
    except (TypeError, NameError, AttributeError):
        return Any
