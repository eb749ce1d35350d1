"""Runs worker processes, replaces those that die, and ends them in good order. Runs no code of the user's itself."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError
from holdfast.worker.ports import Fleet
from holdfast.worker.processes.child import LOST_CODE, UNCONNECTED_CODE
from holdfast.worker.processes.launcher import Loaded
from holdfast.worker.processes.process_control import told
from holdfast.worker.processes.supervised_process import Plan, Ward

_LOG = logging.getLogger("holdfast")

KILL_AFTER = 15.0
"""Seconds after the drain is over until a child that has not ended is killed."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
RETURN_WITHIN = 1.0
"""The longest pause before another is started when it was the database that was away."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_TELL_EVERY = 10.0
_SETTLED = 10.0
"""A child that lived this long was no false start."""


def pause_before(last: float, code: int, *, at_work: bool, lived: float) -> float:
    """Seconds until another child is started: longer after each false start, and short when the start was not false.

    A child that ended because the database was away, or its lease with it, will not end so when that is back.
    """
    if at_work or lived > _SETTLED:
        return FIRST_PAUSE
    longest = RETURN_WITHIN if code in (LOST_CODE, UNCONNECTED_CODE) else LONGEST_PAUSE
    return min(longest, max(FIRST_PAUSE, 2 * last))


class Supervisor:
    """Keeps `count` children at work until it is told to stop."""

    def __init__(
        self,
        plan: Plan,
        count: int,
        *,
        open_fleet: Callable[[str], Awaitable[Fleet]],
        drain: float,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._count = count
        self._open_fleet = open_fleet
        self._drain = drain
        self._say = say
        self._loaded = Loaded(plan.command, plan.nursery, say)
        self._wards: set[Ward] = set()
        self._stop = asyncio.Event()
        self.drained = False
        """It was asked through the service to end, not by a signal."""
        self.signalled = asyncio.Event()
        self._hastened = False
        self._worked = False
        """Whether one of the children was at work, once."""
        self._opening = asyncio.Lock()
        self._leases: Fleet | None = None
        self._housekeeping: asyncio.Task[None] | None = None
        self._house: Fleet | None = None

    async def run(self) -> None:
        """Until stopped by a signal or `stop`; raises `CannotRun` when the application cannot be run at all."""
        self.heed_signals()
        try:
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(self._tell_what_it_waits_for())
                keeping = [group.create_task(self._keep(n + 1)) for n in range(self._count)]
                await asyncio.wait(keeping)
                self._stop.set()
                telling.cancel()
        except* HoldfastError as errors:
            raise errors.exceptions[0] from None
        finally:
            if not self.drained:  # otherwise whoever runs this may go on, and is to hear of signals
                for number in _SIGNALS:
                    asyncio.get_running_loop().remove_signal_handler(number)
            await self._close()

    def heed_signals(self) -> None:
        """From now on SIGTERM and SIGINT stop it."""

        def heard() -> None:
            self.signalled.set()
            if self._wards or not self._stop.is_set():  # drained, there may be nothing left to stop
                self.stop()

        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, heard)

    def stop(self) -> None:
        """Claim no more, finish what runs, hand back the rest. Called again: at once."""
        if self._stop.is_set() and not self._hastened:
            self._hastened = True
            self._say("stopping at once: what still runs is handed back")
            for ward in self._wards:
                ward.leave(0)
            return
        if self._hastened:
            for ward in self._wards:
                ward.kill()
            return
        self._stop.set()
        self._say("stopping: nothing more is claimed")
        for ward in self._wards:
            ward.leave(self._drain)

    def _drain_the_node(self) -> None:
        """One of the children was asked to end: what is to be taken out of service is the node."""
        if not self._stop.is_set():
            self.drained = True
            self._say("asked through the service to drain")
            self.stop()

    async def _keep(self, n: int) -> None:
        """Have one child at work at any time."""
        pause = 0.0
        while not self._stop.is_set():
            try:
                how, pause = await self._have_one_live(n, pause)
            except Exception as error:
                if isinstance(error, HoldfastError) and not self._has_worked():
                    raise  # it is not set up right: whoever started it is to know
                # A node that works survives what nobody thought of: the next child, or the lease, puts it right.
                _LOG.exception("worker %d could not be looked after", n)
                how = f"worker {n} could not be looked after ({type(error).__name__}: {error})"
                pause = pause_before(pause, 1, at_work=False, lived=0.0)
            if self._stop.is_set():
                return
            self._say(f"{how}; starting another")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)

    async def _have_one_live(self, n: int, pause: float) -> tuple[str, float]:
        """Start one and look after it until it has ended; how it did, and how long to wait before the next."""
        ward = Ward(self._plan, self._loaded, self._fleet, self._say, self._drain_the_node)
        self._wards.add(ward)
        began = time.monotonic()
        recycling = asyncio.create_task(self._recycle(ward))
        overdue = asyncio.create_task(self._kill_the_overdue(ward))
        try:
            code = await ward.live()
        finally:
            self._worked |= ward.ready.is_set()
            self._wards.discard(ward)
            recycling.cancel()
            overdue.cancel()
        lived = time.monotonic() - began if ward.ready.is_set() else 0.0
        pause = pause_before(pause, code, at_work=ward.crashed_at_work, lived=lived)
        return f"worker {n} (process {ward.pid}) ended by {told(code)}", pause

    def _has_worked(self) -> bool:
        return self._worked or any(ward.ready.is_set() for ward in self._wards)

    async def _recycle(self, ward: Ward) -> None:
        """Replace a child one of whose slots is lost, once its other jobs had time to end."""
        await ward.worn.wait()
        ward.drain(self._drain)
        await asyncio.sleep(self._drain + KILL_AFTER)
        ward.kill()

    async def _kill_the_overdue(self, ward: Ward) -> None:
        """A child that does not end by itself, its loop blocked perhaps, is ended."""
        await self._stop.wait()
        until = time.monotonic() + self._drain + KILL_AFTER
        while time.monotonic() < until:
            await asyncio.sleep(0.1)
            if self._hastened:
                until = min(until, time.monotonic() + 2.0)
                await asyncio.sleep(max(0.0, until - time.monotonic()))
        ward.kill()

    async def _tell_what_it_waits_for(self) -> None:
        """Tell it when it changes, and now and then when it does not."""
        await self._stop.wait()
        began = time.monotonic()
        last, again_at = 0, 0.0
        while not self._hastened:
            running, now = sum(ward.load.running for ward in self._wards), time.monotonic()
            if running and (running != last or now >= again_at):
                left = max(0.0, self._drain - (now - began))
                jobs = "1 running job" if running == 1 else f"{running} running jobs"
                again = "Ctrl-C or SIGTERM again to stop at once"
                self._say(f"waiting for {jobs}, at most {left:.0f} s more; {again}" if left else f"handing back {jobs}")
                again_at = now + _TELL_EVERY
            last = running
            await asyncio.sleep(1.0)

    async def _fleet(self, url: str) -> Fleet:
        """The connection that renews leases; it does nothing else, so nothing holds it up."""
        async with self._opening:
            if self._leases is None:
                self._leases = await self._open_fleet(url)
                self._house = await self._open_fleet(url)
                self._housekeeping = asyncio.create_task(self._house.keep_house(asyncio.Event()))
        return self._leases

    async def _close(self) -> None:
        await self._loaded.aclose()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            await asyncio.gather(self._housekeeping, return_exceptions=True)
        for fleet in (self._house, self._leases):
            if fleet is not None:
                await fleet.aclose()
