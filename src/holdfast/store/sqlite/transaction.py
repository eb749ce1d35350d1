"""Execution of a transaction's work without an event loop.

The work awaits nothing but the database. It starts on the event loop. Its first statement decides whether it reads or
writes, and from there it runs to its end on the thread of the matching connection. So a transaction needs one switch of
threads, and never holds the write lock while the event loop is busy. A transaction that only reads takes no lock and
waits for no writer.
"""

import contextlib
from typing import Generic, TypeVar

import apsw

from holdfast.errors import OutcomeUnknown
from holdfast.model.lane import LaneReady
from holdfast.store.port.store import Work
from holdfast.store.sqlite.batched_statements import BatchedStatements
from holdfast.store.sqlite.errors import FAILED, translate
from holdfast.store.sqlite.tx import AccessMode, SqliteTx

T = TypeVar("T")


class WriteNeeded(Exception):
    """Raised if a read transaction needs to write: run it again as a write."""


class TransactionAttempt(Generic[T]):
    """Attempt to run the work of a transaction."""

    def __init__(self, work: Work[T], statements: BatchedStatements, file: str) -> None:
        self._file = file
        self._tx = SqliteTx(statements)
        self._steps = work(self._tx).__await__()

    @property
    def ready_lanes(self) -> list[LaneReady]:
        """Lanes in which the transaction made jobs ready."""
        return self._tx.ready_lanes

    def start(self) -> AccessMode:
        """Run to the first statement and return the access it needs.

        Raises:
            StopIteration: the work ended without a statement; the exception has the result.
        """
        return self._requested(next(self._steps))

    def finish(self, db: apsw.Connection, access: AccessMode) -> T:
        """Run to the end and commit; roll back on failure.

        Raises:
            WriteNeeded: the work needs to write, and `access` is read-only.
        """
        committing = False
        try:
            db.execute("BEGIN IMMEDIATE" if access is AccessMode.WRITE else "BEGIN")
            self._tx.attach(db, access)
            result = self._result()
            committing = True
            db.execute("COMMIT")
        except FAILED as error:
            if committing and isinstance(error, apsw.IOError):
                raise OutcomeUnknown(f"the disk of {self._file} failed while committing ({error})") from error
            raise translate(error, self._file) from error
        finally:
            roll_back(db)
        return result

    def _result(self) -> T:
        try:
            requested = next(self._steps)
        except StopIteration as end:
            result: T = end.value
            return result
        self._requested(requested)
        self._steps.close()
        raise WriteNeeded

    def _requested(self, requested: object) -> AccessMode:
        if isinstance(requested, AccessMode):
            return requested
        self._steps.close()
        raise RuntimeError(
            "the work of a transaction awaited something other than its transaction, so nothing was changed: "
            "await that before or after the transaction"
        )


def roll_back(db: apsw.Connection) -> None:
    """Roll back the transaction, if one is open."""
    if db.in_transaction:
        with contextlib.suppress(apsw.Error):  # a failed statement may have rolled back already
            db.execute("ROLLBACK")
