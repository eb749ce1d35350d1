"""Job transitions on PostgreSQL: one statement per batch, including the change log."""

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
    """True if each statement is its own transaction."""

    async def apply(self, transitions: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        # Finishing jobs that only queue and tenant limits count is also one statement.
        counted = slots_to_release(transition.job for transition in transitions)
        if (
            counted
            and self.autocommit
            and all(_ends_a_run(transition) and transition.job.concurrency_key is None for transition in transitions)
        ):
            self.ended_at = ended_at
            done = await self._run_strict("finish", self._log_entry(transitions) | _finishing(transitions, counted))
            if done is not None:  # either all transitions were applied, or none
                self.changed |= bool(done)
                self.announce_free_slots([transition.job for transition in transitions] if done else [])
                return {row[0] for row in done}
        return await super().apply(transitions, ended_at=ended_at)

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        return {row[0] for row in await self._run_transitions("finish", transitions, **_finishing(transitions))}

    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place."""
        return await self._run_transitions(
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
            if group := [transition for transition in transitions if (transition.was is Status.DEAD) is dead]:
                revived += await self._run_transitions(
                    name,
                    group,
                    ids=[transition.id for transition in group],
                    fences=[transition.fence for transition in group],
                    was=[transition.was.code for transition in group],
                    generations=[transition.generation for transition in group],
                )
        return revived

    async def append_transitions(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: the statements that apply transitions append to the change log themselves."""

    async def _run_transitions(self, name: str, transitions: Sequence[Transition], **columns: Any) -> Sequence[Row]:
        """Run a statement that applies and logs transitions; return its rows, job id first."""

        def correct(rows: Sequence[Row]) -> bytes | None:
            if len(rows) in (0, len(transitions)):
                return None
            done = {row[0] for row in rows}
            return change_log.encode_transitions(
                [transition for transition in transitions if transition.id in done], self.ended_at
            )

        return await self.run_appending(name, self._log_entry(transitions) | columns, correct)

    def _log_entry(self, transitions: Sequence[Transition]) -> dict[str, Any]:
        """Return the parameters that a statement needs to append to the change log."""
        return {
            "body": change_log.encode_transitions(transitions, self.ended_at).decode(),
            "expected": len(transitions),
        }

    async def run_appending(
        self, name: str, columns: dict[str, Any], correct: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that also appends the prepared entry to the change log.

        It does so if all its rows take effect. Otherwise `correct` computes the entry from the statement's rows (None
        if the statement wrote it), and a second statement appends it. In autocommit mode the statement first runs with
        `strict`: then it fails instead, and both statements run in one transaction.
        """
        if self.autocommit and (found := await self._run_strict(name, columns)) is not None:
            return found
        async with self.in_transaction():
            rows = await self.rows(name, strict=False, **columns)
            if (body := correct(rows)) is not None:
                await self.append_change(body)
            return rows

    async def _run_strict(self, name: str, columns: dict[str, Any]) -> Sequence[Row] | None:
        """Run a statement as its own transaction; return None if not all its rows would take effect."""
        try:
            return await self.rows(name, strict=True, **columns)
        except NotNullViolationError as error:
            if error.table_name != "holdfast_change_log":
                raise
            return None


def _ends_a_run(transition: Transition) -> bool:
    return transition.was is Status.RUNNING and transition.to.terminal


def _finishing(transitions: Sequence[Transition], counted: Sequence[tuple[LimitName, int]] = ()) -> dict[str, Any]:
    """Return the parameters of `finish`, which also releases the slots in `counted`."""
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
        "kinds": sorted({int(name.kind) for name, _ in counted}),
        "names": sorted({name.name for name, _ in counted}),
        "limits": [f"{name.kind:d}{name.name}" for name, _ in counted],
        "freed": [jobs for _, jobs in counted],
    }


def joined(column: Iterable[object]) -> str:
    """Join numbers or ids to a text that the statement splits; the driver encodes arrays slowly."""
    return ",".join(map(str, column))


def _if_any(column: list[T]) -> list[T]:
    """Return the column, or [] if all values are None, which `unnest` fills with NULL."""
    return column if any(value is not None for value in column) else []
