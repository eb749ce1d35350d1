"""Integers that a client writes as floats: JSON Schema calls `1.0` an integer."""

from functools import lru_cache
from typing import Any

from msgspec import inspect

INTEGER = "integer"

Plan = Any
"""Places of integers in a type.

`INTEGER`, a dict of plans by field, a list with the plan of the items, or None.
"""


def with_integers(value: Any, kind: Any) -> Any:
    """Return a JSON value with integers for integral floats where `kind` expects integers.

    Fields that accept floats or any JSON, such as a payload, stay as they are.
    """
    return _apply(value, _plan_of(kind))


def _apply(value: Any, plan: Plan) -> Any:
    if plan is INTEGER:
        return int(value) if type(value) is float and value.is_integer() else value
    if type(plan) is dict and type(value) is dict:
        return {name: _apply(each, plan[name]) if name in plan else each for name, each in value.items()}
    if type(plan) is list and type(value) is list:
        return [_apply(each, plan[0]) for each in value]
    return value


@lru_cache(256)
def _plan_of(kind: Any) -> Plan:
    return _plan(inspect.type_info(kind))


def _plan(node: Any) -> Plan:
    match node:
        case inspect.Metadata():
            return _plan(node.type)
        case inspect.IntType():
            return INTEGER
        case inspect.UnionType():
            return _merged([_plan(each) for each in node.types], accepts_floats=_has_float(node))
        case inspect.StructType():
            plans = {field.encode_name: _plan(field.type) for field in node.fields}
            return {name: plan for name, plan in plans.items() if plan is not None} or None
        case inspect.ListType():
            plan = _plan(node.item_type)
            return None if plan is None else [plan]
        case _:
            return None


def _merged(plans: list[Plan], *, accepts_floats: bool) -> Plan:
    """Return the plan of a union: of one type and null, or of structs that a tag tells apart."""
    merged: dict[str, Plan] = {}
    for plan in plans:
        if type(plan) is dict:
            merged |= plan
        elif plan is not None and not (plan is INTEGER and accepts_floats):
            return plan
    return merged or None


def _has_float(node: inspect.UnionType) -> bool:
    inner = (each.type if isinstance(each, inspect.Metadata) else each for each in node.types)
    return any(isinstance(each, inspect.FloatType) for each in inner)
