"""Annotations of handlers: types for JSON, and the parameter that receives the context."""

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

ContextMode = Literal["async", "sync"]

CONTEXTS: dict[str, ContextMode] = {"Context": "async", "SyncContext": "sync"}
_CONTEXT_MODULE = "holdfast.worker.context.context"


class Unresolved(Exception):
    """Raised if an annotation names something that is not defined, or not defined yet."""

    def __init__(self, parameter: str, missing: str) -> None:
        super().__init__(parameter, missing)
        self.parameter = parameter
        self.missing = missing


class _StandIn:
    """Stand-in for a context class that the module imports only for type checking."""


class _AsyncStandIn(_StandIn):
    pass


class _SyncStandIn(_StandIn):
    pass


_STAND_INS = {"Context": _AsyncStandIn, "SyncContext": _SyncStandIn}


def read(function: Callable[..., Any], parameter: str, annotation: Any) -> Any:
    """Return the type of an annotation, even if it is a string.

    Raises:
        Unresolved: The annotation uses an undefined name.
    """
    if annotation is inspect.Parameter.empty:
        return Any
    # Linters move the import of a context class below `if TYPE_CHECKING`, where it does not exist at run time.
    names = {**_STAND_INS, **getattr(inspect.unwrap(function), "__globals__", {})}
    holder = types.SimpleNamespace(__annotations__={parameter: annotation})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)[parameter]
    except NameError as error:
        raise Unresolved(parameter, error.name or str(annotation)) from None


def context_mode(kind: Any) -> ContextMode | None:
    """Return the kind of context that a type asks for (`Context | None` does too), or None."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = [member for member in get_args(kind) if member is not types.NoneType]
        return context_mode(inner[0]) if len(inner) == 1 else None
    if kind is _AsyncStandIn:
        return "async"
    if kind is _SyncStandIn:
        return "sync"
    if not isinstance(kind, type) or kind.__module__ != _CONTEXT_MODULE:
        return None
    return CONTEXTS.get(kind.__name__)


def unsupported_class(kind: Any) -> type | None:
    """Return a class inside a type that JSON cannot represent, or None.

    Raises:
        TypeError: The type has a union whose members JSON cannot distinguish.
    """
    msgspec.json.Decoder(kind, dec_hook=read_model)
    return _unsupported(msgspec.inspect.type_info(kind))


def never_json(kind: Any) -> type | None:
    """Return the type if JSON can represent none of its instances, or None if it may.

    An abstract class, a protocol or a class with subclasses may be fine, because the value can be of another class.
    """
    try:
        if not isinstance(kind, type) or unsupported_class(kind) is not kind or kind is object:
            return None
    except Exception:  # noqa: BLE001 - annotations are user code
        return None
    uncertain = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False) or bool(kind.__subclasses__())
    return None if uncertain else kind


def write_model(value: Any) -> Any:
    """Encode a model that has `model_dump`; hook for msgspec encoders."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"a {type(value).__name__} is not JSON")
    return dump(mode="json")


def read_model(kind: type, value: Any) -> Any:
    """Decode a model that has `model_validate`; hook for msgspec decoders."""
    if isinstance(value, kind):
        return value
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise TypeError(f"a {kind.__name__} cannot be read from JSON")
    return validate(value)


def _unsupported(info: msgspec.inspect.Type) -> type | None:
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
    return next((unsupported for part in inner if (unsupported := _unsupported(part)) is not None), None)
