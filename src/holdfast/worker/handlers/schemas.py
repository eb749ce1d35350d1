"""JSON Schema of a handler's arguments, for forms and clients in other languages.

The schema is documentation: payloads are validated when they are decoded. So details that JSON Schema cannot express
are omitted, and a function without any expressible argument type has no schema.
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
    """Return the JSON Schema of a payload, or None if it cannot be built or is too large."""
    try:
        text = _ENCODE(_schema(name, function, struct, defaults)).decode()
    except Exception:  # noqa: BLE001 - models are user code, and a missing schema must not stop a worker
        return None
    return text if len(text.encode()) <= MAX_SCHEMA_BYTES else None


def _schema(
    name: str, function: Callable[..., Any], struct: type[Struct], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    definitions: dict[str, Any] = {}

    def model(kind: type) -> dict[str, Any]:
        """Return the schema of a model class; move its definitions to the shared ones."""
        model_schema: Callable[[], dict[str, Any]] | None = getattr(kind, "model_json_schema", None)
        schema: dict[str, Any] = {"title": kind.__name__} if model_schema is None else dict(model_schema())
        for part, shape in schema.pop("$defs", {}).items():
            if definitions.setdefault(part, shape) != shape:
                raise ValueError(f"two definitions are named {part!r}")
        return schema

    (reference,), components = msgspec.json.schema_components(
        [struct], schema_hook=model, ref_template=f"{_REFERENCE}{{name}}"
    )
    payload: dict[str, Any] = components.pop(reference["$ref"].removeprefix(_REFERENCE))
    if components.keys() & definitions.keys():
        raise ValueError("two definitions have the same name")
    for argument, shape in payload["properties"].items():
        if argument in defaults and (default := _default(argument, defaults[argument])) is not None:
            shape["default"] = msgspec.Raw(default)
    payload["title"] = name
    if summary := sanitize((inspect.getdoc(function) or "").split("\n\n")[0], MAX_DESCRIPTION_LENGTH):
        payload["description"] = " ".join(summary.split())
    return payload | ({"$defs": components | definitions} if components or definitions else {})


def _default(argument: str, value: Any) -> bytes | None:
    """Return a default value as JSON; None if it is not JSON, too long or looks like a secret."""
    try:
        text = msgspec.json.encode(value, enc_hook=write_model)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    plain = text.decode()
    return text if len(text) <= MAX_DEFAULT_BYTES and redact_field(argument, plain) == plain else None
