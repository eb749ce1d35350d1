"""Handles of submitted jobs: look at one, wait for its result, cancel it, run it again."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from holdfast.app.runtime import Engine, EngineProvider
from holdfast.errors import Invalid, JobCancelled, JobFailed, WaitTimeout
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.job import Job
from holdfast.model.state import Status
from holdfast.model.time import in_seconds
from holdfast.policy.lifecycle import attempt_log
from holdfast.worker.handlers.exceptions import Span, duration

R_co = TypeVar("R_co", covariant=True)
Decode = Callable[[bytes | None], Any]

_MIN_POLL_INTERVAL_S = 0.02
_MAX_POLL_INTERVAL_S = 0.5
_BY_APPLICATION = "cancelled by the application"


def plain(result: bytes | None) -> Any:
    """A result as JSON has it."""
    return None if result is None else msgspec.json.decode(result)


def parse_id(job_id: UUID | str) -> JobId:
    """A job's id, as a UUID or as text."""
    try:
        return JobId(job_id if isinstance(job_id, UUID) else UUID(job_id))
    except (ValueError, TypeError, AttributeError):
        raise Invalid(f"{job_id!r} is not the id of a job: it must be a UUID", pointer="/id") from None


class _Handle(Generic[R_co]):
    def __init__(
        self, engines: EngineProvider, job_id: JobId, *, replayed: bool = False, decode: Decode = plain
    ) -> None:
        self._engines = engines
        self._decode = decode
        self.id: JobId = job_id
        self.replayed = replayed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class JobHandle(_Handle[R_co]):
    """A submitted job, for code without an event loop.

    `replayed` tells that an earlier submission with the same key made it, and nothing was added.
    """

    def status(self) -> Status:
        """Where it stands."""
        return self.job().status

    def job(self) -> Job:
        """All of it, as it is now; raises `NotFound` when it is not kept any more."""
        return self._engines.run(lambda engine: engine.get(self.id))

    def wait(self, timeout: Span | None = None) -> R_co:
        """The result, when there is one.

        Raises `JobFailed` when the job is dead, `JobCancelled` when it was cancelled, and `WaitTimeout` when it is not
        finished in time.
        """
        job = self._engines.run(lambda engine: finished(engine, self.id, timeout))
        result: R_co = verdict(job, self._decode)
        return result

    def explain(self) -> Explanation:
        """Why it is (not) running, and when it may start; raises `NotFound` when it is not kept any more."""
        return self._engines.run(lambda engine: engine.explain(self.id))

    def cancel(self, reason: str = _BY_APPLICATION) -> bool:
        """Cancel it, also while it runs; False when it is finished already."""
        return self.id in self._engines.run(lambda engine: engine.cancel([self.id], reason=reason))

    def retry(self) -> bool:
        """Run it now: a dead or cancelled job anew, a waiting one ahead of its time; False if there is no need."""
        return self.id in self._engines.run(lambda engine: engine.retry([self.id]))


class AsyncJobHandle(_Handle[R_co]):
    """A submitted job, for code on an event loop.

    `replayed` tells that an earlier submission with the same key made it, and nothing was added.
    """

    async def status(self) -> Status:
        """Where it stands."""
        return (await self.job()).status

    async def job(self) -> Job:
        """All of it, as it is now; raises `NotFound` when it is not kept any more."""
        return await (await self._engines.here()).get(self.id)

    async def wait(self, timeout: Span | None = None) -> R_co:
        """The result, when there is one.

        Raises `JobFailed` when the job is dead, `JobCancelled` when it was cancelled, and `WaitTimeout` when it is not
        finished in time.
        """
        job = await finished(await self._engines.here(), self.id, timeout)
        result: R_co = verdict(job, self._decode)
        return result

    async def explain(self) -> Explanation:
        """Why it is (not) running, and when it may start; raises `NotFound` when it is not kept any more."""
        return await (await self._engines.here()).explain(self.id)

    async def cancel(self, reason: str = _BY_APPLICATION) -> bool:
        """Cancel it, also while it runs; False when it is finished already."""
        return self.id in await (await self._engines.here()).cancel([self.id], reason=reason)

    async def retry(self) -> bool:
        """Run it now: a dead or cancelled job anew, a waiting one ahead of its time; False if there is no need."""
        return self.id in await (await self._engines.here()).retry([self.id])


async def finished(engine: Engine, job_id: JobId, timeout: Span | None) -> Job:
    """The job once it is finished: looked at again and again, less often with time."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + in_seconds(duration(timeout, "timeout"))
    pause = _MIN_POLL_INTERVAL_S
    while True:
        job = await engine.get(job_id)
        if job.status.terminal:
            return job
        left = pause if end is None else end - loop.time()
        if left <= 0:
            raise WaitTimeout(f"job {job_id} is {job.status} and not finished after {timeout}; it goes on")
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _MAX_POLL_INTERVAL_S)


def verdict(job: Job, decode: Decode) -> Any:
    """A finished job's result, or what stands in for it as an error."""
    match job.status:
        case Status.SUCCEEDED:
            try:
                return decode(job.result)
            except msgspec.ValidationError as error:
                raise Invalid(
                    f"the result of job {job.id} is not what {job.type!r} says it returns: {error}", pointer="/result"
                ) from error
        case Status.CANCELLED:
            raise JobCancelled(str(job.id), reason=job.reason or "no reason was given")
        case _:
            log = attempt_log(job)
            last = log[-1].error if log else None
            kind, message = (last.kind, last.message) if last else ("Unknown", "nothing was recorded")
            raise JobFailed(str(job.id), kind=kind, message=message, attempts=job.attempts)
