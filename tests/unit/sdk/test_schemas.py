"""JSON schemas of arguments, from which the dashboard builds forms."""

import json
from typing import Annotated, Any

import msgspec
import pytest

from holdfast.builtin.register import register_builtin
from holdfast.config import Settings
from holdfast.model.job_type import MAX_SCHEMA_BYTES
from holdfast.worker.handlers import registry as registering
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments
from tests.unit.sdk.test_arguments import everything


def schema(function, name="send"):
    text = Arguments(function, name).schema()
    return None if text is None else json.loads(text)


def test_the_schema_has_names_types_bounds_defaults_and_a_description():
    def send(to: str, n: Annotated[int, msgspec.Meta(ge=1)] = 3, *, urgent: bool = False) -> None:
        """Send it.

        Not published.
        """

    assert schema(send) == {
        "title": "send", "description": "Send it.", "type": "object", "required": ["to"], "additionalProperties": False,
        "properties": {
            "to": {"type": "string"},
            "n": {"type": "integer", "minimum": 1, "default": 3},
            "urgent": {"type": "boolean", "default": False},
        },
    }  # fmt: skip


def test_the_schema_covers_every_kind_of_parameter_but_the_context():
    found = schema(everything)
    assert found["required"] == ["a"]
    assert len(found["properties"]) == 22
    assert "ctx" not in found["properties"]
    assert found["properties"]["colour"]["default"] == "red"
    assert set(found["$defs"]) == {"Address", "Colour", "Level", "Options", "Order"}


class PydanticLike:
    """Model with the interface of pydantic."""

    def __init__(self, parts):
        self.parts = parts

    @classmethod
    def model_validate(cls, value):
        return cls(value)

    def model_dump(self, *, mode):
        return {}

    @classmethod
    def model_json_schema(cls):
        return {"type": "object", "properties": {"k": {"$ref": "#/$defs/K"}}, "$defs": {"K": {"type": "integer"}}}


class Breaks(PydanticLike):
    @classmethod
    def model_json_schema(cls):
        raise RuntimeError("not today")


def test_a_model_provides_its_schema_and_a_failure_drops_only_that():
    def send(model: PydanticLike, many: list[PydanticLike]): ...

    def broken(model: Breaks): ...

    found = schema(send)
    assert found["properties"]["model"] == {"type": "object", "properties": {"k": {"$ref": "#/$defs/K"}}}
    assert found["$defs"] == {"K": {"type": "integer"}}
    assert schema(broken) is None


def test_secrets_and_long_values_are_not_published_as_defaults():
    """T: defaults in code may contain secrets."""

    def send(
        api_key: str = "s3cret-s3cret", dsn: str = "", url="postgres://a:secret@b/c", long="x" * 2_000, odd=object
    ): ...

    assert [each.get("default") for each in schema(send)["properties"].values()] == [None] * 5


def test_a_schema_above_the_limit_is_dropped(monkeypatch):
    kind = msgspec.defstruct("Huge", [(f"field_number_{n}", int) for n in range(MAX_SCHEMA_BYTES // 30)])

    def send(huge): ...

    send.__annotations__["huge"] = kind
    assert schema(send) is None


def of(settings):
    registry = Registry()
    register_builtin(registry, settings, None)
    return {each.type: each for each in registry.described()}


def test_the_built_in_types_have_schemas():
    found = of(Settings(smtp_url="smtps://mail.example:465", smtp_from="jobs@example.com", demo=True))
    assert {"webhook", "email", "demo"} <= found.keys()
    shapes = {name: json.loads(found[name].schema) for name in ("webhook", "email", "demo")}
    assert {name: shape.get("required") for name, shape in shapes.items()} == {
        "webhook": ["url"], "email": ["to", "subject"], "demo": []
    }  # fmt: skip
    assert all(shape["description"] for shape in shapes.values())
    assert found["webhook"].queue == "default"


@pytest.mark.parametrize("limit, published", [(10**6, 3), (1, 0)])
def test_the_total_size_of_schemas_is_limited(monkeypatch, limit, published):
    monkeypatch.setattr(registering, "MAX_SCHEMAS_LENGTH", limit)
    registry = Registry()

    def send(x: Any): ...

    for name in ("a", "b", "c"):
        registry.add(Handler(name, send, "thread", Arguments(send, name)))
    described = registry.described()
    assert [each.type for each in described] == ["a", "b", "c"]
    assert sum(each.schema is not None for each in described) == published
