"""Handles of submitted jobs: read the state, wait for the result, cancel, retry."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from holdfast.app.runtime import AppBackend, EngineProvider
from holdfast.errors import Invalid, JobCancelled, JobFailed, ResultTooLarge, WaitTimeout
from holdfast.model import job
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.model.decoded_job import Job
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.result import size_of_truncated
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
    """Decode a result from JSON."""
    return None if result is None else msgspec.json.decode(result)


def parse_id(job_id: UUID | str) -> JobId:
    """Return the job id for a UUID or its text form; raises `Invalid` for anything else."""
    try:
        return JobId(job_id if isinstance(job_id, UUID) else UUID(job_id))
    except (ValueError, TypeError, AttributeError):
        raise Invalid(f"{job_id!r} is not a job id: give a UUID", pointer="/id") from None


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
    """Handle of a submitted job, for synchronous code.

    `replayed` is True if an earlier submission with the same key created the job, so that nothing was inserted.

    Example:
        handle = send.enqueue(42)
        handle.wait(timeout="30s")
    """

    def status(self) -> Status:
        """Return the current status; raises `NotFound` if the job was deleted."""
        return self._engines.run(lambda engine: engine.jobs.get(self.id)).status

    def job(self) -> Job:
        """Return the job as it is now, decoded; raises `NotFound` if it was deleted.

        Example:
            handle.job().error
        """
        return self._engines.run(lambda engine: engine.jobs.get_decoded(self.id))

    def wait(self, timeout: Span | None = None) -> R_co:
        """Wait until the job has finished and return its result.

        Args:
            timeout: Seconds, a text such as `"5m"` or a `timedelta`; None waits without a limit.

        Raises:
            JobFailed: The job is dead.
            JobCancelled: The job was cancelled.
            ResultTooLarge: The job succeeded, but its result was too large to store.
            WaitTimeout: The job did not finish within `timeout`; it continues to run.
            NotFound: The job was deleted.

        Example:
            result = handle.wait(timeout="30s")
        """
        stored = self._engines.run(lambda engine: wait_until_finished(engine, self.id, timeout))
        result: R_co = result_or_raise(stored, self._decode)
        return result

    def explain(self) -> Explanation:
        """Explain why the job is (not) running and estimate its start; raises `NotFound`.

        Example:
            for reason in handle.explain().reasons:
                print(reason.detail)
        """
        return self._engines.run(lambda engine: engine.jobs.explain(self.id))

    def cancel(self, reason: str = _BY_APPLICATION) -> bool:
        """Cancel the job, even if it is running; return False if it has already finished.

        Args:
            reason: Text shown with the job.
        """
        return self.id in self._engines.run(lambda engine: engine.jobs.cancel([self.id], reason=reason))

    def retry(self) -> bool:
        """Make a dead, cancelled, scheduled or retrying job ready now; return False otherwise."""
        return self.id in self._engines.run(lambda engine: engine.jobs.retry([self.id]))


class AsyncJobHandle(_Handle[R_co]):
    """Handle of a submitted job, for code on an event loop.

    `replayed` is True if an earlier submission with the same key created the job, so that nothing was inserted.

    Example:
        handle = await send.aenqueue(42)
        await handle.wait(timeout="30s")
    """

    async def status(self) -> Status:
        """Return the current status; raises `NotFound` if the job was deleted."""
        return (await (await self._engines.here()).jobs.get(self.id)).status

    async def job(self) -> Job:
        """Return the job as it is now, decoded; raises `NotFound` if it was deleted.

        Example:
            (await handle.job()).error
        """
        return await (await self._engines.here()).jobs.get_decoded(self.id)

    async def wait(self, timeout: Span | None = None) -> R_co:
        """Wait until the job has finished and return its result.

        Args:
            timeout: Seconds, a text such as `"5m"` or a `timedelta`; None waits without a limit.

        Raises:
            JobFailed: The job is dead.
            JobCancelled: The job was cancelled.
            ResultTooLarge: The job succeeded, but its result was too large to store.
            WaitTimeout: The job did not finish within `timeout`; it continues to run.
            NotFound: The job was deleted.

        Example:
            result = await handle.wait(timeout="30s")
        """
        stored = await wait_until_finished(await self._engines.here(), self.id, timeout)
        result: R_co = result_or_raise(stored, self._decode)
        return result

    async def explain(self) -> Explanation:
        """Explain why the job is (not) running and estimate its start; raises `NotFound`."""
        return await (await self._engines.here()).jobs.explain(self.id)

    async def cancel(self, reason: str = _BY_APPLICATION) -> bool:
        """Cancel the job, even if it is running; return False if it has already finished.

        Args:
            reason: Text shown with the job.
        """
        return self.id in await (await self._engines.here()).jobs.cancel([self.id], reason=reason)

    async def retry(self) -> bool:
        """Make a dead, cancelled, scheduled or retrying job ready now; return False otherwise."""
        return self.id in await (await self._engines.here()).jobs.retry([self.id])


async def wait_until_finished(engine: AppBackend, job_id: JobId, timeout: Span | None) -> job.Job:
    """Poll until the job has finished, at growing intervals, and return it."""
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + in_seconds(duration(timeout, "timeout"))
    pause = _MIN_POLL_INTERVAL_S
    while True:
        stored = await engine.jobs.get(job_id)
        if stored.status.terminal:
            return stored
        left = pause if end is None else end - loop.time()
        if left <= 0:
            raise WaitTimeout(f"job {job_id} is still {stored.status} after {timeout}; it continues to run")
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _MAX_POLL_INTERVAL_S)


def result_or_raise(stored: job.Job, decode: Decode) -> Any:
    """Return the result of a finished job, or raise why there is none."""
    match stored.status:
        case Status.SUCCEEDED:
            if (size := size_of_truncated(plain(stored.result))) is not None:
                raise ResultTooLarge(str(stored.id), size=size, maximum=MAX_RESULT_BYTES)
            try:
                return decode(stored.result)
            except msgspec.ValidationError as error:
                raise Invalid(
                    f"the result of job {stored.id} does not match the return type of {stored.type!r}: {error}",
                    pointer="/result",
                ) from error
        case Status.CANCELLED:
            raise JobCancelled(str(stored.id), reason=stored.reason or "no reason was given")
        case _:
            log = attempt_log(stored)
            last = log[-1].error if log else None
            kind, message = (last.kind, last.message) if last else ("Unknown", "no error was recorded")
            raise JobFailed(str(stored.id), kind=kind, message=message, attempts=stored.attempts)
