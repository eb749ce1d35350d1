"""How commands end: the exit codes, and the one line that says why."""

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
    FAILED: "it could not be done, or what was looked at is not as it should be",
    MISUSED: "a flag, a setting or an input cannot be used, or the database cannot be worked with: nothing was begun",
    UNAVAILABLE: "the database or the service is away, or too busy; trying again may help",
    NOT_FOUND: "there is no such job, queue, tenant or key",
    REFUSED: "the key is not a good one, or not good for this",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""For the reference; the codes are stable."""


class CannotStart(Misconfigured):
    """The database did not answer when a command began."""

    code = "cannot_start"


@contextmanager
def starting(settings: Settings) -> Iterator[None]:
    """Around whatever opens the database: one that cannot be reached at the start is as good as a wrong setting.

    The message names the flag, variable or key that the URL came from.
    """
    try:
        yield
    except (Unavailable, Misconfigured) as error:
        text = str(error)
        if not any(name in text for name in (_SETTING, "HOLDFAST_API_")) and not isinstance(error, SchemaMismatch):
            text = f"{_SETTING}: {text}"
        raise CannotStart(text.replace(_SETTING, settings.sources.get("database_url", _SETTING))) from error


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
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


def one_line(error: BaseException) -> str:
    """What is printed of an error."""
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
            text = f"{kind}: {error} (unexpected: please report it; HOLDFAST_DEBUG=1 shows where)"
    return " ".join(_in_command_words(text).split())


def _in_command_words(text: str) -> str:
    """What the service says of a request, in the words of whoever typed a command."""
    return text.replace("say `all`: true", "--all").replace("Authorization: Bearer …", "--key, or HOLDFAST_API_KEY")
