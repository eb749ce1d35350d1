"""JSON Schema constraints across several fields of a request, for the OpenAPI description.

The codecs enforce the same rules with better error messages; a test checks that both agree.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.wire.access import NewKeyRequest
from holdfast.wire.limits import SetLimit, SetPause
from holdfast.wire.types import (
    BulkCancel,
    BulkRequest,
    DeadFilter,
    FilterShape,
    ReplayRequest,
    SubmitBatchJob,
    SubmitJob,
)

Schema = dict[str, Any]

_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string"}


def _with(*required: str, **fields: Schema) -> Schema:
    return {"required": list(required), "properties": fields}


def _either(first: str, second: str) -> Schema:
    """Require exactly one of two strings."""
    return {"anyOf": [_with(first, **{first: _TEXT, second: _NULL}), _with(second, **{second: _TEXT, first: _NULL})]}


def _not_both(first: str, second: str) -> Schema:
    return {"anyOf": [_with(**{first: _NULL}), _with(**{second: _NULL})]}


def _narrowing_fields(filters: type[DeadFilter]) -> list[str]:
    """Return the fields that make a filter non-empty; the tenant does not."""
    return [name for name in filters.__struct_fields__ if name != "tenant"]


def _narrow(filters: type[DeadFilter]) -> Schema:
    """Require a non-empty filter."""
    return {"type": "object", "anyOf": [_with(name, **{name: _TEXT}) for name in _narrowing_fields(filters)]}


_ALL: Schema = {"const": True}
_SOME_OR_ALL: Schema = {"anyOf": [_with("filter", filter=_narrow(FilterShape)), _with("all", all=_ALL)]}

RULES: Mapping[type, Schema] = {
    SubmitJob: _not_both("scheduled_at", "delay"),
    SubmitBatchJob: _not_both("scheduled_at", "delay"),
    NewKeyRequest: _not_both("expires_at", "expires_in"),
    SetPause: _either("type", "tenant"),
    SetLimit: {
        "anyOf": [
            _with("queue", queue=_TEXT, tenant=_NULL, concurrency_key=_NULL),
            _with("tenant", tenant=_TEXT, queue=_NULL),
        ]
    },
    BulkRequest: _SOME_OR_ALL,
    BulkCancel: _SOME_OR_ALL,
    ReplayRequest: {
        "anyOf": [
            _with(
                "ids",
                ids={"type": "array", "items": {}},
                filter={"properties": dict.fromkeys(_narrowing_fields(DeadFilter), _NULL)},
                all={"const": False},
                cursor=_NULL,
            ),
            _with("all", ids=_NULL, all=_ALL),
            _with("filter", ids=_NULL, filter=_narrow(DeadFilter)),
        ]
    },
}
