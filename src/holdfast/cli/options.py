"""Options that are settings: made from the table of settings, and handed to a command as its `Settings`."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from holdfast.config import KNOWN, Settings, load
from holdfast.config.load import FILE_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

_BY_KEY = {setting.key: setting for setting in KNOWN}


def setting_flags(*keys: str) -> Callable[[F], F]:
    """Give a command `--database-url`, `--config` and the flags of these settings.

    They may stand before or after the command's name; what stands after it wins. The values are kept in the
    context, where `settings_options` finds them.
    """
    wanted = ("database_url", *keys)

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> Any:
            given = {key: kwargs.pop(key) for key in wanted}
            remember(given, kwargs.pop("config"))
            return command(*args, **kwargs)

        decorated: Any = click.option(
            "--config", metavar="FILE", type=click.Path(path_type=Path), help="settings, instead of ./holdfast.toml"
        )(run)
        for key in reversed(wanted):
            setting = _BY_KEY[key]
            decorated = click.option(setting.flag, key, metavar="VALUE", help=f"{setting.help} [{setting.variable}]")(
                decorated
            )
        made: F = decorated
        return made

    return decorate


def settings_options(*keys: str) -> Callable[[F], F]:
    """As `setting_flags`, and the command gets the settings of this process first; logs are written as they say."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> Any:
            from holdfast.telemetry import logs

            settings = current_settings()
            logs.set_up(settings.log_format)
            return command(settings, *args, **kwargs)

        return setting_flags(*keys)(run)  # type: ignore[return-value]

    return decorate


def current_settings() -> Settings:
    """The settings of this process, by the flags given so far; raises `Misconfigured`."""
    flags, file = _given()
    return load(flags, file=file)


def export_flags() -> None:
    """Have the programs that this process starts go by the flags it was given: they read the environment."""
    flags, file = _given()
    os.environ |= {_BY_KEY[key].variable: str(value) for key, value in flags.items()}
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file)


def _given() -> tuple[dict[str, object], Path | None]:
    flags: dict[str, object] = {}
    file: Path | None = None
    context: click.Context | None = click.get_current_context()
    while context is not None:  # from the innermost command outwards: what stands later wins
        own = context.meta.get(_place(context), ({}, None))
        flags = own[0] | flags
        file = file or own[1]
        context = context.parent
    return flags, file


def remember(given: dict[str, object], file: Path | None) -> None:
    """Keep what the flags of this command say, for `current_settings`."""
    context = click.get_current_context()
    context.meta[_place(context)] = ({key: value for key, value in given.items() if value is not None}, file)


def _place(context: click.Context) -> str:
    return f"holdfast.settings {context.command_path}"
