"""Schemas of the OpenAPI document, in the form that generators of clients handle well.

msgspec derives them from the wire types. This module gives names to enumerations and unions that it repeats inline,
types to enumerations and formats to numbers, descriptions to all fields, and removes what makes generators fail:
defaults of request fields, and rules across several fields, which are kept under `x-constraints`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.api.openapi.field_docs import field_docs
from holdfast.api.openapi.field_texts import COMMON_TEXTS
from holdfast.wire.events import EVENTS
from holdfast.wire.named_types import NAMED_TYPES
from holdfast.wire.schema_constraints import RULES

Schema = dict[str, Any]

CONSTRAINTS = "x-constraints"
"""JSON Schema rules across several fields of a request."""

_TEMPLATE = "#/components/schemas/{name}"
_MAX_INT32 = 2**31 - 1


def ref(name: str) -> Schema:
    """Return a reference to a named schema."""
    return {"$ref": _TEMPLATE.format(name=name)}


class Components:
    """Named schemas of all request and response types.

    Args:
        requests: Types of bodies and queries; their fields have no defaults, because some generators would make such
            fields mandatory. Descriptions name the defaults instead.
        responses: Types of responses; fields that are always present are required.
        queries: Those of `requests` that are queries, which are not components of their own.
    """

    def __init__(self, requests: Iterable[type], responses: Iterable[type], queries: Iterable[type]) -> None:
        request_types, response_types = list(dict.fromkeys(requests)), list(dict.fromkeys(responses))
        kinds = [*request_types, *response_types]
        self._structs = _structs(kinds)
        schemas, components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
        self._by_type = {kind: _shared(schema) for kind, schema in zip(kinds, schemas, strict=True)}
        self._names = _named_by_content()
        requested = _reachable([kind.__name__ for kind in request_types], components)
        finished = {
            name: self._finish(name, schema, is_request=name in requested) for name, schema in components.items()
        }
        self.queries = {kind: finished.pop(kind.__name__) for kind in queries if kind.__name__ in finished}
        for kind, rule in RULES.items():
            if kind.__name__ in finished:
                finished[kind.__name__][CONSTRAINTS] = [rule]
        used = {name for schema in [*finished.values(), *self.queries.values()] for name in _references(schema)}
        named = {name: schema for schema, name in _named_schemas() if name in used or name == "Event"}
        self.schemas: dict[str, Schema] = dict(sorted((finished | named).items()))
        self.schemas.pop("Status", None)

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type that was passed to the constructor."""
        schema: Schema = self._by_type[kind]
        return schema

    def is_required(self, kind: type) -> bool:
        """Return whether a body is required, by a required field or a required alternative."""
        schema = self.schemas[kind.__name__]
        rules = schema.get(CONSTRAINTS, ())
        return bool(schema.get("required")) or any(all(each["required"] for each in rule["anyOf"]) for rule in rules)

    def _finish(self, name: str, schema: Schema, *, is_request: bool) -> Schema:
        """Return a schema with descriptions and names for repeated parts, without defaults."""
        schema = {key: value for key, value in schema.items() if key != "title"}
        if "properties" not in schema:
            plain: Schema = self._replace(schema)
            return plain
        struct = self._structs.get(name)
        texts = {} if struct is None else field_docs(struct)
        present = [] if is_request or struct is None else _always_present(struct)
        properties = {}
        for field, given in schema["properties"].items():
            raw = dict(given)
            default = raw.pop("default", None) if "default" in raw else None
            finished = _PROPERTIES.get((name, field)) or self._replace(raw)
            text = texts.get(field) or raw.get("description") or _inner_text(raw) or COMMON_TEXTS.get(field, "")
            if is_request and default not in (None, [], {}, "", False):
                text = f"{text} Default: `{json.dumps(default)}`.".strip()
            properties[field] = {**finished, "description": text} if text else finished
        required = [field for field in schema["properties"] if field in {*schema.get("required", ()), *present}]
        return {**schema, "properties": properties, **({"required": required} if required else {})}

    def _replace(self, schema: Any) -> Any:
        """Return a schema with names for repeated parts, typed enumerations and number formats."""
        if not isinstance(schema, dict):
            return schema
        name = self._names.get(_content(schema))
        if name is not None:
            return ref(name)
        if schema.get("$ref") == _TEMPLATE.format(name="Status"):
            return ref("JobStatus")
        if "anyOf" in schema and "discriminator" not in schema:
            schema = _flat_union(schema)
        if "anyOf" in schema:
            kinds = [self._replace(kind) for kind in schema["anyOf"]]
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "description", "examples")}
            return _nullable(kinds) | rest
        if "enum" in schema:
            return {"type": "string", "enum": schema["enum"]}
        found = {
            key: self._replace(value) if key in ("items", "additionalProperties") else value
            for key, value in schema.items()
        }
        return _with_format(found)


def _named_schemas() -> list[tuple[Schema, str]]:
    """Return the schemas that get a name, and the name."""
    result = []
    for name, (kind, text) in NAMED_TYPES.items():
        schema = msgspec.json.schema_components([kind], ref_template=_TEMPLATE)[0][0]
        result.append((_named(schema, text), name))
    text = "Data of a server-sent event; its line `event` says which kind it is."
    result.append(({"description": text, "anyOf": [ref(kind.__name__) for kind in EVENTS]}, "Event"))
    return result


def _named(schema: Schema, text: str) -> Schema:
    """Return the definition of a named schema."""
    if "discriminator" in schema:
        return {"description": text, "oneOf": schema["anyOf"], "discriminator": schema["discriminator"]}
    if "enum" in schema:
        return {"type": "string", "description": text, "enum": schema["enum"]}
    alternatives = schema.get("anyOf", ())
    if all("enum" in kind for kind in alternatives):
        return {
            "type": "string",
            "description": text,
            "enum": [value for kind in alternatives for value in kind["enum"]],
        }
    kinds = [_with_format(kind) for kind in _flat_union(schema)["anyOf"]]
    examples = {"examples": schema["examples"]} if "examples" in schema else {}
    return {"description": text, "anyOf": kinds, **examples}


def _named_by_content() -> dict[str, str]:
    """Return the names of schemas by their content."""
    return {
        _content(msgspec.json.schema_components([kind], ref_template=_TEMPLATE)[0][0]): name
        for name, (kind, _) in NAMED_TYPES.items()
    }


def _content(schema: Mapping[str, Any]) -> str:
    """Return what identifies a schema: enumerations are equal if they have the same values."""
    if set(schema) <= {"enum", "description"} and "enum" in schema:
        return json.dumps(sorted(map(str, schema["enum"])))
    return json.dumps({key: value for key, value in schema.items() if key != "default"}, sort_keys=True)


def _flat_union(schema: Schema) -> Schema:
    """Return a union without `integer` if it has an equal `number`, which includes integers."""
    kinds = schema.get("anyOf", [])
    wide = [kind for kind in kinds if kind.get("type") != "integer" or {**kind, "type": "number"} not in kinds]
    return {**schema, "anyOf": wide} if kinds else schema


def _nullable(kinds: list[Schema]) -> Schema:
    """Return the union of schemas; a plain type and null are one schema with two types."""
    plain = [kind for kind in kinds if kind != {"type": "null"}]
    if len(plain) == 1 and len(kinds) == 2 and isinstance(plain[0].get("type"), str) and "enum" not in plain[0]:
        return {**plain[0], "type": [plain[0]["type"], "null"]}
    return {"anyOf": kinds}


def _with_format(schema: Schema) -> Schema:
    """Return a number with its format, so that typed languages choose a large enough type."""
    match schema.get("type"):
        case "integer":
            small = schema.get("maximum", _MAX_INT32 + 1) <= _MAX_INT32 and schema.get("minimum", 0) >= -_MAX_INT32
            return {"type": "integer", "format": "int32" if small else "int64"} | schema
        case "number":
            return {"type": "number", "format": "double"} | schema
        case _:
            return schema


def _inner_text(schema: Schema) -> str:
    """Return the description of the first alternative that has one."""
    return next((str(kind["description"]) for kind in schema.get("anyOf", ()) if "description" in kind), "")


def _always_present(struct: type) -> list[str]:
    """Return the fields that every response of this type has."""
    if struct.__struct_config__.omit_defaults:  # type: ignore[attr-defined]
        return []
    fields = msgspec.structs.fields(struct)
    return [field.encode_name for field in fields if field.default is not msgspec.UNSET]


def _structs(kinds: Iterable[Any]) -> dict[str, type]:
    """Return all structs that these types contain, by name."""
    found: dict[str, type] = {}
    pending = [msgspec.inspect.type_info(kind) for kind in kinds]
    while pending:
        node = pending.pop()
        if isinstance(node, msgspec.inspect.StructType):
            if node.cls.__name__ not in found:
                found[node.cls.__name__] = node.cls
                pending += [field.type for field in node.fields]
            continue
        for attribute in ("type", "item_type", "value_type"):
            if (inner := getattr(node, attribute, None)) is not None:
                pending.append(inner)
        pending += getattr(node, "types", ())
    return found


def _shared(schema: Schema) -> Schema:
    return ref("Outcome") if "discriminator" in schema else schema


def _reachable(names: list[str], components: Mapping[str, Schema]) -> set[str]:
    """Return these schemas and those that they refer to."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in components and name not in found:
            found.add(name)
            pending += _references(components[name])
    return found


def _references(schema: Any) -> list[str]:
    prefix = _TEMPLATE.format(name="")
    match schema:
        case {"$ref": str(target)} if target.startswith(prefix):
            return [target.removeprefix(prefix)]
        case dict():
            return [name for value in schema.values() for name in _references(value)]
        case list():
            return [name for value in schema for name in _references(value)]
        case _:
            return []


_PROGRESS: Schema = {"anyOf": [ref("ProgressOut"), {"type": "null"}]}
_PROPERTIES: dict[tuple[str, str], Schema] = {
    ("JobOut", "progress"): _PROGRESS,
    ("JobDetail", "progress"): _PROGRESS,
    ("LeasedJob", "progress"): _PROGRESS,
    ("Problem", "code"): ref("ProblemCode"),
    ("Fault", "code"): ref("ProblemCode"),
    ("OutcomeFault", "code"): ref("ProblemCode"),
}
"""Schemas of fields whose Python type is wider: unparsed JSON, and codes of later versions."""
