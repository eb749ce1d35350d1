"""The slots of one queue: how many of its jobs run here at once, and what waits to be run."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.failpoints import reach
from holdfast.model.job import Job
from holdfast.model.outcome import Failed, Failure, Interrupted, Outcome, TimedOut
from holdfast.model.time import Duration, in_seconds, seconds
from holdfast.worker.context.attempt_logs import Logbook
from holdfast.worker.ports import Claims, Subscription
from holdfast.worker.processes.shared_state import Board
from holdfast.worker.running.runner import Runner, Task
from holdfast.worker.running.settler import Settler
from holdfast.worker.running.start_deadlines import Patience

if TYPE_CHECKING:
    from holdfast.model.ids import JobId
    from holdfast.worker.context.context import Context, SyncContext

GRACE = 5.0
"""Seconds a handler has to end after it was told to; then its slot is given up."""

AHEAD = 0.25
"""Seconds of work that may wait here, at the pace seen: enough to never run dry, too little to hoard."""

CLAIM_AT_ONCE = 500
_BREATH = 0.005
_SHORTEST = 0.02
_KEPT = 0.7
"""How much of the pace seen before still counts after a tenth of a second."""
_UNKNOWN = seconds(30)
_LAST_WORDS = 1.0
"""Seconds to write how far a handler came that was stopped."""

LOOK_AGAIN = (0.0, 1.0, 5.0, 40.0)
"""Seconds after the answer to a claim was lost at which to look what it took: the claim may still be under way in the
database, for as long as a statement may take there."""


class Run:
    """A job in a slot."""

    __slots__ = ("cell", "context", "job", "logbook", "over", "since", "slot", "task", "timeout", "timer", "why")

    def __init__(self, job: Job, task: Task, slot: "asyncio.Task[None] | None") -> None:
        self.job = job
        self.task = task
        self.cell: int | None = None
        self.slot = slot
        self.timeout = task.timeout if job.timeout is None else job.timeout
        self.since = time.monotonic()
        self.context: Context | SyncContext | None = None
        self.logbook = Logbook() if task.place == "process" else None
        self.timer: asyncio.TimerHandle | None = None
        self.why: str | None = None
        """Why it is being stopped: timeout, lost or drain."""
        self.over = False
        """Its outcome is decided; whatever the handler still does counts for nothing."""

    @property
    def deadline(self) -> float | None:
        """When it is to be stopped, by the monotonic clock."""
        return None if self.timeout is None else self.since + in_seconds(self.timeout)


class Slots:
    """Claims jobs of one queue and runs them, `size` at a time."""

    def __init__(
        self,
        queue: str,
        size: int,
        *,
        claims: Claims,
        held_here: Callable[[], Awaitable[list[Job]]],
        subscription: Subscription,
        runner: Runner,
        settler: Settler,
        board: Board,
        most_ahead: int,
        poll: float,
        worn: Callable[[str], None],
    ) -> None:
        self.queue = queue
        self.size = size
        self.stopping = False
        self._claims = claims
        self._held = held_here
        self._subscription = subscription
        self._runner = runner
        self._settler = settler
        self._board = board
        self._most_ahead = most_ahead
        self._poll = poll
        self._worn = worn
        self._waiting: deque[Job] = deque()
        self._patience = Patience()
        self._runs: dict[JobId, Run] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self._room = asyncio.Event()
        self._empty = asyncio.Event()
        self._lost_slots = 0
        self._looks: list[float] = []
        """When to look for jobs that are held here unknown to us."""
        self._pace = 0.0
        self._done = 0
        self._measured = time.monotonic()

    @property
    def running(self) -> int:
        """How many handlers are at work."""
        return len(self._runs)

    @property
    def waiting(self) -> int:
        """How many jobs are claimed and not begun."""
        return len(self._waiting)

    def runs(self) -> Iterator[Run]:
        """What is in the slots."""
        return iter(list(self._runs.values()))

    async def run(self) -> None:
        """Claim and run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._feed(), name=f"claim {self.queue}")
            for n in range(self.size):
                group.create_task(self._slot(), name=f"slot {self.queue} {n + 1}")

    def stop_claiming(self) -> list[Job]:
        """Claim nothing more; what was claimed and not begun."""
        self.stopping = True
        self._claims.stop()  # before anything is handed back: it would come here again
        unbegun = list(self._waiting)
        self._waiting.clear()
        if not self._runs:
            self._empty.set()
        return unbegun

    async def drained(self) -> None:
        """Until no handler is at work."""
        while self._runs:
            self._empty.clear()
            await self._empty.wait()

    def stop(self, run: Run, why: str) -> None:
        """Tell a handler to end. It has a little time; then its slot is given up."""
        if run.over or run.why is not None:
            return
        run.why = why
        if run.context is not None:
            run.context.cancel(f"the job was stopped: {why}")
        if run.slot is not None and run.task.place != "thread":
            run.slot.cancel()
        if run.timer is not None:
            run.timer.cancel()
        run.timer = asyncio.get_running_loop().call_later(GRACE, self._give_up, run)

    async def _feed(self) -> None:
        while not self.stopping:
            if self._looks and self._looks[0] <= time.monotonic():
                del self._looks[0]
                await self._hand_back_strangers()
                continue
            ahead = self._ahead()
            want = min(CLAIM_AT_ONCE, self.size - self._lost_slots + ahead - len(self._waiting) - len(self._runs))
            if want <= 0 or 2 * want < min(ahead, CLAIM_AT_ONCE):
                self._room.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(self._next_look()):
                        await self._room.wait()
                continue
            try:
                # Taken in while it is fresh: old news would have the claim search among what is long claimed.
                self._claims.heard(await self._subscription.wait(0))
                jobs = await self._claims.claim(want)
                if not jobs:
                    looks = [each - time.monotonic() for each in self._looks[:1]]
                    pause = min([self._poll, self._claims.patience(), *looks])
                    self._claims.heard(await self._subscription.wait(max(0.0, pause)))
                    continue
            except OutcomeUnknown:
                self._looks = [time.monotonic() + after for after in LOOK_AGAIN]
                continue
            except HoldfastError:
                await asyncio.sleep(0.5)  # the database is away: the settler and the lease tell the rest
                continue
            self._subscription.reset()
            self._take(jobs)

    def _next_look(self) -> float | None:
        if not self._looks:
            return None
        return asyncio.get_running_loop().time() + self._looks[0] - time.monotonic()

    async def _hand_back_strangers(self) -> None:
        """The answer to a claim was lost. What it took is held by this worker, which does not know it: give it back."""
        while not self.stopping:
            try:
                held_here = await self._held()
            except HoldfastError:
                await asyncio.sleep(0.5)
                continue
            known = {job.id for job in self._waiting} | self._runs.keys() | self._settler.pending
            for job in held_here:
                if job.queue == self.queue and job.id not in known:
                    self._settler.put(job, Interrupted())
            return

    def _take(self, jobs: list[Job]) -> None:
        reach("after_claim")
        if self.stopping:  # claimed while the order to stop came in
            for job in jobs:
                self._settler.put(job, Interrupted())
            return
        self._waiting.extend(jobs)
        self._patience.claimed(jobs)
        for _ in range(min(len(jobs), len(self._idle))):
            self._idle.popleft().set_result(None)

    async def _slot(self) -> None:
        slot = asyncio.current_task()
        loop = asyncio.get_running_loop()
        breath = time.monotonic() + _BREATH
        while True:
            while self._waiting:
                if (run := self._begin(self._waiting.popleft(), slot)) is None:
                    self._room.set()
                else:
                    await self._to_the_end(run)
                # A handler that never waits must not keep claims and reports from being sent.
                if (now := time.monotonic()) >= breath:
                    await asyncio.sleep(0)
                    breath = now + _BREATH
            if self.stopping:
                return
            turn = loop.create_future()
            self._idle.append(turn)
            try:
                await turn
            finally:
                if not turn.done() or turn.cancelled():
                    with contextlib.suppress(ValueError):
                        self._idle.remove(turn)
            breath = time.monotonic() + _BREATH

    def _begin(self, job: Job, slot: "asyncio.Task[None] | None") -> Run | None:
        if not self._patience.left(job):
            self._settler.put(job, Interrupted())  # no attempt is spent, and nobody is given it any more
            return None
        known = self._runner.task(job)
        if known is None:
            failure = Failure("UnknownType", f"this worker has no handler for jobs of type {job.type!r}")
            self._settler.put(job, Failed(failure, retry_in=_UNKNOWN))
            return None
        # One that runs in a process of its own is not to blame if this one crashes.
        run = Run(job, known, slot)
        if known.place != "process":
            run.cell = self._board.begin(job.id, job.fence, run.since, run.timeout)
            self._time(run)
        elif known.handler.isolation != "process":
            # There because a process died over it: it stays under suspicion, so that a poison pill never starts more
            # often than it has attempts, whatever crashes beside it. Its process notes that it begins: what this one
            # heard of it would be too late if this one dies meanwhile.
            run.cell = self._board.reserve()
        run.context = self._runner.context(job, known, run.deadline)
        if run.context is not None:
            run.logbook = run.context.logbook
        reach("before_start")
        self._runs[job.id] = run
        return run

    def _begun_apart(self, run: Run) -> None:
        """Its handler begins, in a process of its own."""
        reach("begun_apart")
        self._time(run)

    def _time(self, run: Run) -> None:
        """The handler begins: its time counts from now on."""
        if run.timeout is None or run.why is not None or run.over:
            return
        run.timer = asyncio.get_running_loop().call_later(in_seconds(run.timeout), self.stop, run, "timeout")

    async def _to_the_end(self, run: Run) -> None:
        try:
            outcome: Outcome | None = await self._runner.run(
                run.job, run.task, run.context, begun=lambda: self._begun_apart(run), logbook=run.logbook, cell=run.cell
            )
        except asyncio.CancelledError:
            if run.why is None:  # not the handler but this process ends: its supervisor reports the job
                raise
            outcome = None
        if run.why is not None:
            # Told to end, whether or not it cared: the slot goes on, for other jobs.
            while run.slot is not None and run.slot.cancelling():
                run.slot.uncancel()
            if run.why == "timeout" and run.context is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_WORDS):
                        await run.context.finish()
            outcome = self._stopped(run)
        self._end(run, outcome)

    def _stopped(self, run: Run) -> Outcome | None:
        """What a handler that was told to end comes to, whatever it did about it."""
        match run.why:
            case "timeout":
                return TimedOut(run.timeout or Duration(0))
            case "drain":
                return Interrupted()
            case _:  # the job is somebody else's now: there is nothing to report
                return None

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        if run.timer is not None:
            run.timer.cancel()
        if run.over:  # its slot was given up; the handler came back after all
            return
        run.over = True
        del self._runs[run.job.id]
        if outcome is not None:
            if run.cell is not None and run.timeout is not None:
                self._board.stop_timing(run.cell)
            self._settler.put(run.job, outcome, run.cell, None if run.logbook is None else run.logbook.logs())
        elif run.cell is not None:
            self._board.end(run.cell)
        self._done += 1
        if not self._runs:
            self._empty.set()
        self._room.set()

    def _give_up(self, run: Run) -> None:
        """A handler would not end: report it all the same, and have this process replaced."""
        self._end(run, self._stopped(run))
        self._lost_slots += 1
        self._worn(f"a handler of {run.job.type!r} (job {run.job.id}) does not stop {GRACE:g} s after it was told to")

    def _ahead(self) -> int:
        """How many jobs may wait here: by how many a second ended lately, quick to rise and slow to fall."""
        now = time.monotonic()
        if (passed := now - self._measured) >= _SHORTEST:
            pace, self._done, self._measured = self._done / passed, 0, now
            self._pace = max(pace, pace + (self._pace - pace) * _KEPT ** (passed / 0.1))
        return min(self._most_ahead, int(self._pace * AHEAD))
