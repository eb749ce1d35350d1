"""Rules for the OpenAPI description: what generators of clients and people need.

`./dev openapi` runs the generators themselves.
"""

import ast
import re
from pathlib import Path

import pytest

from holdfast import errors
from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from holdfast.wire.events import EVENTS
from holdfast.wire.problems import CODES
from tests.support.openapi import validator

DOCUMENT = describe(ALL, "0")
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}
VERBS = {
    "begin", "cancel", "change", "check", "clear", "create", "delete", "depart", "drain", "drop", "end", "explain",
    "get", "lease", "list", "purge", "record", "renew", "replay", "retry", "revoke", "rotate", "save", "seed", "set",
    "settle", "show", "sign", "stream", "submit",
}  # fmt: skip


def nodes(schema, path="", *, constraints=False):
    """Yield each schema inside a schema with its path, without the rules across fields."""
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            if constraints or key not in ("x-constraints", "example", "examples"):
                yield from nodes(value, f"{path}/{key}", constraints=constraints)
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from nodes(value, f"{path}/{index}", constraints=constraints)


def properties():
    return [
        (f"{name}.{field}", schema)
        for name, owner in SCHEMAS.items()
        for field, schema in owner.get("properties", {}).items()
    ]


def target(schema):
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def test_every_operation_explains_itself():
    for name, operation in OPERATIONS.items():
        assert operation["summary"], name
        assert operation["description"].endswith("."), name
        assert operation["description"] != operation["summary"], name
        assert name.split("_")[0] in VERBS, f"{name}: start the name of the handler with a verb"
        for parameter in operation["parameters"]:
            assert parameter["description"], (name, parameter["name"])


def test_an_operation_has_one_response_for_every_problem():
    for name, operation in OPERATIONS.items():
        responses = operation["responses"]
        assert responses["default"] == {"$ref": "#/components/responses/Problem"}, name
        others = {status for status in responses if not status.startswith("2")}
        assert others <= ({"default", "503"} if name == "check_readiness" else {"default"}), name


def test_every_schema_and_field_has_a_description():
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description")] == []
    assert [name for name, schema in properties() if not schema.get("description", "").endswith(".")] == []


def test_no_schema_has_what_generators_stumble_over():
    for path, schema in nodes(SCHEMAS):
        if path.endswith("/properties"):
            continue
        assert "default" not in schema, f"{path}: a generator would make the field mandatory"
        assert not {"exclusiveMaximum", "exclusiveMinimum"} & set(schema), path
        assert "enum" not in schema or schema.get("type") == "string", f"{path}: an enumeration without a type"
        if schema.get("type") in ("integer", "number", ["integer", "null"], ["number", "null"]):
            assert schema["format"] in ("int32", "int64", "float", "double"), path
    for field, schema in properties():
        assert schema.get("type") != "null", f"{field}: can only be null"


def test_a_union_or_enumeration_has_a_name_of_its_own():
    """A generator names each inline one by itself, and the client grows with every use."""
    for path, schema in nodes(SCHEMAS):
        if path.count("/") > 1 and not path.endswith("/properties"):
            plain = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
            assert len(plain) <= 1, f"{path}: name the union in wire/named_types.py"
            assert len(schema.get("enum", ())) <= 1, f"{path}: name the enumeration in wire/named_types.py"


def test_every_time_is_a_date_time():
    is_time = re.compile(
        r".*\.(\w+_at|at|since|until|as_of|last_seen|\w+_until|created_(after|before)|unresponsive_since)"
    )
    others = {"DeliveryRequest.at"}  # a number, because it is signed
    found = [(name, schema) for name, schema in properties() if is_time.fullmatch(name) and name not in others]
    assert len(found) > 50
    assert [
        name for name, schema in found if schema.get("format") != "date-time" and "date-time" not in str(schema)
    ] == []


@pytest.mark.parametrize(
    "name",
    ["LeaseDuration", "AnalyticsWindow", "FairnessWindow", "RateWindow", "RatePeriod", "SecretOverlap", "Duration"],
)
def test_a_duration_has_bounds(name):
    number, text = SCHEMAS[name]["anyOf"]
    assert number["minimum"] < number["maximum"]
    assert text["pattern"]


def test_references_resolve_and_every_schema_is_used():
    used = {
        schema["$ref"].rpartition("/")[2]
        for _, schema in nodes(DOCUMENT, constraints=True)
        if isinstance(schema.get("$ref"), str) and "/schemas/" in schema["$ref"]
    }
    assert used == set(SCHEMAS)


def test_events_are_typed():
    stream = OPERATIONS["stream_events"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert [kind["$ref"].rpartition("/")[2] for kind in target(stream)["anyOf"]] == [kind.__name__ for kind in EVENTS]


def test_the_codes_of_problems_are_those_of_the_source():
    """Found in the errors, and as the second argument of what builds a problem."""
    codes = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    }
    local = {"misconfigured", "schema_mismatch", "step_unknown", "not_deterministic", "transaction_ended", "job_failed",
             "job_cancelled", "result_too_large", "wait_timeout"}  # fmt: skip
    source = Path(errors.__file__).parent
    for path in [*source.glob("api/**/*.py"), *source.glob("wire/*.py")]:
        if "code" in (text := path.read_text()) or "40" in text or "503" in text:
            for node in ast.walk(ast.parse(text)):
                match node:
                    case ast.Call(args=[ast.Constant(value=int()), ast.Constant(value=str(code)), *_]):
                        codes.add(code)
                    case ast.Call(args=[_, ast.Constant(value=int()), ast.Constant(value=str(code)), *_]):
                        codes.add(code)
                    case ast.Tuple(elts=[ast.Constant(value=int(status)), ast.Constant(value=str(code)), _]) if (
                        status >= 400
                    ):
                        codes.add(code)
                    case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                        codes.add(code)
    found = {code for code in codes - local if re.fullmatch("[a-z_]+", code)}
    assert sorted(found) == sorted(CODES)


def test_examples_match_their_schemas():
    examples = [
        (media["schema"], media["example"])
        for operation in OPERATIONS.values()
        for media in operation.get("requestBody", {}).get("content", {}).values()
    ]
    examples += [(schema, example) for schema in SCHEMAS.values() for example in schema.get("examples", ())]
    assert len(examples) > 30
    for schema, example in examples:
        assert validator(DOCUMENT, schema).is_valid(example), example
