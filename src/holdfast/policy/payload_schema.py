"""Check of a payload against the JSON Schema of its job type, with a bounded cost.

Schemas come from workers, which may belong to a tenant, so a check must not be expensive: it stops after a number of
steps, and regular expressions are not evaluated. It knows the keywords that schemas of Python types have. A payload is
valid unless one of them says otherwise: the worker checks everything when it decodes the payload.
"""

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import Invalid

MAX_STEPS = 10_000
"""Steps per payload, about half a microsecond each; a payload that needs more is accepted.

A checked value is one step, a failed alternative and an unequal value of an enumeration too, and a fault inside an
object or a list is some more.
"""

_FAULT_STEPS = 4
"""Steps for adding a name to the path of a fault, besides one for each name that it has."""

MAX_COMPILED = 2_000
"""Compiled schemas that are kept."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
_EXPECTED = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "a boolean",
    "null": "null",
    "integer": "a whole number",
    "number": "a number",
}
_BOUNDS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "minimum": (operator.lt, "at least"),
    "maximum": (operator.gt, "at most"),
    "exclusiveMinimum": (operator.le, "more than"),
    "exclusiveMaximum": (operator.ge, "less than"),
}
"""Comparison that makes a number wrong, and the words for the bound."""


class PayloadFault(NamedTuple):
    """First thing that is wrong with a payload."""

    path: tuple[str, ...]
    """Names and indexes that lead to the value; empty for the payload itself."""
    problem: str
    expected: tuple[str, ...] = ()
    """Accepted types, if the value has another one."""


class _Steps:
    """Number of steps that a check may still take."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS


class _TooExpensive(Exception):
    """The check has taken too many steps."""


_Rule = Callable[[Any, _Steps], PayloadFault | None]


class PayloadCheck(NamedTuple):
    """Compiled schema."""

    rule: _Rule

    def fault(self, payload: Any) -> PayloadFault | None:
        """Return what is wrong with a payload, or None. A missing payload is an empty object."""
        try:
            return self.rule({} if payload is None else payload, _Steps())
        except (_TooExpensive, RecursionError):
            return None


@lru_cache(MAX_COMPILED)
def compile_schema(text: str) -> PayloadCheck | None:
    """Compile a schema, once per text; return None if it is not usable."""
    try:
        schema = msgspec.json.decode(text)
        return PayloadCheck(_Compiler(schema).rule(schema))
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


class _Compiler:
    """Compiler of one schema document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._references: dict[str, _Rule | None] = {}

    def rule(self, schema: Any) -> _Rule:
        """Return the rule of a schema."""
        if schema is False:
            return lambda _value, _steps: PayloadFault((), "no value is allowed here")
        if schema is True or not schema:
            return _accept
        rules = [made for made in (self._reference(schema), _values(schema), *self._combined(schema)) if made]
        accepted, expected = _accepted(schema)
        by_type = {dict: self._object(schema), list: self._array(schema), **_scalars(schema)}

        def check(value: Any, steps: _Steps) -> PayloadFault | None:
            steps.left -= 1
            if steps.left < 0:
                raise _TooExpensive
            kind = type(value)
            if (
                accepted is not None
                and kind not in accepted
                and not (kind is float and int in accepted and value.is_integer())
            ):
                return PayloadFault(
                    (), f"expected {' or '.join(expected)}, got {_NAMES.get(kind, 'a number')}", expected
                )
            inner = by_type.get(kind)
            if inner is not None and (fault := inner(value, steps)) is not None:
                return fault
            for rule in rules:
                if (fault := rule(value, steps)) is not None:
                    return fault
            return None

        return check

    def _reference(self, schema: Mapping[str, Any]) -> _Rule | None:
        reference = schema.get("$ref")
        if reference is None:
            return None
        if reference not in self._references:
            self._references[reference] = None  # a schema may refer to itself
            self._references[reference] = self.rule(self._resolve(reference))

        def check(value: Any, steps: _Steps) -> PayloadFault | None:
            rule = self._references[reference]
            return None if rule is None else rule(value, steps)

        return check

    def _resolve(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return True  # another document
        found = self._document
        for part in reference[1:].split("/")[1:]:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return found

    def _combined(self, schema: Mapping[str, Any]) -> list[_Rule]:
        alternatives = [schema[keyword] for keyword in ("anyOf", "oneOf") if keyword in schema]
        return [
            *[self.rule(part) for part in schema.get("allOf", ())],
            *[_any_of([self.rule(part) for part in parts]) for parts in alternatives],
        ]

    def _object(self, schema: Mapping[str, Any]) -> _Rule | None:
        properties = {name: self.rule(part) for name, part in schema.get("properties", {}).items()}
        required = tuple(schema.get("required", ()))
        rest = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            rest = True
        others = None if rest is True or rest == {} else self.rule(rest)
        if not properties and not required and others is None:
            return None
        known = ", ".join(properties) or "none"

        def check(value: dict[str, Any], steps: _Steps) -> PayloadFault | None:
            for name in required:
                if name not in value:
                    return PayloadFault((name,), "it is missing")
            for name, item in value.items():
                rule = properties.get(name)
                if rule is None:
                    if others is None:
                        continue
                    if rest is False:
                        return PayloadFault((name,), f"it is not known: the fields are {known}")
                    rule = others
                if (fault := rule(item, steps)) is not None:
                    return _inside(name, fault, steps)
            return None

        return check

    def _array(self, schema: Mapping[str, Any]) -> _Rule | None:
        first = [self.rule(part) for part in schema.get("prefixItems", ())]
        rest = self.rule(schema.get("items", True))
        low, high = schema.get("minItems", 0), schema.get("maxItems")

        def check(value: list[Any], steps: _Steps) -> PayloadFault | None:
            if len(value) < low or (high is not None and len(value) > high):
                return PayloadFault((), f"it has {len(value)} items; {_range(low, high)} are allowed")
            for index, item in enumerate(value):
                rule = first[index] if index < len(first) else rest
                if rule is not _accept and (fault := rule(item, steps)) is not None:
                    return _inside(str(index), fault, steps)
            return None

        return check


def _inside(name: str, fault: PayloadFault, steps: _Steps) -> PayloadFault:
    """Return a fault as a fault of the object or list around it."""
    steps.left -= _FAULT_STEPS + len(fault.path)
    return PayloadFault((name, *fault.path), fault.problem, fault.expected)


def _accept(_value: Any, _steps: _Steps) -> PayloadFault | None:
    return None


def _accepted(schema: Mapping[str, Any]) -> tuple[frozenset[type] | None, tuple[str, ...]]:
    """Return the Python types that the keyword `type` accepts, and their names; None for all."""
    named = schema.get("type")
    if named is None:
        return None, ()
    names = [named] if isinstance(named, str) else list(named)
    if "string" in names and schema.get("format") == "decimal":
        names.append("number")  # workers read decimals from both
    return frozenset(kind for name in names for kind in _TYPES[name]), tuple(_EXPECTED[name] for name in names)


def _values(schema: Mapping[str, Any]) -> _Rule | None:
    """Return the rule of `enum` and `const`."""
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if allowed is None:
        return None
    shown = ", ".join(msgspec.json.encode(value).decode() for value in allowed[:20])
    fault = PayloadFault((), f"it must be {'' if len(allowed) == 1 else 'one of '}{shown}")
    # True equals 1 in Python, but not in JSON.
    simple = frozenset((type(value) is bool, value) for value in allowed if type(value) not in (dict, list))
    others = [value for value in allowed if type(value) in (dict, list)]

    def check(value: Any, steps: _Steps) -> PayloadFault | None:
        if type(value) not in (dict, list):
            return None if (type(value) is bool, value) in simple else fault
        for other in others:
            steps.left -= 1
            if steps.left < 0:
                raise _TooExpensive
            if value == other:
                return None
        return fault

    return check


def _scalars(schema: Mapping[str, Any]) -> dict[type, _Rule | None]:
    """Return the rules for texts and numbers, by Python type."""
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    bounds = [
        (schema[keyword], is_wrong, words)
        for keyword, (is_wrong, words) in _BOUNDS.items()
        if type(schema.get(keyword)) in (int, float)
    ]

    def check_text(value: str, _steps: _Steps) -> PayloadFault | None:
        if len(value) < low or (high is not None and len(value) > high):
            return PayloadFault((), f"it has {len(value)} characters; {_range(low, high)} are allowed")
        return None

    def check_number(value: float, _steps: _Steps) -> PayloadFault | None:
        for bound, is_wrong, words in bounds:
            if is_wrong(value, bound):
                return PayloadFault((), f"it must be {words} {bound}")
        return None

    text = check_text if low or high is not None else None
    number = check_number if bounds else None
    return {str: text, int: number, float: number}


def _any_of(rules: list[_Rule]) -> _Rule:
    """Return a rule that accepts what one of these accepts; its fault is the most specific one."""

    def check(value: Any, steps: _Steps) -> PayloadFault | None:
        faults = []
        for rule in rules:
            if (fault := rule(value, steps)) is None:
                return None
            steps.left -= 1
            faults.append(fault)
        deepest = max(faults, key=lambda fault: (len(fault.path), not fault.expected))
        expected = tuple(dict.fromkeys(name for fault in faults for name in fault.expected))
        if deepest.path or not expected or not deepest.expected:
            return deepest
        got = _NAMES.get(type(value), "a number")
        return PayloadFault((), f"expected {' or '.join(expected)}, got {got}", expected)

    return check


def _range(low: int, high: int | None) -> str:
    return f"{low} or more" if high is None else f"{low} to {high}"


def invalid_payload(job_type: str, fault: PayloadFault) -> Invalid:
    """Return the error for a payload that does not match the schema of its type."""
    pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in ("payload", *fault.path))
    return Invalid(
        f"{'.'.join(('payload', *fault.path))}: {fault.problem}; see the schema of the type {job_type!r} "
        "in 'holdfast types' or GET /v1/types",
        pointer=pointer,
    )
