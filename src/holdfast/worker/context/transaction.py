"""A handler's transaction: run once, and from then on given from memory."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from holdfast.errors import NonDeterministic
from holdfast.worker.context import statement_log
from holdfast.worker.context.statement_log import StatementLog, StatementRecord
from holdfast.worker.ports import TransactionSession

T = TypeVar("T")

Row = tuple[Any, ...]

_SHOWN = 80


class Wait(Protocol):
    """From a thread: have the event loop do this, and wait for it."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


class Transaction:
    """Statements in the engine's own database, with the placeholders of its driver: `$1`, `%s` or `?`.

    All of them, the record that they were done, and the check that the job is still ours commit together. When an
    earlier attempt committed them, nothing is run: each statement gives what it gave then.
    """

    def __init__(self, key: str, session: TransactionSession, check: Callable[[], None]) -> None:
        self.key = key
        self._session = session
        self._check = check
        self._log = StatementLog()
        self._recorded = _read(key, session.recorded)
        self._ran = 0

    @property
    def replayed(self) -> bool:
        """Whether an earlier attempt has committed this, so that nothing is run."""
        return self._recorded is not None

    async def execute(self, sql: str, *args: Any) -> int:
        """Run a statement; how many rows it touched."""
        return await self._once(sql, self._session.execute, args)

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement; its rows."""
        return await self._once(sql, self._session.fetch, args)

    def complete(self) -> None:
        """All statements were given: hand over what is to be remembered of them."""
        self._check()
        if self._recorded is None:
            self._session.record(self._log.to_bytes())
        elif self._ran != len(self._recorded):
            raise self._differs(
                f"this attempt ran {self._ran} statements, the one that committed {len(self._recorded)}"
            )

    async def _once(self, sql: str, run: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...]) -> T:
        self._check()
        self._ran += 1
        if self._recorded is not None:
            remembered: T = self._remembered(sql)
            return remembered
        result = await run(sql, *args)
        self._log.add(sql, result)
        return result

    def _remembered(self, sql: str) -> Any:
        if self._recorded is None or self._ran > len(self._recorded):
            raise self._differs(f"there was no statement {self._ran} then: {_short(sql)}")
        entry = self._recorded[self._ran - 1]
        if entry.digest != statement_log.digest(sql):
            raise self._differs(f"statement {self._ran} was another then, not {_short(sql)}")
        return entry.result

    def _differs(self, how: str) -> NonDeterministic:
        return NonDeterministic(
            f"transaction {self.key!r} was committed by an earlier attempt with other statements ({how}): a handler "
            "must run the same statements in the same order at every attempt; give transactions that may be left "
            "out a key of their own"
        )


class SyncTransaction:
    """The same for a function that runs in a thread."""

    def __init__(self, transaction: Transaction, wait: Wait) -> None:
        self.key = transaction.key
        self.replayed = transaction.replayed
        self._transaction = transaction
        self._wait = wait

    def execute(self, sql: str, *args: Any) -> int:
        """Run a statement; how many rows it touched."""
        return self._wait(self._transaction.execute(sql, *args))

    def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Run a statement; its rows."""
        return self._wait(self._transaction.fetch(sql, *args))


def _read(key: str, recorded: bytes | None) -> list[StatementRecord] | None:
    try:
        return None if recorded is None else statement_log.read(recorded)
    except NonDeterministic as error:
        raise NonDeterministic(f"transaction {key!r}: {error}; give each step and transaction its own key") from error


def _short(sql: str) -> str:
    text = " ".join(sql.split())
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
