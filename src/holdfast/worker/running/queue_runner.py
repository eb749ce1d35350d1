"""Runner of one queue: claims its jobs and runs them in a fixed number of slots."""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.failpoints import reach
from holdfast.model.job import Job
from holdfast.model.outcome import REPORT_LOST, Failed, Failure, Interrupted, Outcome, Snoozed
from holdfast.model.time import in_seconds, seconds
from holdfast.worker.ports import JobClaims, WakeupSubscription
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.completion_rate import CompletionRate
from holdfast.worker.running.idle import wait_for_jobs
from holdfast.worker.running.run import AttemptKey, Run, stop_outcome
from holdfast.worker.running.runner import Runner
from holdfast.worker.running.settler import Settler
from holdfast.worker.running.waiting_jobs import RETRY_DELAY_S, WaitingJobs

if TYPE_CHECKING:
    from holdfast.model.ids import JobId

STOP_TIMEOUT_S = 5.0
"""Seconds that a handler has to end after it was stopped; then its slot is abandoned."""

PREFETCH_S = 0.25
"""Seconds of work to claim ahead: slots rarely idle, and other workers still get jobs."""

CLAIM_BATCH_SIZE = 500
_YIELD_INTERVAL_S = 0.005
_UNKNOWN_TYPE_DELAY = seconds(30)
_BUSY_DELAY = seconds(1)
"""Delay of a job whose abandoned handler still runs here, so that another process starts it."""
_FINISH_TIMEOUT_S = 1.0
"""Time limit for saving the last progress of a stopped handler."""

RECHECK_DELAYS_S = (0.0, 1.0, 5.0, 40.0)
"""Seconds after a claim with unknown outcome at which to check which jobs it took.

One check is not enough, because the claim may still be executing in the database until its statement timeout.
"""


class QueueRunner:
    """Claims jobs of one queue and runs at most `size` of them at a time."""

    def __init__(
        self,
        queue: str,
        size: int,
        *,
        claims: JobClaims,
        held_jobs: Callable[[], Awaitable[list[Job]]],
        subscription: WakeupSubscription,
        runner: Runner,
        settler: Settler,
        shared_state: SharedState,
        max_prefetch: int,
        poll: float,
        on_slot_lost: Callable[[str], None],
    ) -> None:
        self.queue = queue
        self.size = size
        self.stopping = False
        self._claims = claims
        self._held_jobs = held_jobs
        self._subscription = subscription
        self._runner = runner
        self._settler = settler
        self._shared_state = shared_state
        self._max_prefetch = max_prefetch
        self._poll = poll
        self._on_slot_lost = on_slot_lost
        self._capacity_changed = asyncio.Event()
        self._waiting = WaitingJobs(claims, release=self._release, on_change=self._capacity_changed.set)
        self._runs: dict[JobId, Run] = {}
        """Jobs in slots; one run per job, even if the job is claimed again during it."""
        self._successors: dict[JobId, Job] = {}
        """Jobs that were claimed again and wait until their earlier handler has ended."""
        self._abandoned: dict[JobId, int] = {}
        """Number of abandoned handlers that still run, by job."""
        self._idle: deque[asyncio.Future[None]] = deque()
        self._empty = asyncio.Event()
        self._lost_slots = 0
        self._rechecks: list[float] = []
        """Times of the checks for jobs that a claim with unknown outcome took."""
        self._compare_next = False
        self._completions = CompletionRate(time.monotonic())

    @property
    def running(self) -> int:
        """Number of running handlers."""
        return len(self._runs)

    @property
    def waiting(self) -> int:
        """Number of jobs that are claimed and not started."""
        return len(self._waiting) + len(self._successors)

    def runs(self) -> Iterator[Run]:
        """Iterate over the jobs in the slots."""
        return iter(list(self._runs.values()))

    async def run(self) -> None:
        """Claim and run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claim_loop(), name=f"claim {self.queue}")
            for n in range(self.size):
                group.create_task(self._slot(), name=f"slot {self.queue} {n + 1}")

    def compare_held(self) -> None:
        """Release jobs that the worker holds in the database but does not run, between claims."""
        self._compare_next = True
        self._capacity_changed.set()

    def stop_claiming(self) -> list[Job]:
        """Stop claiming; return the jobs that are claimed and not started."""
        self.stopping = True
        self._claims.stop()  # before jobs are released, or a claim in flight would take them again
        not_started = [*self._waiting.clear(), *self._successors.values()]
        self._successors.clear()
        if not self._runs:
            self._empty.set()
        return not_started

    async def wait_until_drained(self) -> None:
        """Wait until no handler is running."""
        while self._runs:
            self._empty.clear()
            await self._empty.wait()

    def stop(self, run: Run, reason: str) -> None:
        """Stop a handler. If it has not ended after `STOP_TIMEOUT_S`, its slot is abandoned."""
        if run.over or run.stop_reason is not None:
            return
        run.stop_reason = reason
        if run.context is not None:
            run.context.cancel(f"the job was stopped: {reason}")
        if run.slot is not None and run.call.place != "thread":
            run.slot.cancel()
        if run.timer is not None:
            run.timer.cancel()
        run.timer = asyncio.get_running_loop().call_later(STOP_TIMEOUT_S, self._abandon_slot, run)

    async def _claim_loop(self) -> None:
        while not self.stopping:
            if self._rechecks and self._rechecks[0] <= time.monotonic():
                del self._rechecks[0]
                await self._release_unknown(Interrupted(started=False))
                continue
            if self._compare_next:
                self._compare_next = False
                await self._release_unknown(REPORT_LOST)
                continue
            prefetch = self._prefetch_count()
            free = self.size - self._lost_slots + prefetch - self.waiting - len(self._runs)
            count = min(CLAIM_BATCH_SIZE, free)
            if count <= 0 or 2 * count < min(prefetch, CLAIM_BATCH_SIZE):
                self._capacity_changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(self._next_recheck()):
                        await self._capacity_changed.wait()
                continue
            try:
                # Deliver wake-ups while they are recent: an old one makes the claim search among claimed jobs.
                self._claims.on_ready(await self._subscription.wait(0))
                jobs = await self._claims.claim(count)
                if not jobs:
                    await wait_for_jobs(
                        self._subscription, self._claims, poll=self._poll,
                        recheck_at=min(self._rechecks, default=math.inf),
                        interrupted=lambda: self._compare_next or self.stopping,
                    )  # fmt: skip
                    continue
            except OutcomeUnknown:
                self._rechecks = [time.monotonic() + after for after in RECHECK_DELAYS_S]
                continue
            except HoldfastError as error:
                # The database is unavailable: the lease decides whether this worker continues. After a failover, the
                # new server may lack the latest reports.
                self._compare_next = True
                await asyncio.sleep(max(RETRY_DELAY_S, error.retry_after if isinstance(error, Unavailable) else 0.0))
                continue
            self._subscription.reset()
            self._accept(jobs)

    def _next_recheck(self) -> float | None:
        now = asyncio.get_running_loop().time()
        return now + self._rechecks[0] - time.monotonic() if self._rechecks else None

    async def _release_unknown(self, outcome: Outcome) -> None:
        """Report this outcome for jobs that the worker holds unknowingly; retry during an outage."""
        while not self.stopping:
            try:
                held_jobs = await self._held_jobs()
            except HoldfastError:
                await asyncio.sleep(RETRY_DELAY_S)
                continue
            known = self.known_attempts()
            for job in held_jobs:
                if job.queue == self.queue and (job.id, job.fence) not in known:
                    self._settler.put(job, outcome)
            return

    def known_attempts(self) -> set[AttemptKey]:
        """Return the attempts that are claimed, run, or have an outcome that is not accepted yet."""
        waiting = [(job.id, job.fence) for job in (*self._waiting, *self._successors.values())]
        return {*waiting, *(run.attempt for run in self._runs.values()), *self._settler.pending}

    def _accept(self, jobs: list[Job]) -> None:
        reach("after_claim")
        if self.stopping:  # stopped while the claim was in flight
            for job in jobs:
                self._release(job)
            return
        self._add_waiting(jobs)

    def _release(self, job: Job) -> None:
        """Return a job that has not started; spends no attempt."""
        self._settler.put(job, Interrupted(started=False))

    def _add_waiting(self, jobs: list[Job], *, just_claimed: bool = True) -> None:
        self._waiting.add(jobs, just_claimed=just_claimed)
        for _ in range(min(len(jobs), len(self._idle))):
            self._idle.popleft().set_result(None)

    async def _slot(self) -> None:
        slot = asyncio.current_task()
        loop = asyncio.get_running_loop()
        yield_at = time.monotonic() + _YIELD_INTERVAL_S
        while True:
            while self._waiting:
                if self._waiting.needs_check:
                    await self._waiting.check()
                    continue
                if (run := self._begin(self._waiting.take(), slot)) is None:
                    self._capacity_changed.set()
                else:
                    await self._run_job(run)
                # Handlers that never suspend must not block claims and reports.
                if (now := time.monotonic()) >= yield_at:
                    await asyncio.sleep(0)
                    yield_at = now + _YIELD_INTERVAL_S
            if self.stopping:
                return
            ready = loop.create_future()
            self._idle.append(ready)
            try:
                await ready
            finally:
                if not ready.done() or ready.cancelled():
                    with contextlib.suppress(ValueError):
                        self._idle.remove(ready)
            yield_at = time.monotonic() + _YIELD_INTERVAL_S

    def _begin(self, job: Job, slot: "asyncio.Task[None] | None") -> Run | None:
        if job.id in self._runs or job.id in self._abandoned:
            self._postpone(job)
            return None
        if not self._waiting.may_start(job):
            self._release(job)  # its deadline has passed: maintenance cancels it
            return None
        call = self._runner.call(job)
        if call is None:
            failure = Failure("UnknownType", f"this worker has no handler for jobs of type {job.type!r}")
            self._settler.put(job, Failed(failure, retry_in=_UNKNOWN_TYPE_DELAY))
            return None
        run = Run(job, call, slot)
        if call.place != "process":
            run.entry = self._shared_state.begin(job.id, job.fence, run.since, run.timeout)
            self._start_timer(run)
        elif call.handler.isolation != "process":
            # A suspect: an attempt ended with the death of its process. It stays suspect, so that a poison pill never
            # starts more often than it has attempts, even if this worker crashes for another reason. The
            # job process records the start itself, because this process may die before it receives the message.
            # Jobs with isolation="process" have no entry: they cannot crash this process.
            run.entry = self._shared_state.reserve()
        run.context = self._runner.context(job, call, run.deadline)
        if run.context is not None:
            run.attempt_logs = run.context.attempt_logs
        reach("before_start")
        self._runs[job.id] = run
        return run

    def _postpone(self, job: Job) -> None:
        """Keep a job that was claimed again until its earlier handler has ended."""
        if (earlier := self._runs.get(job.id)) is None:
            self._settler.put(job, Snoozed(_BUSY_DELAY, held=True))
            return
        self._successors[job.id] = job  # an older successor was claimed before this one, so it is no longer held
        self.stop(earlier, "lost")

    def _started_in_process(self, run: Run) -> None:
        """Start the timer of a handler that has started in a job process."""
        reach("after_isolated_start")
        self._start_timer(run)

    def _start_timer(self, run: Run) -> None:
        """Start the timeout of a handler."""
        if run.timeout is None or run.stop_reason is not None or run.over:
            return
        run.timer = asyncio.get_running_loop().call_later(in_seconds(run.timeout), self.stop, run, "timeout")

    async def _run_job(self, run: Run) -> None:
        try:
            outcome: Outcome | None = await self._runner.run(
                run.job,
                run.call,
                run.context,
                on_start=lambda: self._started_in_process(run),
                attempt_logs=run.attempt_logs,
                entry=run.entry,
            )
        except asyncio.CancelledError:
            if run.stop_reason is None:  # the whole process is stopping: its supervisor reports the job
                raise
            outcome = None
        if run.stop_reason is not None:
            # The handler was stopped, whether or not it cooperated; clear the cancellation for the slot's next job.
            while run.slot is not None and run.slot.cancelling():
                run.slot.uncancel()
            if run.stop_reason == "timeout" and run.context is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_FINISH_TIMEOUT_S):
                        await run.context.finish()
            outcome = stop_outcome(run)
        self._end(run, outcome)

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        if run.timer is not None:
            run.timer.cancel()
        if run.over:  # the slot was abandoned and the handler ended after all
            self._abandoned[run.job.id] -= 1
            if not self._abandoned[run.job.id]:
                del self._abandoned[run.job.id]
            return
        run.over = True
        del self._runs[run.job.id]
        if (successor := self._successors.pop(run.job.id, None)) is not None:
            self._add_waiting([successor], just_claimed=False)
        if outcome is not None:
            if run.entry is not None and run.timeout is not None:
                self._shared_state.stop_timing(run.entry)
            self._settler.put(
                run.job, outcome, run.entry, None if run.attempt_logs is None else run.attempt_logs.logs()
            )
        elif run.entry is not None:
            self._shared_state.end(run.entry)
        self._completions.count += 1
        if not self._runs:
            self._empty.set()
        self._capacity_changed.set()

    def _abandon_slot(self, run: Run) -> None:
        """Report a handler that does not end, and ask for a replacement of this process."""
        self._abandoned[run.job.id] = self._abandoned.get(run.job.id, 0) + 1
        self._end(run, stop_outcome(run))
        self._lost_slots += 1
        self._on_slot_lost(
            f"a handler of {run.job.type!r} (job {run.job.id}) has not ended {STOP_TIMEOUT_S:g} s after it was stopped"
        )

    def _prefetch_count(self) -> int:
        """Return how many jobs to claim ahead."""
        now = time.monotonic()
        per_second = self._completions.rate(now)
        slow = all(now - run.since > PREFETCH_S for run in self._runs.values())
        if slow and len(self._runs) >= self.size - self._lost_slots:
            return 0  # every slot runs a job that already takes longer than `PREFETCH_S`, whatever the rate was
        return min(self._max_prefetch, int(per_second * PREFETCH_S))
