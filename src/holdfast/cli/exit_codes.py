"""Exit codes of the commands, and the one-line error messages."""

import re
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


class CannotConnect(Unavailable):
    """A command could not reach its database at startup."""


class Declined(click.ClickException):
    """The user answered no, so nothing was changed."""

    exit_code = FAILED


@contextmanager
def startup_errors(settings: Settings) -> Iterator[None]:
    """Name the source of the URL in errors of opening the database within the block.

    Raises:
        CannotConnect: The database is unavailable; exit code 3.
        CannotStart: The setting is wrong; exit code 2.
        SchemaMismatch: The schema is older or newer; exit code 2.
    """
    try:
        yield
    except SchemaMismatch:
        raise
    except (Unavailable, Misconfigured) as error:
        text = str(error)
        if not any(name in text for name in (_SETTING, "HOLDFAST_API_")):
            text = f"{_SETTING}: {text}"
        text = text.replace(_SETTING, settings.sources.get("database_url", _SETTING))
        raise (CannotConnect if isinstance(error, Unavailable) else CannotStart)(text) from error


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
    """Replace names of the HTTP API in a message by the commands and flags of the command line."""
    for pattern, replacement in _CLI_NAMES:
        text = pattern.sub(replacement, text)
    return text


_CLI_NAMES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"say `all`: true", "--all"),
        (r"Authorization: Bearer …", "--key, or HOLDFAST_API_KEY"),
        (r"PATCH /v1/tenants/(\S+)", r"'holdfast tenants set \1'"),
        (r"POST /v1/tenants/([^/\s]+)/webhook-secret", r"'holdfast webhooks rotate-secret \1'"),
        (r"POST /v1/tenants", "'holdfast tenants create NAME'"),
        (r"POST /v1/keys", "'holdfast keys create NAME'"),
        (r"GET /v1/(tenants|keys)\b", r"'holdfast \1 list'"),
        (r"GET /v1/workers\b", "'holdfast workers'"),
        (r"'holdfast types' or GET /v1/types\b", "'holdfast types'"),
        (r"PATCH /v1/queues/\{name\}", "'holdfast queues pause QUEUE'"),
        (r"the same Idempotency-Key", "the same --idempotency-key"),
        (r"\b[Ss]ee /docs\b", "see 'holdfast --help'"),
    )
]
