"""Batched reporting of outcomes: those that arrive during one report are sent with the next."""

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, Rejected, Unavailable
from holdfast.failpoints import reach
from holdfast.model.job import Job
from holdfast.model.outcome import Failed, Failure, Interrupted, Logs, Outcome, Report
from holdfast.worker.ports import JobSource
from holdfast.worker.processes.shared_state import SharedState

if TYPE_CHECKING:
    from holdfast.worker.running.run import AttemptKey

BATCH_SIZE = 500
_MAX_RETRY_DELAY_S = 2.0


class Settler:
    """Queue of outcomes; each is kept until the backend accepts it or the lease is lost."""

    def __init__(self, source: JobSource, shared_state: SharedState | None = None, *, concurrency: int = 2) -> None:
        self._source = source
        self._shared_state = shared_state
        self._concurrency = concurrency
        self._outbox: list[Report] = []
        self._entries: list[int | None] = []
        """Shared-state entry of each report; kept until the report is accepted, in case of a crash."""
        self._wakeup = asyncio.Event()
        self._under_way = 0
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._dropped = False
        self.pending: set[AttemptKey] = set()
        """Attempts whose outcome is not accepted yet."""
        self.finished = 0
        """Number of attempts that ended by themselves; released jobs do not count."""
        self.refused = 0
        """Number of outcomes rejected because the job was no longer held."""

    def put(self, job: Job, outcome: Outcome, entry: int | None = None, logs: Logs | None = None) -> None:
        """Queue an outcome without waiting; its shared-state entry is freed when it is accepted."""
        if not self._outbox:
            self._flushed.clear()
            self._wakeup.set()
        if type(outcome) is not Interrupted:
            self.finished += 1
        self._outbox.append(Report(job, outcome, logs))
        self._entries.append(entry)
        self.pending.add((job.id, job.fence))

    async def run(self) -> None:
        """Report until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._report())

    async def flush(self, limit: float) -> bool:
        """Wait at most `limit` seconds until everything is reported; return True if it is."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._flushed.wait(), limit)
        return self._flushed.is_set()

    def drop(self) -> None:
        """Drop unreported outcomes because the lease is lost and the backend would reject them."""
        self._dropped = True
        self._outbox.clear()
        self._entries.clear()

    async def _report(self) -> None:
        while True:
            if not self._outbox:
                self._wakeup.clear()
                if not self._under_way:
                    self._flushed.set()
                await self._wakeup.wait()
                continue
            batch, entries = self._next_batch()
            self._under_way += 1
            try:
                await self._report_until_accepted(batch)
                if self._shared_state is not None:
                    self._shared_state.clear(entries)
            finally:
                self._under_way -= 1
                self.pending.difference_update([(report.job.id, report.job.fence) for report in batch])

    def _next_batch(self) -> tuple[list[Report], list[int | None]]:
        """Remove the oldest reports from the outbox, at most one of each job."""
        size = BATCH_SIZE
        ids = [report.job.id for report in self._outbox[:size]]
        if len(set(ids)) < len(ids):
            size = next(index for index, job in enumerate(ids) if job in ids[:index])
        batch, self._outbox = self._outbox[:size], self._outbox[size:]
        entries, self._entries = self._entries[:size], self._entries[size:]
        return batch, entries

    async def _report_until_accepted(self, batch: list[Report]) -> None:
        pause = 0.05
        while not self._dropped:
            try:
                reach("before_settle")
                settled = await self._source.settle_many(batch)
                reach("after_settle")
            except Rejected as error:
                await self._report_one_by_one(batch, error)
                return
            except HoldfastError as error:
                retry_after = error.retry_after if isinstance(error, Unavailable) else 0.0
                await asyncio.sleep(max(random.uniform(0.5, 1) * pause, retry_after))
                pause = min(_MAX_RETRY_DELAY_S, 2 * pause)
            else:
                self.refused += len(batch) - len(settled)
                return

    async def _report_one_by_one(self, batch: list[Report], error: Rejected) -> None:
        """Report each outcome alone, so that a value the database rejects fails only its own job."""
        if len(batch) > 1:
            for report in batch:
                await self._report_until_accepted([report])
            return
        failure = Failure("ResultRefused", f"the database rejected the result: {error}")
        if batch[0].outcome != (refusal := Failed(failure, retryable=False)):
            await self._report_until_accepted([Report(batch[0].job, refusal)])
