"""A transaction for the caller's own statements, on any of the databases."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from holdfast.errors import Conflict, HoldfastError, LeaseLost, TransactionEnded
from holdfast.model.job import HeldJob
from holdfast.model.step import Step, StepState
from holdfast.store.sql.user_statements import Dialect, check


class StatementResult(NamedTuple):
    """What a statement gave."""

    rows: list[tuple[Any, ...]]
    touched: int


class SqlSession(ABC):
    """See `holdfast.store.port.store.Session`."""

    def __init__(self, held: HeldJob, key: str, dialect: Dialect) -> None:
        self.held = held
        self.key = key
        self.recorded: bytes | None = None
        self.soiled = False
        """Whether the connection may not be what it was: then nobody else is to have it."""
        self._dialect = dialect
        self._result = b""
        self._ran = 0
        self._failed: str | None = None

    @abstractmethod
    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run it; raises only ours."""

    def record(self, result: bytes) -> None:
        self._result = result

    async def execute(self, sql: str, *args: Any) -> int:
        ran = await self._once(sql, args)
        return len(ran.rows) if ran.rows else ran.touched

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        return (await self._once(sql, args)).rows

    def guard(self) -> Step:
        """The record to commit with the caller's writes; `TransactionEnded` if there is nothing left to commit."""
        if self._failed is not None:
            raise TransactionEnded(f"{self.named}: nothing of it was committed, for {self._failed}")
        return Step(self.key, StepState.DONE, self._result)

    @property
    def named(self) -> str:
        """What messages call it."""
        return f"transaction {self.key!r}"

    def lost(self) -> LeaseLost:
        """The error for a holder who is none any more."""
        return LeaseLost(f"job {self.held.id} was taken away from this worker: {self.named} does not run")

    def ended(self) -> TransactionEnded:
        """The error for a transaction that a statement has ended."""
        return TransactionEnded(
            f"{self.named} was ended by its statement {self._ran}, so what came before may be committed without its "
            "record and happen again at the next attempt: leave committing and rolling back to the block"
        )

    async def _once(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        if self.recorded is not None:
            raise Conflict(f"{self.named} was committed before: there is nothing to run")
        if self._failed is not None:
            raise TransactionEnded(f"{self.named} is over, for {self._failed}")
        self._ran += 1
        try:
            self.soiled |= not check(sql, self._dialect)
            return await self.statement(sql, args)
        except BaseException as error:
            ours = isinstance(error, HoldfastError)
            self._failed = f"its statement {self._ran} failed ({error if ours else type(error).__name__})"
            raise
