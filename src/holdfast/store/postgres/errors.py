"""Translation of asyncpg errors."""

import asyncpg

from holdfast.errors import HoldfastError, Misconfigured, Rejected, SchemaMismatch, Unavailable
from holdfast.store.migrate import FIX_OLD

SETTING = "HOLDFAST_DATABASE_URL"

TRANSIENT = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
"""Errors after which the whole transaction can be retried."""

READ_ONLY = asyncpg.ReadOnlySQLTransactionError
"""Error of a standby, or of a session with `default_transaction_read_only`.

A session keeps that setting after it was changed for the database, so the connection must be replaced.
"""

LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.CannotConnectNowError,
    asyncpg.InternalClientError,
)
"""Errors of the connection or the server, not of the statement."""


def translate(error: BaseException) -> HoldfastError | None:
    """Return our error for a driver error; None if it is not a driver error."""
    match error:
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return SchemaMismatch(
                f"the database does not have the tables of this holdfast version ({error}): {FIX_OLD}"
            )
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return Misconfigured(
                f"{SETTING}: the server refused the user or password ({error}): correct them in the URL"
            )
        case asyncpg.InvalidCatalogNameError():
            return Misconfigured(f"{SETTING}: {error}: create it ('createdb NAME') or correct the URL")
        case asyncpg.InsufficientPrivilegeError():
            return Misconfigured(
                f"{SETTING}: the database user may not do this ({error}): "
                "grant it, or run 'holdfast migrate' as the owner of the tables"
            )
        case READ_ONLY():
            return Unavailable(
                f"the database is read-only, perhaps a standby after a failover ({error}): point the URL at the "
                "primary; 'holdfast doctor' names the cause"
            )
        case asyncpg.QueryCanceledError():
            return Unavailable(f"the database took too long and the statement was cancelled ({error})")
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError() | asyncpg.ConfigurationLimitExceededError():
            return Unavailable(f"the database is out of resources ({error}): free some; nothing was accepted")
        case asyncpg.DataError() | asyncpg.IntegrityConstraintViolationError() | asyncpg.ProgramLimitExceededError():
            return Rejected(f"the database refused a value: {error}")
        case asyncpg.PostgresError() if not isinstance(error, LOST):
            return Unavailable(f"the database failed ({type(error).__name__}: {error})")
        case _ if isinstance(error, LOST):
            return Unavailable(
                f"the database does not respond ({_message(error)}): check that the server of {SETTING} runs"
            )
        case _:
            return None


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
