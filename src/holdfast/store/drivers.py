"""Optional database drivers: a missing one is reported with the command that installs it."""

import contextlib
from collections.abc import Iterator

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
