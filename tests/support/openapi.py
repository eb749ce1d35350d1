"""Validation of bodies against the OpenAPI description, with its constraints across fields."""

from __future__ import annotations

from typing import Any

import jsonschema_rs


def validator(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """Return a validator of a schema of the document."""
    return jsonschema_rs.validator_for({**with_constraints(document), **schema})


def with_constraints(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with `x-constraints`, which generators ignore, as part of the schemas."""
    schemas = {
        name: {**schema, "allOf": schema["x-constraints"]} if "x-constraints" in schema else schema
        for name, schema in document["components"]["schemas"].items()
    }
    return {**document, "components": {**document["components"], "schemas": schemas}}
