"""Translation of driver errors."""

import re

from asyncmy.errors import InterfaceError, MySQLError

from holdfast.errors import HoldfastError, Misconfigured, Rejected, SchemaMismatch, Unavailable
from holdfast.store.migrate import FIX_OLD
from holdfast.store.mysql.url import SETTING

DRIVER = (MySQLError, OSError, TimeoutError)
"""Everything a statement or a connection attempt can raise."""

TRANSIENT = frozenset({1213, 1205, 1020, 3572})
"""Deadlock, lock wait, changed under our eyes, locked by others: running the whole transaction again can cure it."""

_BROKEN = frozenset({2006, 2013, 2014, 2055, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031})
"""The connection or the server went away under the statement."""

_STOPPED = frozenset({1317, 1969, 3024})
"""Killed, or took longer than it may."""

_REFUSED_USER = frozenset({1045, 1698, 1130, 1251, 1862, 3118, 3955, 2059, 2061})
_NO_RIGHT = frozenset({1044, 1142, 1143, 1227, 1370})
_NO_TABLE = frozenset({1146, 1054, 1051, 1932})
_READ_ONLY = frozenset({1290, 1792, 1836, 3100})
_FULL = frozenset({1021, 1037, 1038, 1041, 1114, 1040, 1203, 1226, 3})
_VALUE = frozenset(
    {1048, 1062, 1153, 1216, 1217, 1264, 1265, 1292, 1366, 1367, 1406, 1416, 1451, 1452, 1690, 3819, 4025}
)


def code_of(error: BaseException) -> int:
    """The server's or the driver's number of an error; 0 if it has none."""
    first = error.args[0] if isinstance(error, MySQLError) and error.args else 0
    return first if isinstance(first, int) else 0


def transient(error: BaseException) -> bool:
    """Whether running the transaction again may succeed: the server has rolled it back, or can."""
    return code_of(error) in TRANSIENT


def ambiguous(error: BaseException) -> bool:
    """Whether a COMMIT that ended so may have been carried out all the same."""
    code = code_of(error)
    return (
        not isinstance(error, MySQLError) or isinstance(error, InterfaceError) or code in _BROKEN | _STOPPED or not code
    )


def translate(error: BaseException) -> HoldfastError:
    """Our error for one of the driver's."""
    code = code_of(error)
    said = _said(error)
    match code:
        case _ if code in _NO_TABLE:
            return SchemaMismatch(f"the database does not have the tables of this holdfast version ({said}): {FIX_OLD}")
        case _ if code in _REFUSED_USER:
            return Misconfigured(
                f"{SETTING}: the server refused the user or password ({said}): correct them in the URL"
            )
        case 1049:
            return Misconfigured(f"{SETTING}: {said}: create it ('CREATE DATABASE …') or correct the URL")
        case _ if code in _NO_RIGHT:
            return Misconfigured(
                f"{SETTING}: the database user may not do this ({said}): "
                "grant it, or run 'holdfast migrate' as a user that may create tables"
            )
        case 1665:
            return Misconfigured(
                f"{SETTING}: the server writes its log by statement ({said}): set binlog_format to ROW or MIXED"
            )
        case 2003 | 2002 | 2005:
            return Unavailable(
                f"{SETTING}: the database cannot be reached ({said}): check host and port, and that it runs"
            )
        case _ if code in _READ_ONLY:
            return Unavailable(
                f"the database is read-only, perhaps a replica after a failover ({said}): use the primary"
            )
        case _ if code in _STOPPED:
            return Unavailable(f"the database took too long and the statement was cancelled ({said})")
        case _ if code in _FULL:
            return Unavailable(f"the database is out of resources ({said}): free some; nothing was accepted")
        case _ if code in _VALUE:
            return Rejected(f"the database refused a value: {said}")
        case _ if ambiguous(error):
            return Unavailable(f"the database does not respond ({said}): check that the server of {SETTING} runs")
        case _:
            return Unavailable(f"the database failed ({code}: {said})")


def _said(error: BaseException) -> str:
    """What was said, on one line and short; a value that is quoted in it is cut."""
    text = str(error.args[1]) if isinstance(error, MySQLError) and len(error.args) > 1 else str(error)
    return re.sub(r"\s+", " ", text)[:300] or type(error).__name__
