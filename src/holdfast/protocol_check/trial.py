"""Scenario in progress: the worker under test, its jobs, and the facts to wait for."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack

from holdfast.protocol_check import exchanges, rules
from holdfast.protocol_check.exchanges import RecordedExchange
from holdfast.protocol_check.processes import PrivateNode, WorkerUnderTest
from holdfast.protocol_check.proxy import InjectedFault, RecordingProxy
from holdfast.protocol_check.rules import Rule, RuleBroken
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.models import JobDetail
from holdfast.sdk.options import JobOptions

T = TypeVar("T")

QUEUE = "protocol"
TICK_S = 0.1
"""Interval at which handlers of `check.tick` write a line."""
STILL_S = 10 * TICK_S
"""Time without a line after which a handler counts as stopped."""


class CheckOptions(NamedTuple):
    """Options of a check."""

    command: tuple[str, ...]
    lease: float = 3.0
    drain: float = 2.0
    slots: int = 4
    timeout: float = 30.0
    """Longest wait for one fact, in seconds."""


class Tick(NamedTuple):
    """Line that a handler of `check.tick` wrote."""

    job: str
    fence: int


class Trial:
    """Scenario in progress. Its methods raise `RuleBroken` if a fact does not come true."""

    def __init__(
        self, options: CheckOptions, node: PrivateNode, proxy: RecordingProxy, folder: Path, api_key: str
    ) -> None:
        self.options = options
        self.node = node
        self.proxy = proxy
        self._folder = folder
        self._api_key = api_key
        self._files = itertools.count()
        self._jobs: list[str] = []
        self._checked = (0, 0)
        """Number of requests and of responses at the last check of the exchanges."""
        self.workers: list[WorkerUnderTest] = []
        self.may_exit = False
        """True if the scenario expects the worker to exit."""

    @property
    def exchanges(self) -> Sequence[RecordedExchange]:
        """Requests of the worker so far."""
        return self.proxy.exchanges

    @property
    def client(self) -> AsyncClient:
        """Client of the node, with all permissions."""
        if self.node.client is None:
            raise RuntimeError("the node was not started")
        return self.node.client

    async def start_worker(self, *, lease: float | None = None) -> WorkerUnderTest:
        """Start the worker and wait until it has registered."""
        environment = {
            "HOLDFAST_API_URL": self.proxy.url,
            "HOLDFAST_API_KEY": self._api_key,
            "HOLDFAST_QUEUES": QUEUE,
            "HOLDFAST_SLOTS": str(self.options.slots),
            "HOLDFAST_LEASE_SECONDS": f"{lease or self.options.lease:g}",
            "HOLDFAST_DRAIN_SECONDS": f"{self.options.drain:g}",
        }
        known = self.registrations()
        log = self._folder / f"worker-{len(self.workers)}.log"
        worker = await WorkerUnderTest.start(self.options.command, environment, log)
        self.workers.append(worker)

        async def registered() -> bool:
            return len(self.registrations()) > len(known)

        await self.until(rules.START, "the worker registers", registered)
        return worker

    def registrations(self) -> list[str]:
        """Return the worker ids that were registered, oldest first."""
        return [each.registered for each in self.exchanges if each.registered is not None]

    def inject(self, fault: InjectedFault) -> None:
        """Let the proxy inject a fault."""
        self.proxy.faults.append(fault)

    def path(self) -> str:
        """Return the path of a new file for a handler."""
        return str(self._folder / f"file-{next(self._files)}")

    async def submit(self, kind: str, payload: Any, **options: Unpack[JobOptions]) -> str:
        """Submit a job of the type `check.<kind>`; return its id."""
        options["queue"] = QUEUE
        job = await self.client.submit(f"check.{kind}", payload, **options)
        self._jobs.append(job.id)
        return job.id

    async def tick(self, seconds: float, *, progress: bool = False, **options: Unpack[JobOptions]) -> tuple[str, str]:
        """Submit a job that writes lines; return its id and file once it has started."""
        path = self.path()
        payload = {"path": path, "seconds": seconds, "progress": progress}
        job = await self.submit("tick", payload, **options)

        async def started() -> bool:
            return bool(ticks(path))

        await self.until(rules.START, "the worker starts a job of type check.tick", started)
        return job, path

    async def job(self, job_id: str) -> JobDetail:
        """Return a job."""
        return await self.client.get(job_id)

    async def finished(self, job_id: str, rule: Rule) -> JobDetail:
        """Wait until a job has finished."""

        async def fact() -> JobDetail | None:
            job = await self.job(job_id)
            return job if job.status.terminal else None

        return await self.until(rule, f"job {job_id} finishes", fact)

    async def succeeds(self, job_id: str, rule: Rule, *, result: Any = ..., attempts: int = 1) -> JobDetail:
        """Wait until a job has succeeded, with this result and number of attempts."""
        job = await self.finished(job_id, rule)
        self.require(
            rule, job.status == "succeeded", f"job {job_id} is {job.status}, not succeeded: {job.reason or job.error}"
        )
        self.require(rule, job.attempts == attempts, f"job {job_id} took {job.attempts} attempts, not {attempts}")
        self.require(
            rule, result is ... or job.result == result, f"the result of job {job_id} is {str(job.result)[:200]}"
        )
        return job

    async def stops(self, path: str, rule: Rule, job_id: str, *, fence: int | None = None) -> None:
        """Wait until a handler, or all with this fence, has written no line for `STILL_S`."""

        async def still() -> bool:
            before = _count(path, fence)
            await asyncio.sleep(STILL_S)
            return _count(path, fence) == before

        await self.until(rule, f"the handler of job {job_id} stops", still)

    async def exits(self, worker: WorkerUnderTest, rule: Rule) -> None:
        """Wait until the worker has exited by itself, with code 0."""
        self.may_exit = True

        async def exited() -> bool:
            return worker.exit_code is not None

        await self.until(rule, "the worker exits", exited)
        self.require(rule, worker.exit_code == 0, f"the worker exited with code {worker.exit_code}, not 0")

    async def until(self, rule: Rule, what: str, fact: Callable[[], Awaitable[T | None]]) -> T:
        """Wait for a fact; raises `RuleBroken` if it does not come true in time.

        A rule that an exchange breaks meanwhile comes first.
        """
        deadline, pause = time.monotonic() + self.options.timeout, 0.01
        while not (value := await fact()):
            self.check()
            if time.monotonic() > deadline:
                raise RuleBroken(rule, f"this did not happen within {self.options.timeout:g} s: {what}")
            await asyncio.sleep(pause)
            pause = min(0.1, 1.5 * pause)
        return value

    def require(self, rule: Rule, fact: object, detail: str) -> None:
        """Raise `RuleBroken` unless the fact is true; a broken rule of all exchanges comes first."""
        if not fact:
            self.check()
            raise RuleBroken(rule, detail)

    def check(self) -> None:
        """Raise `RuleBroken` if an exchange broke a rule or the worker ended unexpectedly."""
        state = (len(self.exchanges), sum(each.ended is not None for each in self.exchanges))
        if state != self._checked:
            exchanges.check(self.exchanges)
            self._checked = state
        worker = self.workers[-1] if self.workers else None
        if worker is not None and worker.exit_code is not None and not self.may_exit:
            last = worker.output.strip().splitlines()[-1:] or ["no output"]
            raise RuleBroken(rules.START, f"the worker exited with code {worker.exit_code}: {last[0][:300]}")

    async def clean_up(self) -> None:
        """Kill the workers, and cancel the jobs of the scenario that have not finished."""
        for worker in self.workers:
            await worker.kill()
        for job_id in self._jobs:
            if not (await self.job(job_id)).status.terminal:
                await self.client.cancel(job_id)


def read_lines(path: str) -> list[str]:
    """Return the complete lines of a file; none if it does not exist."""
    try:
        text = Path(path).read_text(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip("\n") for line in text.splitlines(keepends=True) if line.endswith("\n")]


def ticks(path: str) -> list[Tick]:
    """Return the complete lines that handlers of `check.tick` wrote to a file."""
    pairs = [line.split() for line in read_lines(path)]
    return [Tick(pair[0], int(pair[1])) for pair in pairs if len(pair) == 2 and pair[1].isdigit()]


def _count(path: str, fence: int | None) -> int:
    return sum(fence is None or tick.fence == fence for tick in ticks(path))
