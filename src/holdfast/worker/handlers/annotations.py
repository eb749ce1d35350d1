"""What a function's annotations mean for JSON, and which of them ask for the running job's context."""

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

Flavour = Literal["async", "sync"]

CONTEXTS: dict[str, Flavour] = {"Context": "async", "SyncContext": "sync"}
_CONTEXT_MODULE = "holdfast.worker.context.context"


class Unresolved(Exception):
    """An annotation names something that is not there, or not there yet."""

    def __init__(self, parameter: str, missing: str) -> None:
        super().__init__(parameter, missing)
        self.parameter = parameter
        self.missing = missing


class _StandIn:
    """Of a context class that the module imports for type checking only."""


class _AsyncStandIn(_StandIn):
    pass


class _SyncStandIn(_StandIn):
    pass


_STAND_INS = {"Context": _AsyncStandIn, "SyncContext": _SyncStandIn}


def read(function: Callable[..., Any], parameter: str, annotation: Any) -> Any:
    """The type an annotation stands for, also when it is written as text; raises `Unresolved`."""
    if annotation is inspect.Parameter.empty:
        return Any
    # Known without an import, which linters like to move to where only type checkers see it.
    names = {**_STAND_INS, **getattr(inspect.unwrap(function), "__globals__", {})}
    holder = types.SimpleNamespace(__annotations__={parameter: annotation})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)[parameter]
    except NameError as error:
        raise Unresolved(parameter, error.name or str(annotation)) from None


def context_flavour(kind: Any) -> Flavour | None:
    """Whether an annotation asks for the context, and which; `Context | None` does as well."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = [each for each in get_args(kind) if each is not types.NoneType]
        return context_flavour(inner[0]) if len(inner) == 1 else None
    if kind is _AsyncStandIn:
        return "async"
    if kind is _SyncStandIn:
        return "sync"
    if not isinstance(kind, type) or kind.__module__ != _CONTEXT_MODULE:
        return None
    return CONTEXTS.get(kind.__name__)


def foreign(kind: Any) -> type | None:
    """A class within a type that JSON cannot carry; TypeError for a union whose parts JSON cannot tell apart."""
    msgspec.json.Decoder(kind, dec_hook=read_model)
    return _foreign(msgspec.inspect.type_info(kind))


def write_model(value: Any) -> Any:
    """For encoders: a model as the JSON values it consists of."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"a {type(value).__name__} is not JSON")
    return dump(mode="json")


def read_model(kind: type, value: Any) -> Any:
    """For decoders: a model from the JSON values it consists of."""
    if isinstance(value, kind):
        return value
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise TypeError(f"a {kind.__name__} cannot be read from JSON")
    return validate(value)


def _foreign(info: msgspec.inspect.Type) -> type | None:
    """A class within a type that can be neither written to nor read from JSON."""
    match info:
        case msgspec.inspect.CustomType(cls):
            return None if hasattr(cls, "model_validate") and hasattr(cls, "model_dump") else cls
        case msgspec.inspect.UnionType(members) | msgspec.inspect.TupleType(members):
            inner: Sequence[msgspec.inspect.Type] = members
        case msgspec.inspect.DictType():
            inner = (info.key_type, info.value_type)
        case (
            msgspec.inspect.ListType()
            | msgspec.inspect.SetType()
            | msgspec.inspect.FrozenSetType()
            | msgspec.inspect.VarTupleType()
        ):
            inner = (info.item_type,)
        case msgspec.inspect.Metadata():
            inner = (info.type,)
        case _:
            return None
    return next((found for each in inner if (found := _foreign(each)) is not None), None)
