"""Load the settings: flags win over the environment, then `holdfast.toml`, then defaults."""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.config.definitions import SETTINGS, Setting
from holdfast.config.settings import Settings
from holdfast.config.values import Url
from holdfast.errors import Misconfigured

FILE = "holdfast.toml"
FILE_VARIABLE = "HOLDFAST_CONFIG"

_NO_FLAGS: Mapping[str, object] = {}


class RawValue(NamedTuple):
    """Value of a setting before parsing, and its source: a flag, a variable, or a key of a file."""

    value: object
    source: str


def load(
    flags: Mapping[str, object] = _NO_FLAGS,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    folder: Path | None = None,
) -> Settings:
    """Load the settings of this process.

    Args:
        flags: Values by key; None for flags that are not given.
        environ: Environment, by default that of the process. An empty variable counts as not set.
        file: Settings file of `--config`. The default is the file that HOLDFAST_CONFIG names, or `holdfast.toml`.
        folder: Folder of `holdfast.toml`, by default the current directory.

    Raises:
        Misconfigured: A value is invalid; names its flag, variable or key.
    """
    variables = os.environ if environ is None else environ
    from_file = _read_file(file, variables, folder or Path())
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        raw = next(_candidates(setting, flags, variables, from_file), None)
        if raw is not None:
            values[setting.field] = _parse(setting, raw)
            sources[setting.key] = raw.source
    settings = Settings(**values, sources=sources)
    _check_combinations(settings)
    return settings


def _candidates(
    setting: Setting, flags: Mapping[str, object], variables: Mapping[str, str], from_file: Mapping[str, RawValue]
) -> Iterator[RawValue]:
    """Yield the values that are given for a setting, in order of precedence."""
    if flags.get(setting.key) is not None:
        yield RawValue(flags[setting.key], setting.flag)
    for name in (setting.variable, *setting.bare):
        if variables.get(name):
            yield RawValue(variables[name], name)
    if setting.key in from_file:
        yield from_file[setting.key]


def _parse(setting: Setting, raw: RawValue) -> object:
    try:
        return setting.reader.read(raw.value)
    except ValueError:
        # A URL that cannot be parsed may have its password anywhere, so it is not shown.
        value = "" if setting.secret or isinstance(setting.reader, Url) else f" {setting.shown(raw.value)}"
        raise Misconfigured(f"{raw.source}: invalid value{value}: expected {setting.reader.expected}") from None


def _check_combinations(settings: Settings) -> None:
    """Check settings that depend on each other."""
    if settings.backoff_max < settings.backoff_base:
        names = [settings.sources.get(key, f"the default of {key}") for key in ("backoff_base_ms", "backoff_max_ms")]
        raise Misconfigured(
            f"{names[1]}: the maximum backoff, {settings.backoff_max // 1_000} ms, is shorter than the first one, "
            f"{settings.backoff_base // 1_000} ms ({names[0]}): increase it"
        )


def _read_file(file: Path | None, variables: Mapping[str, str], folder: Path) -> dict[str, RawValue]:
    named, source = file, "--config"
    if named is None and variables.get(FILE_VARIABLE):
        named, source = Path(variables[FILE_VARIABLE]), FILE_VARIABLE
    path = named or folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named is None:
            return {}
        raise Misconfigured(f"{source}: no such file: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misconfigured(f"cannot read {path} ({why}): fix or remove it") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{path} is not valid TOML ({error}): write lines such as port = 8080") from error
    return {key: RawValue(value, f"{key} in {path}") for key, value in _require_known(table, path).items()}


def _require_known(table: dict[str, Any], path: Path) -> dict[str, Any]:
    keys = [setting.key for setting in SETTINGS]
    for key in table:
        if key not in keys:
            similar = difflib.get_close_matches(key.lower().removeprefix("holdfast_"), keys, 1, 0.5)
            hint = f"did you mean {similar[0]}?" if similar else f"the settings are {', '.join(keys)}"
            raise Misconfigured(f"{key} in {path}: no such setting; {hint}")
    return table
