"""Read the settings once: flag over environment over `holdfast.toml` over default."""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.config.settings import KNOWN, Setting, Settings
from holdfast.errors import Misconfigured

FILE = "holdfast.toml"
FILE_VARIABLE = "HOLDFAST_CONFIG"

_NO_FLAGS: Mapping[str, object] = {}


class Given(NamedTuple):
    """A value somebody gave, and where: a flag, a variable, or a key of a file."""

    value: object
    source: str


def load(
    flags: Mapping[str, object] = _NO_FLAGS,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings of this process; raises `Misconfigured` naming the flag, variable or key that cannot be used.

    `flags` maps keys to values, None for those not given. `file` is the file of `--config`; without it
    HOLDFAST_CONFIG names one, or there is a `holdfast.toml` in `folder` (by default where the process runs).
    An empty variable counts as not set.
    """
    variables = os.environ if environ is None else environ
    found = _read_file(file, variables, folder or Path())
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in KNOWN:
        given = next(_given(setting, flags, variables, found), None)
        if given is not None:
            values[setting.field] = _value(setting, given)
            sources[setting.key] = given.source
    settings = Settings(**values, sources=sources)
    _check_together(settings)
    return settings


def _given(
    setting: Setting, flags: Mapping[str, object], variables: Mapping[str, str], found: Mapping[str, Given]
) -> Iterator[Given]:
    """Who gives a value, the strongest first."""
    if flags.get(setting.key) is not None:
        yield Given(flags[setting.key], setting.flag)
    for name in (setting.variable, *setting.bare):
        if variables.get(name):
            yield Given(variables[name], name)
    if setting.key in found:
        yield found[setting.key]


def _value(setting: Setting, given: Given) -> object:
    try:
        return setting.reader.read(given.value)
    except ValueError:
        shown = "the value" if setting.secret else setting.shown(given.value)
        raise Misconfigured(f"{given.source}: {shown} cannot be used: give {setting.reader.takes}") from None


def _check_together(settings: Settings) -> None:
    """What only several settings together can get wrong."""
    if settings.backoff_max < settings.backoff_base:
        names = [settings.sources.get(key, f"the default of {key}") for key in ("backoff_base_ms", "backoff_max_ms")]
        raise Misconfigured(
            f"{names[1]}: the longest wait, {settings.backoff_max // 1_000} ms, is shorter than the first one, "
            f"{settings.backoff_base // 1_000} ms ({names[0]}): give at least as much"
        )


def _read_file(file: Path | None, variables: Mapping[str, str], folder: Path) -> dict[str, Given]:
    named, who = file, "--config"
    if named is None and variables.get(FILE_VARIABLE):
        named, who = Path(variables[FILE_VARIABLE]), FILE_VARIABLE
    path = named or folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named is None:
            return {}
        raise Misconfigured(f"{who}: there is no file {path}: name one that is there, or leave it out") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misconfigured(f"{path} cannot be read ({why}): mend or remove it") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{path} is not TOML ({error}): write lines such as port = 8080") from error
    return {key: Given(value, f"{key} in {path}") for key, value in _only_known(table, path).items()}


def _only_known(table: dict[str, Any], path: Path) -> dict[str, Any]:
    keys = [setting.key for setting in KNOWN]
    for key in table:
        if key not in keys:
            near = difflib.get_close_matches(key.lower().removeprefix("holdfast_"), keys, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(keys)}"
            raise Misconfigured(f"{key} in {path}: there is no such setting: {hint}")
    return table
