"""Reports outcomes in batches: whatever ended while the last report was under way goes out with the next."""

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, Rejected
from holdfast.failpoints import reach
from holdfast.model.job import Job
from holdfast.model.outcome import Failed, Failure, Logs, Outcome, Report
from holdfast.worker.ports import Source
from holdfast.worker.processes.shared_state import Board

if TYPE_CHECKING:
    from holdfast.model.ids import JobId

BATCH = 500
_LONGEST_PAUSE = 2.0


class Settler:
    """Keeps every outcome until it is accepted, or until the lease is gone and it would be refused anyway."""

    def __init__(self, source: Source, board: Board | None = None, *, width: int = 2) -> None:
        self._source = source
        self._board = board
        self._width = width
        self._outbox: list[Report] = []
        self._cells: list[int | None] = []
        """Where on the board each of them stands: as long as it is not accepted, a crash would undo it."""
        self._news = asyncio.Event()
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._dropped = False
        self.pending: set[JobId] = set()
        """Jobs whose outcome is not accepted yet."""
        self.refused = 0
        """Outcomes that came too late: the job had been taken away."""

    def put(self, job: Job, outcome: Outcome, cell: int | None = None, logs: Logs | None = None) -> None:
        """Report this soon, and clear its cell of the board then; does not wait."""
        if not self._outbox:
            self._quiet.clear()
            self._news.set()
        self._outbox.append(Report(job, outcome, logs))
        self._cells.append(cell)
        self.pending.add(job.id)

    async def run(self) -> None:
        """Report until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._width):
                group.create_task(self._report())

    async def flush(self, limit: float) -> bool:
        """Wait until everything is reported, for at most `limit` seconds; whether it is."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), limit)
        return self._quiet.is_set()

    def drop(self) -> None:
        """The lease is gone: what is not reported would be refused."""
        self._dropped = True
        self._outbox.clear()
        self._cells.clear()

    async def _report(self) -> None:
        while True:
            if not self._outbox:
                self._news.clear()
                if not self._under_way:
                    self._quiet.set()
                await self._news.wait()
                continue
            batch, self._outbox = self._outbox[:BATCH], self._outbox[BATCH:]
            cells, self._cells = self._cells[:BATCH], self._cells[BATCH:]
            self._under_way += 1
            try:
                await self._until_accepted(batch)
                if self._board is not None:
                    self._board.clear(cells)
            finally:
                self._under_way -= 1
                self.pending.difference_update([report.job.id for report in batch])

    async def _until_accepted(self, batch: list[Report]) -> None:
        pause = 0.05
        while not self._dropped:
            try:
                reach("before_settle")
                settled = await self._source.settle_many(batch)
                reach("after_settle")
            except Rejected as error:
                await self._one_by_one(batch, error)
                return
            except HoldfastError:
                await asyncio.sleep(random.uniform(0.5, 1) * pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)
            else:
                self.refused += len(batch) - len(settled)
                return

    async def _one_by_one(self, batch: list[Report], error: Rejected) -> None:
        """The database refused a value of one of them: alone it fails alone, and the job with it, for good."""
        if len(batch) > 1:
            for report in batch:
                await self._until_accepted([report])
            return
        failure = Failure("ResultRefused", f"the database would not take what came of it: {error}")
        if batch[0].outcome != (refusal := Failed(failure, retryable=False)):
            await self._until_accepted([Report(batch[0].job, refusal)])
