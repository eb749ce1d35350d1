"""Runs the work of a transaction without an event loop: it waits for nothing but the database.

It runs where it was asked for until its first statement tells whether it reads or writes, and from there to its end on
the thread of the fitting connection: one hop for a whole transaction, and the write lock is never held while an event
loop is busy with something else. One that only reads takes no lock, and waits for no writer.
"""

import contextlib
from typing import Generic, TypeVar

import apsw

from holdfast.errors import OutcomeUnknown
from holdfast.model.lane import LaneReady
from holdfast.store.port.store import Work
from holdfast.store.sqlite.batched_statements import BatchedStatements
from holdfast.store.sqlite.errors import FAILED, translate
from holdfast.store.sqlite.tx import Access, SqliteTx

T = TypeVar("T")


class WriteNeeded(Exception):
    """What began as a read came to a write: nothing has happened, and it must be run again as a write."""


class Transaction(Generic[T]):
    """One attempt at some work."""

    def __init__(self, work: Work[T], statements: BatchedStatements, file: str) -> None:
        self._file = file
        self._tx = SqliteTx(statements)
        self._turns = work(self._tx).__await__()

    @property
    def ready_lanes(self) -> list[LaneReady]:
        """What became ready by it."""
        return self._tx.ready_lanes

    def start(self) -> Access:
        """Run to the first statement; the access it needs. Without any it raises `StopIteration` with the result."""
        return self._asked(next(self._turns))

    def finish(self, db: apsw.Connection, access: Access) -> T:
        """Run to the end and commit. Rolled back, it raises what the work raised, or `WriteNeeded`."""
        committing = False
        try:
            db.execute("BEGIN IMMEDIATE" if access is Access.WRITE else "BEGIN")
            self._tx.admit(db, access)
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
            asked = next(self._turns)
        except StopIteration as end:
            result: T = end.value
            return result
        self._asked(asked)
        self._turns.close()
        raise WriteNeeded

    def _asked(self, asked: object) -> Access:
        if isinstance(asked, Access):
            return asked
        self._turns.close()
        raise RuntimeError(
            "the work of a transaction awaited something other than the transaction it was given: "
            "do that before or after; nothing was changed"
        )


def roll_back(db: apsw.Connection) -> None:
    """Leave no transaction open, whatever happened."""
    if db.in_transaction:
        with contextlib.suppress(apsw.Error):  # a failed statement may have rolled back already
            db.execute("ROLLBACK")
