"""Exit codes of the commands, and the one-line error messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from holdfast.config import Settings
from holdfast.errors import (
    Forbidden,
    HoldfastError,
    Invalid,
    Misconfigured,
    NotFound,
    RateLimited,
    SchemaMismatch,
    Unauthorized,
    Unavailable,
)
from holdfast.policy.redact import redact

OK = 0
FAILED = 1
MISUSED = 2
UNAVAILABLE = 3
NOT_FOUND = 4
REFUSED = 5
INTERRUPTED = 130

_SETTING = "HOLDFAST_DATABASE_URL"

MEANINGS = {
    OK: "done",
    FAILED: "the command failed, or the check found a problem",
    MISUSED: "invalid flag, setting or input, or an unusable database; nothing was started",
    UNAVAILABLE: "the database or the service is unavailable or overloaded; a retry may help",
    NOT_FOUND: "no such job, queue, tenant or key",
    REFUSED: "the API key is invalid, or does not permit this",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""Descriptions for the reference pages. The codes are stable."""


class CannotStart(Misconfigured):
    """A command could not open its database at startup."""

    code = "cannot_start"


@contextmanager
def startup_errors(settings: Settings) -> Iterator[None]:
    """Turn errors of opening the database within the block into `CannotStart`, with exit code 2.

    A database that cannot be reached at startup is treated like a wrong setting. The message names the flag, variable
    or key that the URL came from.
    """
    try:
        yield
    except (Unavailable, Misconfigured) as error:
        text = str(error)
        if not any(name in text for name in (_SETTING, "HOLDFAST_API_")) and not isinstance(error, SchemaMismatch):
            text = f"{_SETTING}: {text}"
        raise CannotStart(text.replace(_SETTING, settings.sources.get("database_url", _SETTING))) from error


def exit_code_for(error: BaseException) -> int:
    """Return the exit code for an error."""
    match error:
        case click.ClickException():
            return error.exit_code
        case Misconfigured() | Invalid():
            return MISUSED
        case Unavailable() | RateLimited():
            return UNAVAILABLE
        case NotFound():
            return NOT_FOUND
        case Unauthorized() | Forbidden():
            return REFUSED
        case _:
            return FAILED


def error_line(error: BaseException) -> str:
    """Return the error message for the terminal, in one line."""
    match error:
        case click.UsageError():
            where = error.ctx.command_path if error.ctx else "holdfast"
            text = f"{error.format_message().rstrip('.')} (see '{where} --help')"
        case click.ClickException():
            text = error.format_message()
        case HoldfastError():
            text = str(error)
        case _:
            kind = type(error).__name__
            text = f"{kind}: {redact(str(error))} (unexpected, please report it; HOLDFAST_DEBUG=1 shows the traceback)"
    return " ".join(_with_cli_names(text).split())


def _with_cli_names(text: str) -> str:
    """Replace names of the HTTP API in a message by the flags of the command line."""
    return text.replace("say `all`: true", "--all").replace("Authorization: Bearer …", "--key, or HOLDFAST_API_KEY")
