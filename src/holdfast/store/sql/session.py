"""Transaction for the caller's own statements, for all dialects."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from holdfast.errors import Conflict, HoldfastError, JobNotHeld, TransactionEnded
from holdfast.model.job import HeldJob
from holdfast.model.step import Step, StepState
from holdfast.store.port.store import Session
from holdfast.store.sql.user_statements import Dialect, check


class StatementResult(NamedTuple):
    """Rows that a statement returned, and the number of rows it changed."""

    rows: list[tuple[Any, ...]]
    changed_rows: int


class SqlSession(ABC, Session):
    """Session state that all dialects share: guard row, failures and error messages."""

    recorded: bytes | None = None

    def __init__(self, held: HeldJob, key: str, dialect: Dialect) -> None:
        self.held = held
        self.key = key
        self.tainted = False
        """True if a statement may have changed the connection, so that it must not be reused."""
        self._dialect = dialect
        self._result = b""
        self._ran = 0
        self._failed: str | None = None

    @abstractmethod
    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a statement; driver errors are translated."""

    def record(self, result: bytes) -> None:
        self._result = result

    async def execute(self, sql: str, *args: Any) -> int:
        result = await self._run(sql, args)
        return len(result.rows) if result.rows else result.changed_rows

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        return (await self._run(sql, args)).rows

    def guard(self) -> Step:
        """Return the guard row to commit with the caller's writes.

        Raises:
            TransactionEnded: a statement failed, so that there is nothing to commit.
        """
        if self._failed is not None:
            raise TransactionEnded(f"{self.label} was rolled back because {self._failed}")
        return Step(self.key, StepState.DONE, self._result)

    @property
    def label(self) -> str:
        """Name of the transaction in error messages."""
        return f"transaction {self.key!r}"

    def lost(self) -> JobNotHeld:
        """Return the error for a holder that lost the job."""
        return JobNotHeld(f"this worker no longer holds job {self.held.id}, so {self.label} does not run")

    def ended(self) -> TransactionEnded:
        """Return the error for a transaction that one of its statements ended."""
        return TransactionEnded(
            f"statement {self._ran} ended {self.label}; earlier statements may be committed without the guard row "
            "and may run again in the next attempt: do not commit or roll back inside the block"
        )

    async def _run(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        if self.recorded is not None:
            raise Conflict(f"{self.label} was committed by an earlier attempt; its statements do not run again")
        if self._failed is not None:
            raise TransactionEnded(f"{self.label} has ended because {self._failed}")
        self._ran += 1
        try:
            self.tainted |= not check(sql, self._dialect)
            return await self.statement(sql, args)
        except BaseException as error:
            cause = error if isinstance(error, HoldfastError) else type(error).__name__
            self._failed = f"its statement {self._ran} failed ({cause})"
            raise
