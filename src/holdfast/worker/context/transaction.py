"""Transaction of a handler: executed once, replayed from its log by later attempts."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from holdfast.errors import NonDeterministic
from holdfast.worker.context import statement_log
from holdfast.worker.context.statement_log import StatementLog, StatementRecord
from holdfast.worker.ports import TransactionSession

T = TypeVar("T")

Row = tuple[Any, ...]

_MAX_SHOWN_SQL_LENGTH = 80


class Wait(Protocol):
    """Function that runs a coroutine on the event loop from a thread and waits for its result."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


class Transaction:
    """Statements in the database of the job queue; see `Context.transaction`.

    Use the placeholders of the database's driver: `$1` (PostgreSQL), `%s` (MySQL, MariaDB) or `?` (SQLite). The
    statements, a record of their results and the check that the worker still holds the job commit together. If an
    earlier attempt committed them, nothing is executed, and each statement returns its recorded result.
    """

    def __init__(self, key: str, session: TransactionSession, check: Callable[[], None]) -> None:
        self.key = key
        self._session = session
        self._check = check
        self._log = StatementLog()
        self._recorded = _read(key, session.recorded)
        self._statement_count = 0

    @property
    def replayed(self) -> bool:
        """True if an earlier attempt committed this transaction, so that no statement is executed."""
        return self._recorded is not None

    async def execute(self, sql: str, *args: Any) -> int:
        """Run a statement and return the number of rows it affected.

        Args:
            sql: Statement with the placeholders of the database's driver.
            *args: Values of the placeholders.

        Raises:
            NonDeterministic: An earlier attempt committed other statements under this key.
            LeaseLost: The worker no longer holds the job.
        """
        return await self._run_or_replay(sql, self._session.execute, args)

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement and return its rows as tuples.

        Args:
            sql: Statement with the placeholders of the database's driver.
            *args: Values of the placeholders.

        Raises:
            Invalid: The rows cannot be recorded: too large, or of a type that cannot be stored.
            NonDeterministic: An earlier attempt committed other statements under this key.
            LeaseLost: The worker no longer holds the job.
        """
        return await self._run_or_replay(sql, self._session.fetch, args)

    def complete(self) -> None:
        """Pass the log to the session, or check that a replay ran all statements."""
        self._check()
        if self._recorded is None:
            self._session.record(self._log.to_bytes())
        elif self._statement_count != len(self._recorded):
            raise self._differs(
                f"this attempt ran {self._statement_count} statements, the one that committed {len(self._recorded)}"
            )

    async def _run_or_replay(self, sql: str, run: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...]) -> T:
        self._check()
        self._statement_count += 1
        if self._recorded is not None:
            recorded: T = self._replay(sql)
            return recorded
        result = await run(sql, *args)
        self._log.add(sql, result)
        return result

    def _replay(self, sql: str) -> Any:
        if self._recorded is None or self._statement_count > len(self._recorded):
            raise self._differs(f"it had no statement {self._statement_count}: {_short(sql)}")
        entry = self._recorded[self._statement_count - 1]
        if entry.digest != statement_log.digest(sql):
            raise self._differs(f"its statement {self._statement_count} was not {_short(sql)}")
        return entry.result

    def _differs(self, how: str) -> NonDeterministic:
        return NonDeterministic(
            f"an earlier attempt committed transaction {self.key!r} with other statements ({how}): a handler must run "
            "the same statements in the same order in every attempt; give a key to each transaction that may be skipped"
        )


class SyncTransaction:
    """Blocking form of `Transaction`, for handlers that are plain functions."""

    def __init__(self, transaction: Transaction, wait: Wait) -> None:
        self.key = transaction.key
        self.replayed = transaction.replayed
        self._transaction = transaction
        self._wait = wait

    def execute(self, sql: str, *args: Any) -> int:
        """Run a statement and return the number of rows it affected; see `Transaction.execute`."""
        return self._wait(self._transaction.execute(sql, *args))

    def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement and return its rows as tuples; see `Transaction.fetch`."""
        return self._wait(self._transaction.fetch(sql, *args))


def _read(key: str, recorded: bytes | None) -> list[StatementRecord] | None:
    try:
        return None if recorded is None else statement_log.read(recorded)
    except NonDeterministic as error:
        raise NonDeterministic(f"transaction {key!r}: {error}; give each step and transaction its own key") from error


def _short(sql: str) -> str:
    text = " ".join(sql.split())
    return repr(text if len(text) <= _MAX_SHOWN_SQL_LENGTH else f"{text[:_MAX_SHOWN_SQL_LENGTH]}…")
