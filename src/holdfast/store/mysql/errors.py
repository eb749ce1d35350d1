"""Translation of driver errors."""

import re

from asyncmy.errors import InterfaceError, MySQLError

from holdfast.errors import HoldfastError, Misconfigured, Rejected, SchemaMismatch, Unavailable
from holdfast.store.migrate import FIX_OLD
from holdfast.store.mysql.url import SETTING

DRIVER = (MySQLError, OSError, TimeoutError)
"""Everything a statement or a connection attempt can raise."""

TRANSIENT = frozenset({1213, 1205, 1020, 3572})
"""Deadlock, lock timeout, concurrent change, locked row: the transaction can be retried."""

_BROKEN = frozenset({2006, 2013, 2014, 2055, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031})
"""The connection or the server failed during the statement."""

_CANCELLED = frozenset({1317, 1969, 3024})
"""The statement was killed or timed out."""

_ACCESS_DENIED = frozenset({1045, 1698, 1130, 1251, 1862, 3118, 3955, 2059, 2061})
_NO_PRIVILEGE = frozenset({1044, 1142, 1143, 1227, 1370})
_NO_TABLE = frozenset({1146, 1054, 1051, 1932})
_READ_ONLY = frozenset({1290, 1792, 1836, 3100})
_OUT_OF_RESOURCES = frozenset({1021, 1037, 1038, 1041, 1114, 1040, 1203, 1226, 3})
_INVALID_VALUE = frozenset(
    {1048, 1062, 1153, 1216, 1217, 1264, 1265, 1292, 1366, 1367, 1406, 1416, 1451, 1452, 1690, 3819, 4025}
)


def code_of(error: BaseException) -> int:
    """Return the error code of the server or driver; 0 if there is none."""
    first = error.args[0] if isinstance(error, MySQLError) and error.args else 0
    return first if isinstance(first, int) else 0


def transient(error: BaseException) -> bool:
    """Return True if the transaction can be retried."""
    return code_of(error) in TRANSIENT


def read_only(error: BaseException) -> bool:
    """Return True if the server or the session is read-only.

    A session keeps `transaction_read_only` after the global setting was changed, so the connection must be replaced.
    """
    return code_of(error) in _READ_ONLY


def ambiguous(error: BaseException) -> bool:
    """Return True if a COMMIT that failed with this error may have taken effect."""
    code = code_of(error)
    return (
        not isinstance(error, MySQLError)
        or isinstance(error, InterfaceError)
        or code in _BROKEN | _CANCELLED
        or not code
    )


def translate(error: BaseException) -> HoldfastError:
    """Return our error for a driver error."""
    code = code_of(error)
    message = _message(error)
    match code:
        case _ if code in _NO_TABLE:
            return SchemaMismatch(
                f"the database does not have the tables of this holdfast version ({message}): {FIX_OLD}"
            )
        case _ if code in _ACCESS_DENIED:
            return Misconfigured(
                f"{SETTING}: the server refused the user or password ({message}): correct them in the URL"
            )
        case 1049:
            return Misconfigured(f"{SETTING}: {message}: create it ('CREATE DATABASE …') or correct the URL")
        case _ if code in _NO_PRIVILEGE:
            return Misconfigured(
                f"{SETTING}: the database user may not do this ({message}): "
                "grant it, or run 'holdfast migrate' as a user that may create tables"
            )
        case 1665:
            return Misconfigured(
                f"{SETTING}: the server uses statement-based replication ({message}): set binlog_format to ROW or MIXED"
            )
        case 2003 | 2002 | 2005:
            return Unavailable(
                f"{SETTING}: the database cannot be reached ({message}): check host and port, and that it runs"
            )
        case _ if code in _READ_ONLY:
            return Unavailable(
                f"the database is read-only, perhaps a replica after a failover ({message}): use the primary; "
                "'holdfast doctor' names the cause"
            )
        case _ if code in _CANCELLED:
            return Unavailable(f"the database took too long and the statement was cancelled ({message})")
        case _ if code in _OUT_OF_RESOURCES:
            return Unavailable(f"the database is out of resources ({message}): free some; nothing was accepted")
        case _ if code in _INVALID_VALUE:
            return Rejected(f"the database refused a value: {message}")
        case _ if ambiguous(error):
            return Unavailable(f"the database does not respond ({message}): check that the server of {SETTING} runs")
        case _:
            return Unavailable(f"the database failed ({code}: {message})")


def _message(error: BaseException) -> str:
    """Return the message on one line, truncated because it may quote a long value."""
    text = str(error.args[1]) if isinstance(error, MySQLError) and len(error.args) > 1 else str(error)
    return re.sub(r"\s+", " ", text)[:300] or type(error).__name__
