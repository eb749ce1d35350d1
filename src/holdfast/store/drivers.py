"""Errors of database URLs: a missing driver, and a URL that was misread."""

import contextlib
from collections.abc import Iterator
from urllib.parse import SplitResult

from holdfast.errors import Misconfigured


@contextlib.contextmanager
def needs_driver(database: str, extra: str) -> Iterator[None]:
    """Turn a driver that cannot be imported within the block into `Misconfigured`.

    Args:
        database: Name of the database, for the message.
        extra: Extra of the `holdfast` package that includes the driver.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise Misconfigured(
            f"HOLDFAST_DATABASE_URL: the driver for {database} is not installed ({error.name}): "
            f"pip install 'holdfast[{extra}]'"
        ) from error


def is_misread(url: SplitResult) -> bool:
    """Return True if the password probably ended the host too early, as `user:5/x@host` does."""
    return "@" not in url.netloc and "@" in url.path + url.query + url.fragment


def misread(form: str) -> str:
    """Return the error text for a URL without a readable host; it shows nothing of the URL."""
    return f"the host or port cannot be read: {form}, with / ? # in the password as %2F %3F %23"
