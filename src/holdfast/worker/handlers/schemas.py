"""The arguments of a function as JSON Schema, for forms and for people who write to it from elsewhere.

It is told, and decides nothing: what a payload must be is decided where it is decoded. So whatever cannot be said of an
argument is left out, and a function of which nothing can be said has no schema.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.job_type import MAX_SCHEMA_BYTES
from holdfast.policy.redact import redact_field
from holdfast.policy.text import sanitize
from holdfast.worker.handlers.annotations import write_model

MAX_DEFAULT_BYTES = 1024
MAX_DESCRIPTION_LENGTH = 500

_ENCODE = msgspec.json.Encoder().encode
_REFERENCE = "#/$defs/"


def render_schema(
    name: str, function: Callable[..., Any], struct: type[Struct], defaults: Mapping[str, Any]
) -> str | None:
    """The schema of the payload of jobs of this name, as JSON."""
    try:
        text = _ENCODE(_schema(name, function, struct, defaults)).decode()
    except Exception:  # noqa: BLE001 - models are the user's code, and no worker fails for want of a form
        return None
    return text if len(text.encode()) <= MAX_SCHEMA_BYTES else None


def _schema(
    name: str, function: Callable[..., Any], struct: type[Struct], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    definitions: dict[str, Any] = {}

    def model(kind: type) -> dict[str, Any]:
        """For models of others: as they tell it themselves, their parts among ours; anything, if they do not tell."""
        tell: Callable[[], dict[str, Any]] | None = getattr(kind, "model_json_schema", None)
        told: dict[str, Any] = {"title": kind.__name__} if tell is None else dict(tell())
        for part, shape in told.pop("$defs", {}).items():
            if definitions.setdefault(part, shape) != shape:
                raise ValueError(f"two shapes are called {part!r}")
        return told

    (reference,), components = msgspec.json.schema_components(
        [struct], schema_hook=model, ref_template=f"{_REFERENCE}{{name}}"
    )
    payload: dict[str, Any] = components.pop(reference["$ref"].removeprefix(_REFERENCE))
    if components.keys() & definitions.keys():
        raise ValueError("two shapes have the same name")
    for argument, shape in payload["properties"].items():
        if argument in defaults and (default := _default(argument, defaults[argument])) is not None:
            shape["default"] = msgspec.Raw(default)
    payload["title"] = name
    if described := sanitize((inspect.getdoc(function) or "").split("\n\n")[0], MAX_DESCRIPTION_LENGTH):
        payload["description"] = " ".join(described.split())
    return payload | ({"$defs": components | definitions} if components or definitions else {})


def _default(argument: str, value: Any) -> bytes | None:
    """As JSON; not where JSON has no word for it, where it is long, or where it looks like a secret."""
    try:
        text = msgspec.json.encode(value, enc_hook=write_model)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    plain = text.decode()
    return text if len(text) <= MAX_DEFAULT_BYTES and redact_field(argument, plain) == plain else None
