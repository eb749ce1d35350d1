"""Command line options built from the table of settings."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from holdfast.config import SETTINGS, Settings, load
from holdfast.config.load import FILE_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

_BY_KEY = {setting.key: setting for setting in SETTINGS}


def setting_flags(*keys: str) -> Callable[[F], F]:
    """Give a command `--database-url`, `--config` and the flags of these settings.

    The flags work before and after the command's name; those after it win. The values are stored in the click context
    for `current_settings`.
    """
    names = ("database_url", *keys)

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> Any:
            given = {key: kwargs.pop(key) for key in names}
            store_flags(given, kwargs.pop("config"))
            return command(*args, **kwargs)

        decorated: Any = click.option(
            "--config",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="settings file, default ./holdfast.toml",
        )(run)
        for key in reversed(names):
            setting = _BY_KEY[key]
            decorated = click.option(setting.flag, key, metavar="VALUE", help=f"{setting.help} [{setting.variable}]")(
                decorated
            )
        with_options: F = decorated
        return with_options

    return decorate


def settings_options(*keys: str) -> Callable[[F], F]:
    """Give a command these flags, set up logging, and pass the settings as its first argument."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> Any:
            from holdfast.telemetry import logs

            settings = current_settings()
            logs.set_up(settings.log_format, settings.log_level)
            return command(settings, *args, **kwargs)

        return setting_flags(*keys)(run)  # type: ignore[return-value]

    return decorate


def current_settings() -> Settings:
    """Load the settings, with the flags of the current command. Raises `Misconfigured`."""
    flags, file = _flags()
    return load(flags, file=file)


def export_flags() -> None:
    """Copy the flags of this command into the environment, for the processes it starts."""
    flags, file = _flags()
    os.environ |= {_BY_KEY[key].variable: str(value) for key, value in flags.items()}
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file)


def _flags() -> tuple[dict[str, object], Path | None]:
    flags: dict[str, object] = {}
    file: Path | None = None
    context: click.Context | None = click.get_current_context()
    while context is not None:  # from the innermost command outwards: later flags win
        own_flags, own_file = context.meta.get(_meta_key(context), ({}, None))
        flags = own_flags | flags
        file = file or own_file
        context = context.parent
    return flags, file


def store_flags(given: dict[str, object], file: Path | None) -> None:
    """Store the flags of this command for `current_settings`."""
    context = click.get_current_context()
    context.meta[_meta_key(context)] = ({key: value for key, value in given.items() if value is not None}, file)


def _meta_key(context: click.Context) -> str:
    return f"holdfast.settings {context.command_path}"
