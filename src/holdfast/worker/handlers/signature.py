"""From a function's signature to its arguments as JSON and back: checked when enqueued, decoded when run.

An argument goes by its annotation: whatever msgspec can write and read (numbers, texts, UUID, datetime, Decimal, enums,
dataclasses, Structs, TypedDicts, lists and dictionaries of them, …), and models with `model_dump` and `model_validate`.
A parameter without annotation takes any JSON.
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
from holdfast.worker.handlers.annotations import CONTEXTS, Flavour, Unresolved, read_model, write_model

_FAULT = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_KINDS = {"object": "an object", "array": "a list", "null": "None"}
_NAMED = re.compile(r"Object (?:missing required|contains unknown) field `([^`]+)`")


class _NoContext:
    """Stands in for the context of a function that is called by hand: any use of it says so."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"there is no context here: the worker gives one; call the function with ctx=… (for {name!r})"
        )

    def __repr__(self) -> str:
        return "CONTEXT"


CONTEXT: Final[Any] = _NoContext()
"""The default of a context parameter, `ctx: Context = CONTEXT`: tells type checkers that no caller need give it."""


class _Field(NamedTuple):
    name: str
    kind: Any
    required: bool


class _Shape(NamedTuple):
    """What is known once the annotations were looked at."""

    context: str | None
    fields: tuple[_Field, ...]
    positional: tuple[str, ...]
    struct: type[Struct]
    decoder: msgspec.json.Decoder[Any]
    returns: Any


class Arguments:
    """The arguments of one function. Annotations that name something defined further down are read at first use."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._function = function
        self._parameters = _parameters(function, name)
        self._shape: _Shape | None = None
        with contextlib.suppress(Unresolved):
            self._shape = self._read()

    @property
    def context(self) -> str | None:
        """The parameter that wants the running job's context."""
        return self.resolve().context

    @property
    def returns(self) -> Any:
        """What the function returns by its annotation; `Any` when it does not say, or JSON cannot tell."""
        return self.resolve().returns

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The payload for a call with these arguments: only those given, as JSON values.

        `Invalid` for arguments that the function would not take, with a pointer to the one at fault.
        """
        shape = self.resolve()
        given = self._bind(shape, args, kwargs)
        try:
            values = msgspec.convert(given, shape.struct, dec_hook=read_model)
            payload = {name: _builtins(getattr(values, name), kind) for name, kind, _ in shape.fields if name in given}
            # An instance is taken as it is above; whether its fields are what they claim shows on the way back.
            msgspec.convert(payload, shape.struct, dec_hook=read_model)
        except msgspec.ValidationError as error:
            raise _invalid(self.name, error) from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Invalid(
                f"{self.name}: the arguments cannot be written as JSON: {error}", pointer="/payload"
            ) from None
        return payload

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The arguments to call the function with; `Invalid` when the payload does not fit it."""
        shape = self.resolve()
        try:
            values = shape.decoder.decode(b"{}" if payload == b"null" else payload)
        except msgspec.ValidationError as error:
            raise _invalid(self.name, error) from None
        except msgspec.DecodeError as error:
            raise Invalid(f"{self.name}: the payload is not JSON: {error}", pointer="/payload") from None
        return {name: value for name, _, _ in shape.fields if (value := getattr(values, name)) is not UNSET}

    def decode_result(self, result: bytes | None) -> Any:
        """What the function returned, as its annotation says."""
        if result is None:
            return None
        return msgspec.json.decode(result, type=self.returns, dec_hook=read_model)

    def schema(self) -> str | None:
        """JSON Schema of the payload, for forms; None where it cannot be told, or would be too large."""
        defaults = {each.name: each.default for each in self._parameters if each.default is not each.empty}
        return schemas.render_schema(self.name, self._function, self.resolve().struct, defaults)

    def resolve(self) -> _Shape:
        """Look at the annotations now, if not done yet; raises `Misconfigured` for those that cannot be used."""
        if self._shape is None:
            try:
                self._shape = self._read()
            except Unresolved as error:
                raise Misconfigured(
                    f"job {self.name!r}: the annotation of {error.parameter!r} names {error.missing!r}, which is not "
                    "there at run time: import or define it in the module, and not only for type checking"
                ) from None
        return self._shape

    def _read(self) -> _Shape:
        context: str | None = None
        fields: list[_Field] = []
        for parameter in self._parameters:
            kind = self._kind(parameter.name, parameter.annotation)
            if flavour := annotations.context_flavour(kind):
                if context is not None:
                    raise Misconfigured(
                        f"job {self.name!r}: both {context!r} and {parameter.name!r} ask for the context"
                    )
                self._check_flavour(flavour)
                context = parameter.name
                continue
            if parameter.default is CONTEXT:
                raise Misconfigured(f"job {self.name!r}: annotate {parameter.name!r} as Context or SyncContext")
            self._check_kind(parameter.name, kind)
            fields.append(_Field(parameter.name, kind, parameter.default is parameter.empty))
        struct = self._struct(fields)
        positional = [each.name for each in self._parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        return _Shape(
            context=context,
            fields=tuple(fields),
            positional=tuple(name for name in positional if name != context),
            struct=struct,
            decoder=msgspec.json.Decoder(struct, dec_hook=read_model),
            returns=self._returns(),
        )

    def _struct(self, fields: Sequence[_Field]) -> type[Struct]:
        whole: list[tuple[str, Any] | tuple[str, Any, Any]] = [
            (name, kind) if required else (name, Union[kind, UnsetType], UNSET)  # noqa: UP007 - of values
            for name, kind, required in fields
        ]
        try:
            return msgspec.defstruct("Payload", whole, kw_only=True, forbid_unknown_fields=True)
        except (TypeError, ValueError) as error:
            raise Misconfigured(f"job {self.name!r}: its parameters cannot be read from JSON: {error}") from error

    def _kind(self, parameter: str, annotation: Any) -> Any:
        try:
            return annotations.read(self._function, parameter, annotation)
        except Unresolved:
            raise
        except Exception as error:  # an annotation is the user's code
            raise Misconfigured(
                f"job {self.name!r}: the annotation of {parameter!r} cannot be read: {error}"
            ) from error

    def _check_kind(self, parameter: str, kind: Any) -> None:
        try:
            stranger = annotations.foreign(kind)
        except (TypeError, ValueError, NameError) as error:
            raise Misconfigured(f"job {self.name!r}: {parameter!r} cannot be read from JSON: {error}") from error
        if stranger is not None:
            raise Misconfigured(
                f"job {self.name!r}: {parameter!r} is a {stranger.__name__}, which JSON cannot carry: "
                "pass plain values, a dataclass or a msgspec Struct, or an id to look it up by"
            )

    def _check_flavour(self, flavour: Flavour) -> None:
        wanted: Flavour = "async" if inspect.iscoroutinefunction(self._function) else "sync"
        if flavour != wanted:
            names = {flavour: name for name, flavour in CONTEXTS.items()}
            what = "an async function takes a" if wanted == "async" else "a plain function takes a"
            raise Misconfigured(f"job {self.name!r}: {what} {names[wanted]}, not a {names[flavour]}")

    def _returns(self) -> Any:
        annotation = getattr(inspect.unwrap(self._function), "__annotations__", {}).get("return", Any)
        try:
            kind = annotations.read(self._function, "return", annotation)
            return kind if annotations.foreign(kind) is None else Any
        except Exception:  # noqa: BLE001 - an annotation is the user's code; results are then given as JSON has them
            return Any

    def _bind(self, shape: _Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(shape.positional):
            raise Invalid(
                f"{self.name} takes {len(shape.positional)} positional arguments and was given {len(args)}",
                pointer="/payload",
            )
        given = dict(zip(shape.positional, args, strict=False))
        known = {field.name for field in shape.fields}
        for name, value in kwargs.items():
            if name in given:
                raise Invalid(f"{self.name} was given {name!r} twice", pointer=_pointer(name))
            if name == shape.context:
                raise Invalid(f"{self.name}: {name!r} is given by the worker, leave it out", pointer=_pointer(name))
            if name not in known:
                takes = f"it takes {', '.join(field.name for field in shape.fields)}" if known else "it takes none"
                raise Invalid(f"{self.name} has no argument {name!r}: {takes}", pointer=_pointer(name))
            given[name] = value
        for field in shape.fields:
            if field.required and field.name not in given:
                raise Invalid(f"{self.name}: the argument {field.name!r} is missing", pointer=_pointer(field.name))
        return given


def _builtins(value: Any, kind: Any) -> Any:
    # What is not annotated comes back as JSON has it, so nothing is turned into something else on the way.
    return value if kind is Any else msgspec.to_builtins(value, str_keys=True, enc_hook=write_model)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """The parameters, if each can be given by name."""
    parameters = list(inspect.signature(function).parameters.values())
    for index, each in enumerate(parameters):
        if each.kind is each.POSITIONAL_ONLY:
            raise Misconfigured(
                f"job {name!r}: {each.name!r} is positional-only; arguments travel by name: remove the '/'"
            )
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            star = "*" if each.kind is each.VAR_POSITIONAL else "**"
            raise Misconfigured(
                f"job {name!r}: {star}{each.name} cannot be checked: name the arguments, or take a list or dict"
            )
        if index == 0 and each.name in ("self", "cls") and each.annotation is each.empty:
            raise Misconfigured(
                f"job {name!r}: a method cannot be a job, there is no {each.name!r} to call it on: use a function"
            )
    return parameters


def _invalid(name: str, error: msgspec.ValidationError) -> Invalid:
    """What msgspec says, such as "Expected `int`, got `str` - at `$.user_id`", with a pointer."""
    found = _FAULT.fullmatch(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    steps: list[str] = []
    for field, index, some in _STEP.findall(path):
        if some:  # one of a dictionary's values: its key is not told
            break
        steps.append(field or index)
    if named := _NAMED.match(what):
        steps.append(named[1])
        what = "is missing" if "missing" in what else "is not an argument of it"
    what = re.sub(r"`([^`]*)`", lambda each: " | ".join(_KINDS.get(kind, kind) for kind in each[1].split(" | ")), what)
    words = what[:1].lower() + what[1:] if not named else what
    return Invalid(
        f"{name}: {'.'.join(steps) or 'the payload'}{'' if named else ':'} {words}", pointer=_pointer(*steps)
    )


def _pointer(*steps: str) -> str:
    return "/".join(["/payload", *(step.replace("~", "~0").replace("/", "~1") for step in steps)])
