"""Jobs change their state on PostgreSQL: each batch is one statement, which also writes what it tells of itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from asyncpg import NotNullViolationError

from holdfast.model import change_log
from holdfast.model.ids import JobId
from holdfast.model.limit import LimitName, to_give_back
from holdfast.model.state import Status
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.postgres.limits import LimitsTx
from holdfast.store.sql.codec import Row
from holdfast.store.sql.limits import stored_code

T = TypeVar("T")


class MovesTx(LimitsTx):
    """The part of a transaction that moves jobs."""

    autocommit: bool
    """Each statement is a transaction by itself."""

    async def apply(self, moves: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        """See the port. Jobs that end under limits of queues and tenants alone are one statement, as others are."""
        held = to_give_back(move.job for move in moves)
        if held and self.autocommit and all(_ends_a_run(move) and move.job.concurrency_key is None for move in moves):
            self.ended_at = ended_at
            done = await self._at_once("finish", self._told(moves) | _finishing(moves, held))
            if done is not None:  # all of them, or none at all
                self.changed |= bool(done)
                self.gave_back([move.job for move in moves] if done else [])
                return {row[0] for row in done}
        return await super().apply(moves, ended_at=ended_at)

    async def finish(self, moves: Sequence[Transition]) -> set[JobId]:
        """Move jobs out of live, into history or the dead letters."""
        return {row[0] for row in await self._moved("finish", moves, **_finishing(moves))}

    async def requeue(self, moves: Sequence[Transition]) -> Iterable[Row]:
        """Let jobs wait or be ready again, in place."""
        return await self._moved(
            "requeue",
            moves,
            ids=[move.id for move in moves],
            fences=[move.fence for move in moves],
            was=[move.was.code for move in moves],
            workers=[move.worker for move in moves],
            becomes=[stored_code(move) for move in moves],
            attempts=[move.attempts for move in moves],
            releases=[move.releases for move in moves],
            delays=[move.delay for move in moves],
            logs=[move.attempt_log for move in moves],
        )

    async def revive(self, moves: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back into live."""
        revived: list[Row] = []
        for name, dead in (("revive_dead", True), ("revive_history", False)):
            if here := [move for move in moves if (move.was is Status.DEAD) is dead]:
                revived += await self._moved(
                    name,
                    here,
                    ids=[move.id for move in here],
                    fences=[move.fence for move in here],
                    was=[move.was.code for move in here],
                    generations=[move.generation for move in here],
                )
        return revived

    async def tell_moves(self, moves: Sequence[Transition]) -> None:
        """The statements that move jobs have told of it."""

    async def _moved(self, name: str, moves: Sequence[Transition], **columns: Any) -> Sequence[Row]:
        """Run a statement that moves jobs and tells of it; its rows, each beginning with an id."""

        def truth(rows: Sequence[Row]) -> bytes | None:
            if len(rows) in (0, len(moves)):
                return None
            done = {row[0] for row in rows}
            return change_log.of_moves([move for move in moves if move.id in done], self.ended_at)

        return await self.telling(name, self._told(moves) | columns, truth)

    def _told(self, moves: Sequence[Transition]) -> dict[str, Any]:
        """What a statement that moves jobs takes to tell of it."""
        return {"body": change_log.of_moves(moves, self.ended_at).decode(), "expected": len(moves)}

    async def telling(
        self, name: str, columns: dict[str, Any], truth: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that writes its row of the feed itself if all goes as expected.

        If it does not, the row is written afterwards: `truth` tells from the statement's rows what it is to be, None if
        the statement wrote it. Where the statement is a transaction by itself (`strict`), it then fails instead,
        and is run again together with that.
        """
        if self.autocommit and (found := await self._at_once(name, columns)) is not None:
            return found
        async with self.together():
            rows = await self.rows(name, strict=False, **columns)
            if (body := truth(rows)) is not None:
                await self.tell(body)
            return rows

    async def _at_once(self, name: str, columns: dict[str, Any]) -> Sequence[Row] | None:
        """Run a statement that tells of what it does as a transaction by itself; None if not all went as expected."""
        try:
            return await self.rows(name, strict=True, **columns)
        except NotNullViolationError as error:
            if error.table_name != "holdfast_feed":
                raise
            return None


def _ends_a_run(move: Transition) -> bool:
    return move.was is Status.RUNNING and move.to.terminal


def _finishing(moves: Sequence[Transition], held: Sequence[tuple[LimitName, int]] = ()) -> dict[str, Any]:
    """What `finish` takes; `held` is given back in the same statement."""
    return {
        "ids": joined([move.id for move in moves]),
        "fences": joined([move.fence for move in moves]),
        "was": joined([move.was.code for move in moves]),
        "workers": joined(["" if move.worker is None else move.worker for move in moves]),
        "becomes": joined([move.to.code for move in moves]),
        "results": _if_any([move.result for move in moves]),
        "logs": _if_any([move.attempt_log for move in moves]),
        "reasons": _if_any([move.reason for move in moves]),
        "fingerprints": _if_any([move.fingerprint for move in moves]),
        "kinds": sorted({int(name.kind) for name, _ in held}),
        "names": sorted({name.name for name, _ in held}),
        "limits": [f"{name.kind:d}{name.name}" for name, _ in held],
        "freed": [jobs for _, jobs in held],
    }


def joined(column: Iterable[object]) -> str:
    """A column of numbers or ids as a text that the statement takes apart: the driver is slow to make arrays."""
    return ",".join(map(str, column))


def _if_any(column: list[T]) -> list[T]:
    """A column, or nothing if it is empty in all rows: `unnest` makes that of it again."""
    return column if any(each is not None for each in column) else []
