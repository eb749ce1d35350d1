"""Arguments of a handler: checked on submission, decoded from JSON when it runs.

A parameter's annotation sets its type: any type that msgspec supports (numbers, strings, UUID, datetime, Decimal,
enums, dataclasses, Structs, TypedDicts, lists and dictionaries of them, …), and models with `model_dump` and
`model_validate`. A parameter without annotation takes any JSON.
"""

import contextlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Union

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.errors import Invalid, Misconfigured
from holdfast.worker.handlers import annotations, schemas
from holdfast.worker.handlers.annotations import CONTEXTS, ContextMode, Unresolved, read_model, write_model

_MSGSPEC_ERROR = re.compile(r"(?P<message>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_PATH_SEGMENT = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_TYPE_NAMES = {"object": "an object", "array": "a list", "null": "None"}
_FIELD_ERROR = re.compile(r"Object (?:missing required|contains unknown) field `([^`]+)`")


class _NoContext:
    """Default of a context parameter; raises an explanation if it is used."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"no context for {name!r}: only a worker passes a context; pass one with ctx=… if you call the function"
        )

    def __repr__(self) -> str:
        return "CONTEXT"


CONTEXT: Final[Any] = _NoContext()
"""Default of a context parameter (`ctx: Context = CONTEXT`): lets callers omit it."""


class _Field(NamedTuple):
    name: str
    kind: Any
    required: bool


class _Shape(NamedTuple):
    """Signature with resolved annotations."""

    context: str | None
    fields: tuple[_Field, ...]
    positional: tuple[str, ...]
    struct: type[Struct]
    decoder: msgspec.json.Decoder[Any]
    returns: Any


class Arguments:
    """Arguments of one function.

    Annotations that name something defined later are resolved on first use.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._function = function
        self._parameters = _parameters(function, name)
        self._shape: _Shape | None = None
        with contextlib.suppress(Unresolved):
            self._shape = self._read()

    @property
    def context(self) -> str | None:
        """Name of the parameter that receives the context, or None."""
        return self.resolve().context

    @property
    def context_is_first(self) -> bool:
        """True if the context is the first parameter, without a default."""
        first = self._parameters[0] if self._parameters else None
        return (
            first is not None
            and first.name == self.context
            and first.default is first.empty
            and first.kind is first.POSITIONAL_OR_KEYWORD
        )

    @property
    def returns(self) -> Any:
        """Annotated return type; `Any` without an annotation or if JSON cannot represent the type."""
        return self.resolve().returns

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a call: the passed arguments as JSON values, without defaults.

        Raises:
            Invalid: The function does not take these arguments; `pointer` names the wrong one.
        """
        shape = self.resolve()
        passed = self._bind(shape, args, kwargs)
        try:
            values = msgspec.convert(passed, shape.struct, dec_hook=read_model)
            payload = {name: _builtins(getattr(values, name), kind) for name, kind, _ in shape.fields if name in passed}
            # The first conversion does not look inside instances; decoding the payload validates their fields.
            msgspec.convert(payload, shape.struct, dec_hook=read_model)
        except msgspec.ValidationError as error:
            raise _invalid(self.name, error) from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Invalid(
                f"{self.name}: the arguments cannot be written as JSON: {error}", pointer="/payload"
            ) from None
        return payload

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Decode the arguments of a call; raise `Invalid` if they do not match the signature."""
        shape = self.resolve()
        try:
            values = shape.decoder.decode(b"{}" if payload == b"null" else payload)
        except msgspec.ValidationError as error:
            raise _invalid(self.name, error) from None
        except msgspec.DecodeError as error:
            raise Invalid(f"{self.name}: the payload is not JSON: {error}", pointer="/payload") from None
        return {name: value for name, _, _ in shape.fields if (value := getattr(values, name)) is not UNSET}

    def decode_result(self, result: bytes | None) -> Any:
        """Decode a result to the annotated return type."""
        if result is None:
            return None
        return msgspec.json.decode(result, type=self.returns, dec_hook=read_model)

    def schema(self) -> str | None:
        """Return the JSON Schema of the payload, or None if it cannot be built or is too large."""
        defaults = {param.name: param.default for param in self._parameters if param.default is not param.empty}
        return schemas.render_schema(self.name, self._function, self.resolve().struct, defaults)

    def resolve(self) -> _Shape:
        """Resolve the annotations unless done; raise `Misconfigured` if one cannot be used."""
        if self._shape is None:
            try:
                self._shape = self._read()
            except Unresolved as error:
                raise Misconfigured(
                    f"job {self.name!r}: the annotation of {error.parameter!r} names {error.missing!r}, which is not "
                    "defined at run time: import or define it in the module, not only for type checking"
                ) from None
        return self._shape

    def _read(self) -> _Shape:
        context: str | None = None
        fields: list[_Field] = []
        for parameter in self._parameters:
            kind = self._kind(parameter.name, parameter.annotation)
            if mode := annotations.context_mode(kind):
                if context is not None:
                    raise Misconfigured(
                        f"job {self.name!r}: both {context!r} and {parameter.name!r} are annotated as the context"
                    )
                self._check_context_mode(mode)
                context = parameter.name
                continue
            if parameter.default is CONTEXT:
                raise Misconfigured(f"job {self.name!r}: annotate {parameter.name!r} as Context or SyncContext")
            self._check_kind(parameter.name, kind)
            fields.append(_Field(parameter.name, kind, parameter.default is parameter.empty))
        struct = self._struct(fields)
        positional = [param.name for param in self._parameters if param.kind is param.POSITIONAL_OR_KEYWORD]
        return _Shape(
            context=context,
            fields=tuple(fields),
            positional=tuple(name for name in positional if name != context),
            struct=struct,
            decoder=msgspec.json.Decoder(struct, dec_hook=read_model),
            returns=self._return_type(),
        )

    def _struct(self, fields: Sequence[_Field]) -> type[Struct]:
        struct_fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
            (name, kind) if required else (name, Union[kind, UnsetType], UNSET)  # noqa: UP007 - the members are run-time values
            for name, kind, required in fields
        ]
        try:
            return msgspec.defstruct("Payload", struct_fields, kw_only=True, forbid_unknown_fields=True)
        except (TypeError, ValueError) as error:
            raise Misconfigured(f"job {self.name!r}: its parameters cannot be read from JSON: {error}") from error

    def _kind(self, parameter: str, annotation: Any) -> Any:
        try:
            return annotations.read(self._function, parameter, annotation)
        except Unresolved:
            raise
        except Exception as error:  # annotations are user code
            raise Misconfigured(
                f"job {self.name!r}: the annotation of {parameter!r} cannot be read: {error}"
            ) from error

    def _check_kind(self, parameter: str, kind: Any) -> None:
        try:
            unsupported = annotations.unsupported_class(kind)
        except (TypeError, ValueError, NameError) as error:
            raise Misconfigured(f"job {self.name!r}: {parameter!r} cannot be read from JSON: {error}") from error
        if unsupported is not None:
            raise Misconfigured(
                f"job {self.name!r}: {parameter!r} is a {unsupported.__name__}, which JSON cannot represent: "
                "pass plain values, a dataclass or a msgspec Struct, or an id to look it up by"
            )

    def _check_context_mode(self, mode: ContextMode) -> None:
        expected: ContextMode = "async" if inspect.iscoroutinefunction(self._function) else "sync"
        if mode != expected:
            names = {mode: name for name, mode in CONTEXTS.items()}
            kind = "an async function takes a" if expected == "async" else "a plain function takes a"
            raise Misconfigured(f"job {self.name!r}: {kind} {names[expected]}, not a {names[mode]}")

    def _return_type(self) -> Any:
        annotation = getattr(inspect.unwrap(self._function), "__annotations__", {}).get("return", Any)
        try:
            kind = annotations.read(self._function, "return", annotation)
            supported = annotations.unsupported_class(kind) is None
        except Exception:  # noqa: BLE001 - annotations are user code; results then stay plain JSON values
            return Any
        if (unsupported := annotations.never_json(kind)) is not None:
            raise Misconfigured(
                f"job {self.name!r} returns a {unsupported.__name__}, which JSON cannot represent: return plain "
                "values, a dataclass, a msgspec Struct or a model"
            )
        return kind if supported else Any

    def _bind(self, shape: _Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(shape.positional):
            raise Invalid(
                f"{self.name} takes {len(shape.positional)} positional arguments and got {len(args)}",
                pointer="/payload",
            )
        passed = dict(zip(shape.positional, args, strict=False))
        known = {field.name for field in shape.fields}
        for name, value in kwargs.items():
            if name in passed:
                raise Invalid(f"{self.name} got {name!r} twice", pointer=_pointer(name))
            if name == shape.context:
                raise Invalid(f"{self.name}: {name!r} is passed by the worker: leave it out", pointer=_pointer(name))
            if name not in known:
                takes = f"it takes {', '.join(field.name for field in shape.fields)}" if known else "it takes none"
                raise Invalid(f"{self.name} has no argument {name!r}: {takes}", pointer=_pointer(name))
            passed[name] = value
        for field in shape.fields:
            if field.required and field.name not in passed:
                raise Invalid(f"{self.name}: the argument {field.name!r} is missing", pointer=_pointer(field.name))
        return passed


def _builtins(value: Any, kind: Any) -> Any:
    # Without an annotation the decoder returns plain JSON values, so nothing else may be passed.
    return value if kind is Any else msgspec.to_builtins(value, str_keys=True, enc_hook=write_model)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """Return the parameters; raise `Misconfigured` if one cannot be passed by name."""
    parameters = list(inspect.signature(function).parameters.values())
    for index, param in enumerate(parameters):
        if param.kind is param.POSITIONAL_ONLY:
            raise Misconfigured(
                f"job {name!r}: {param.name!r} is positional-only, but arguments are passed by name: remove the '/'"
            )
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            star = "*" if param.kind is param.VAR_POSITIONAL else "**"
            raise Misconfigured(
                f"job {name!r}: {star}{param.name} cannot be checked: name the arguments, or take a list or dict"
            )
        if index == 0 and param.name in ("self", "cls") and param.annotation is param.empty:
            raise Misconfigured(
                f"job {name!r}: a method cannot be a job, there is no {param.name!r} to call it on: use a function"
            )
    return parameters


def _invalid(name: str, error: msgspec.ValidationError) -> Invalid:
    """Convert a msgspec error to one with a pointer.

    An example of such an error is "Expected `int`, got `str` - at `$.user_id`".
    """
    match = _MSGSPEC_ERROR.fullmatch(str(error))
    message, path = (match["message"], match["path"] or "") if match else (str(error), "")
    segments: list[str] = []
    for field, index, unknown in _PATH_SEGMENT.findall(path):
        if unknown:  # a value of a dictionary: msgspec does not report its key
            break
        segments.append(field or index)
    if field_error := _FIELD_ERROR.match(message):
        segments.append(field_error[1])
        problem = " is missing" if "missing" in message else " is not one of its arguments"
    else:
        plain = re.sub(r"`([^`]*)`", lambda types: _describe_types(types[1]), message)
        problem = f": {plain[:1].lower()}{plain[1:]}"
    return Invalid(f"{name}: {'.'.join(segments) or 'the payload'}{problem}", pointer=_pointer(*segments))


def _describe_types(names: str) -> str:
    return " | ".join(_TYPE_NAMES.get(name, name) for name in names.split(" | "))


def _pointer(*segments: str) -> str:
    """Return the JSON Pointer (RFC 6901) of a value in the payload."""
    return "/".join(["/payload", *(segment.replace("~", "~0").replace("/", "~1") for segment in segments)])
