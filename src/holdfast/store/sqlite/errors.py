"""Translation of APSW errors."""

import apsw

from holdfast.errors import Contention, HoldfastError, Misconfigured, Rejected, SchemaMismatch, Unavailable
from holdfast.store.migrate import FIX_OLD

SETTING = "HOLDFAST_DATABASE_URL"

BAD_VALUE = (OverflowError, UnicodeEncodeError)
"""Errors of binding an integer of more than 64 bits, or text that is not Unicode."""

FAILED = (apsw.Error, *BAD_VALUE)
"""Errors of the database or of values passed to it."""


def translate(error: BaseException, file: str) -> HoldfastError:
    """Return our error for one of `FAILED`."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Contention(f"{file} was locked by another process for too long; try again")
        case apsw.SQLError() if "no such table" in str(error) or "no such column" in str(error):
            return SchemaMismatch(
                f"the database does not have the tables of this holdfast version ({error}): {FIX_OLD}"
            )
        case (
            apsw.ConstraintError() | apsw.TooBigError() | apsw.MismatchError() | OverflowError() | UnicodeEncodeError()
        ):
            return Rejected(f"the database refused a value: {error}")
        case apsw.NotADBError():
            return Misconfigured(f"{SETTING}: {file} is not an SQLite database: name another file, or move it away")
        case apsw.CorruptError():
            return Unavailable(f"{file} is corrupt ({error}): stop all nodes and restore it from a backup")
        case apsw.ReadOnlyError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_DBMOVED:
            return Unavailable(f"{file} was moved or deleted while in use: put it back and restart all nodes")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return Misconfigured(f"{SETTING}: {file} cannot be written: let this user write it and its directory")
        case apsw.FullError():
            return Unavailable(f"the disk of {file} is full: free some space; nothing was accepted")
        case apsw.CantOpenError():
            return Unavailable(f"{file} cannot be opened ({error}): check that it and its directory still exist")
        case apsw.IOError():
            return Unavailable(f"the disk of {file} failed ({error})")
        case _:
            return Unavailable(f"the database failed ({type(error).__name__}: {error})")
