"""Job types: decorated functions that can be called directly or enqueued."""

import functools
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast, get_args
from uuid import UUID

from msgspec.structs import replace

from holdfast.app.handles import AsyncJobHandle, JobHandle, parse_id
from holdfast.app.runtime import EngineProvider, SubmitReceipt
from holdfast.errors import HoldfastError, Invalid, InvalidBatch
from holdfast.model.ids import new_job_id
from holdfast.model.job import JobSpec, OnConflict, UniqueSpec
from holdfast.model.time import Duration, Instant
from holdfast.policy import submission
from holdfast.worker.context.context import Context, SyncContext
from holdfast.worker.handlers.exceptions import Retry, Span, duration
from holdfast.worker.handlers.registry import Handler
from holdfast.worker.handlers.signature import CONTEXT

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

Call = Mapping[str, Any] | Sequence[Any]
"""The arguments of one call, by name or by position."""


class Unique(NamedTuple):
    """Uniqueness rule: at most one unfinished job with the same values of `by`.

    Args:
        by: Names of `type`, `queue`, `payload`, or `payload.<argument>`.
        within: Reject duplicates for this long after the first submission too, even if its job has finished.
        on_conflict: `"return"` returns the existing job; `"replace"` replaces it while it waits; `"reject"`, and
            `"replace"` after it has started, raises `DuplicateJob`.

    Example:
        sync.options(unique=Unique(by=["payload.account"], within="1h")).enqueue(7)
    """

    by: Sequence[str] = ("payload",)
    within: Span = 0
    on_conflict: OnConflict = "return"

    def spec(self) -> UniqueSpec:
        """Return the rule as it is submitted; raises `Invalid` if it is malformed."""
        if isinstance(self.by, str):
            raise Invalid("unique.by is a text: give a list, such as ['payload.user_id']", pointer="/unique/by")
        if self.on_conflict not in get_args(OnConflict):
            raise Invalid("unique.on_conflict must be 'return', 'replace' or 'reject'", pointer="/unique/on_conflict")
        return UniqueSpec(tuple(self.by), duration(self.within, "unique/within"), self.on_conflict)


class BoundJobType(Generic[P, R_co]):
    """Job type with submission options, as returned by `JobType.options`."""

    def __init__(self, engines: EngineProvider, handler: Handler, spec: JobSpec) -> None:
        self._engines = engines
        self._arguments = handler.arguments
        self._spec = spec

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Submit a job with these arguments; it is durable when this returns.

        Blocks the calling thread; on an event loop use `aenqueue`.

        Raises:
            Invalid: The arguments do not match the function's signature.
            RateLimited: The tenant's quota is used up; retry after `retry_after` seconds.
            Unavailable: The database or node is unreachable.

        Example:
            handle = send.enqueue(42, subject="hello")
        """
        spec = self._spec_for(args, kwargs)
        return self._handle(self._engines.run(lambda engine: engine.jobs.submit(spec)))

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R_co]:
        """Submit a job with these arguments; it is durable when this returns.

        Raises:
            Invalid: The arguments do not match the function's signature.
            RateLimited: The tenant's quota is used up; retry after `retry_after` seconds.
            Unavailable: The database or node is unreachable.

        Example:
            handle = await send.aenqueue(42, subject="hello")
        """
        spec = self._spec_for(args, kwargs)
        return self._ahandle(await (await self._engines.here()).jobs.submit(spec))

    def enqueue_many(self, calls: Sequence[Call]) -> list[JobHandle[R_co]]:
        """Submit many jobs atomically.

        Args:
            calls: The arguments of each job, as a dict by name or a tuple by position.

        Raises:
            InvalidBatch: Some calls are invalid, so no job was submitted; `faults` has the error of each by index.

        Example:
            handles = send.enqueue_many([{"user_id": 42}, {"user_id": 43}])
        """
        specs = self._specs(calls)
        receipts = self._engines.run(lambda engine: engine.jobs.submit_many(specs))
        return [self._handle(receipt) for receipt in receipts]

    async def aenqueue_many(self, calls: Sequence[Call]) -> list[AsyncJobHandle[R_co]]:
        """Submit many jobs atomically.

        Args:
            calls: The arguments of each job, as a dict by name or a tuple by position.

        Raises:
            InvalidBatch: Some calls are invalid, so no job was submitted; `faults` has the error of each by index.

        Example:
            handles = await send.aenqueue_many([{"user_id": 42}, {"user_id": 43}])
        """
        specs = self._specs(calls)
        receipts = await (await self._engines.here()).jobs.submit_many(specs)
        return [self._ahandle(receipt) for receipt in receipts]

    def _spec_for(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobSpec:
        return replace(self._spec, payload=self._arguments.check(args, kwargs))

    def _specs(self, calls: Sequence[Call]) -> list[JobSpec]:
        specs: list[JobSpec] = []
        faults: dict[int, Invalid] = {}
        for index, call in enumerate(calls):
            try:
                specs.append(self._spec_for(*_arguments(call)))
            except Invalid as fault:
                faults[index] = fault
                specs.append(replace(self._spec, payload={}))
        if faults:
            raise InvalidBatch(_all_faults(specs, faults))
        return specs

    def _handle(self, receipt: SubmitReceipt) -> JobHandle[R_co]:
        decode = self._arguments.decode_result
        return JobHandle(self._engines, receipt.id, replayed=receipt.replayed, decode=decode)

    def _ahandle(self, receipt: SubmitReceipt) -> AsyncJobHandle[R_co]:
        decode = self._arguments.decode_result
        return AsyncJobHandle(self._engines, receipt.id, replayed=receipt.replayed, decode=decode)


class JobType(BoundJobType[P, R_co]):
    """Decorated function: a call runs it directly, `enqueue` submits a job for a worker."""

    def __init__(self, engines: EngineProvider, handler: Handler) -> None:
        spec = JobSpec(
            type=handler.type,
            queue=handler.queue,
            priority=handler.priority,
            cost=handler.cost,
            retry=handler.retry,
            max_attempts=handler.max_attempts,
        )
        super().__init__(engines, handler, spec)
        self.handler = handler
        functools.update_wrapper(cast("Any", self), handler.function)

    @property
    def name(self) -> str:
        """Name of the job type."""
        return self.handler.type

    def options(
        self,
        *,
        delay: Span | None = None,
        at: datetime | None = None,
        tenant: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        idempotency_key: str | None = None,
        unique: Unique | bool = False,
        tags: Sequence[str] = (),
        deadline: datetime | None = None,
        concurrency_key: str | None = None,
        max_attempts: int | None = None,
        timeout: Span | None = None,
        retry: Retry | None = None,
        cost: int | None = None,
    ) -> BoundJobType[P, R_co]:
        """Return this job type with options for the jobs enqueued through it.

        Options that are left out keep the values of the decorator.

        Args:
            delay: Time from now until the job may start; excludes `at`.
            at: Time at which the job may start, with a time zone; excludes `delay`.
            tenant: Tenant of the jobs.
            queue: Queue of the jobs.
            priority: Jobs with a higher priority run first.
            idempotency_key: Submissions with the same key create one job.
            unique: True, or a `Unique` rule: at most one unfinished job with the same payload.
            tags: Labels to filter by.
            deadline: A job that has not started by then is cancelled.
            concurrency_key: Jobs with the same key run one at a time, unless a limit allows more.
            max_attempts: Number of attempts before the job is dead.
            timeout: Maximum duration of one attempt.
            retry: Number of attempts and delays between them.
            cost: Weight of one job in quotas and fair scheduling.

        Raises:
            Invalid: An option is out of range or malformed.

        Example:
            send.options(delay="10m", priority=5, idempotency_key="order-4711").enqueue(42)
        """
        if isinstance(tags, str):
            raise Invalid("tags is a text: give a list, such as ['nightly']", pointer="/tags")
        given: dict[str, Any] = {
            "delay": _span(delay, "delay"),
            "scheduled_at": _instant(at, "scheduled_at"),
            "tenant": tenant,
            "queue": queue,
            "priority": priority,
            "idempotency_key": idempotency_key,
            "unique": Unique().spec() if unique is True else unique.spec() if unique else None,
            "tags": tuple(tags),
            "deadline": _instant(deadline, "deadline"),
            "concurrency_key": concurrency_key,
            "max_attempts": retry.max_attempts if max_attempts is None and retry is not None else max_attempts,
            "timeout": _span(timeout, "timeout"),
            "retry": None if retry is None else retry.rule(),
            "cost": cost,
        }
        spec = replace(self._spec, **{name: value for name, value in given.items() if value is not None})
        submission.check_options(spec)
        return BoundJobType(self._engines, self.handler, spec)

    def handle(self, job_id: UUID | str) -> JobHandle[R_co]:
        """Return a handle for an existing job of this type; raises `Invalid` for a malformed id."""
        return JobHandle(self._engines, parse_id(job_id), decode=self._arguments.decode_result)

    def ahandle(self, job_id: UUID | str) -> AsyncJobHandle[R_co]:
        """Return an async handle for an existing job; raises `Invalid` for a malformed id."""
        return AsyncJobHandle(self._engines, parse_id(job_id), decode=self._arguments.decode_result)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, with `CONTEXT` for a context in first place that the caller left out."""
        arguments = self._arguments
        if arguments.context_is_first and not _is_context(args[:1]):
            args = (kwargs.pop(arguments.context or "", CONTEXT), *args)
        return self.handler.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job {self.name!r}: {self.handler.function.__module__}.{self.handler.function.__qualname__}>"


class AsyncJobType(JobType[P, R_co]):
    """Job type of an async function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function directly, without a job or a worker."""
        coroutine: Coroutine[Any, Any, R_co] = self._call(args, kwargs)
        return coroutine


class SyncJobType(JobType[P, R_co]):
    """Job type of a synchronous function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function directly, without a job or a worker."""
        result: R_co = self._call(args, kwargs)
        return result


def _is_context(args: tuple[Any, ...]) -> bool:
    return any(arg is CONTEXT or isinstance(arg, Context | SyncContext) for arg in args)


def _arguments(call: object) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(call, Mapping):
        return (), call
    if isinstance(call, Sequence) and not isinstance(call, str | bytes):
        return call, {}
    raise Invalid(f"a call is a dict of arguments or a tuple of them, not a {type(call).__name__}", pointer="/payload")


def _all_faults(specs: Sequence[JobSpec], faults: dict[int, Invalid]) -> dict[int, HoldfastError]:
    """Add the faults that only the engine would find, so that one error names them all."""
    try:
        submission.build_jobs(specs, new_job_id, max_attempts=1)
    except InvalidBatch as batch:
        return dict(sorted((batch.faults | faults).items()))
    return dict(sorted(faults.items()))


def _span(value: Span | None, field: str) -> Duration | None:
    return None if value is None else duration(value, field)


def _instant(at: object, field: str) -> Instant | None:
    if at is None:
        return None
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise Invalid(
            f"{field} is {at!r}: give a datetime with a time zone, such as datetime.now(UTC) + …", pointer=f"/{field}"
        )
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return Instant((at - epoch) // timedelta(microseconds=1))
