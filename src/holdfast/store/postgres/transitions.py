"""Jobs change their state on PostgreSQL: each batch is one statement, which also writes what it tells of itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from asyncpg import NotNullViolationError

from holdfast.model import change_log
from holdfast.model.ids import JobId
from holdfast.model.limit import LimitName, slots_to_release
from holdfast.model.state import Status
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.postgres.limits import LimitsTx
from holdfast.store.sql.codec import Row
from holdfast.store.sql.limits import stored_code

T = TypeVar("T")


class TransitionsTx(LimitsTx):
    """Transitions of jobs within a transaction."""

    autocommit: bool
    """Each statement is a transaction by itself."""

    async def apply(self, transitions: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        """Jobs that end under limits of queues and tenants alone are one statement, as others are."""
        held = slots_to_release(transition.job for transition in transitions)
        if (
            held
            and self.autocommit
            and all(_ends_a_run(transition) and transition.job.concurrency_key is None for transition in transitions)
        ):
            self.ended_at = ended_at
            done = await self._at_once("finish", self._told(transitions) | _finishing(transitions, held))
            if done is not None:  # all of them, or none at all
                self.changed |= bool(done)
                self.gave_back([transition.job for transition in transitions] if done else [])
                return {row[0] for row in done}
        return await super().apply(transitions, ended_at=ended_at)

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        return {row[0] for row in await self._moved("finish", transitions, **_finishing(transitions))}

    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place."""
        return await self._moved(
            "requeue",
            transitions,
            ids=[transition.id for transition in transitions],
            fences=[transition.fence for transition in transitions],
            was=[transition.was.code for transition in transitions],
            workers=[transition.worker for transition in transitions],
            becomes=[stored_code(transition) for transition in transitions],
            attempts=[transition.attempts for transition in transitions],
            releases=[transition.releases for transition in transitions],
            delays=[transition.delay for transition in transitions],
            logs=[transition.attempt_log for transition in transitions],
        )

    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table."""
        revived: list[Row] = []
        for name, dead in (("revive_dead", True), ("revive_history", False)):
            if here := [transition for transition in transitions if (transition.was is Status.DEAD) is dead]:
                revived += await self._moved(
                    name,
                    here,
                    ids=[transition.id for transition in here],
                    fences=[transition.fence for transition in here],
                    was=[transition.was.code for transition in here],
                    generations=[transition.generation for transition in here],
                )
        return revived

    async def append_transitions(self, transitions: Sequence[Transition]) -> None:
        """The statements that move jobs have told of it."""

    async def _moved(self, name: str, transitions: Sequence[Transition], **columns: Any) -> Sequence[Row]:
        """Run a statement that moves jobs and tells of it; its rows, each beginning with an id."""

        def truth(rows: Sequence[Row]) -> bytes | None:
            if len(rows) in (0, len(transitions)):
                return None
            done = {row[0] for row in rows}
            return change_log.of_moves(
                [transition for transition in transitions if transition.id in done], self.ended_at
            )

        return await self.run_appending(name, self._told(transitions) | columns, truth)

    def _told(self, transitions: Sequence[Transition]) -> dict[str, Any]:
        """What a statement that moves jobs takes to tell of it."""
        return {"body": change_log.of_moves(transitions, self.ended_at).decode(), "expected": len(transitions)}

    async def run_appending(
        self, name: str, columns: dict[str, Any], truth: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that writes its row of the feed itself if all goes as expected.

        If it does not, the row is written afterwards: `truth` tells from the statement's rows what it is to be, None if
        the statement wrote it. Where the statement is a transaction by itself (`strict`), it then fails instead,
        and is run again together with that.
        """
        if self.autocommit and (found := await self._at_once(name, columns)) is not None:
            return found
        async with self.in_transaction():
            rows = await self.rows(name, strict=False, **columns)
            if (body := truth(rows)) is not None:
                await self.append_change(body)
            return rows

    async def _at_once(self, name: str, columns: dict[str, Any]) -> Sequence[Row] | None:
        """Run a statement that tells of what it does as a transaction by itself; None if not all went as expected."""
        try:
            return await self.rows(name, strict=True, **columns)
        except NotNullViolationError as error:
            if error.table_name != "holdfast_feed":
                raise
            return None


def _ends_a_run(transition: Transition) -> bool:
    return transition.was is Status.RUNNING and transition.to.terminal


def _finishing(transitions: Sequence[Transition], held: Sequence[tuple[LimitName, int]] = ()) -> dict[str, Any]:
    """What `finish` takes; `held` is given back in the same statement."""
    return {
        "ids": joined([transition.id for transition in transitions]),
        "fences": joined([transition.fence for transition in transitions]),
        "was": joined([transition.was.code for transition in transitions]),
        "workers": joined(["" if transition.worker is None else transition.worker for transition in transitions]),
        "becomes": joined([transition.to.code for transition in transitions]),
        "results": _if_any([transition.result for transition in transitions]),
        "logs": _if_any([transition.attempt_log for transition in transitions]),
        "reasons": _if_any([transition.reason for transition in transitions]),
        "fingerprints": _if_any([transition.fingerprint for transition in transitions]),
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
