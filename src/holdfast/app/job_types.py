"""A decorated function: still callable as it is, and enqueued with its own arguments, checked by types and by value."""

import functools
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast, get_args
from uuid import UUID

from msgspec.structs import replace

from holdfast.app.handles import AsyncJobHandle, JobHandle, parse_id
from holdfast.app.runtime import EngineProvider, SubmitReceipt
from holdfast.engine.submitting import receipts as submitting
from holdfast.errors import HoldfastError, Invalid, InvalidBatch
from holdfast.model.job import JobSpec, OnConflict, UniqueSpec
from holdfast.model.time import Duration, Instant
from holdfast.policy import submission
from holdfast.worker.handlers.exceptions import Retry, Span, duration
from holdfast.worker.handlers.registry import Handler

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

Call = Mapping[str, Any] | Sequence[Any]
"""The arguments of one call, by name or by position."""


class Unique(NamedTuple):
    """One such job at a time: the same as far as `by` tells, until it is finished and for `within` after it was made.

    `by` names `type`, `queue`, `payload`, or `payload.<argument>`. A further one is the earlier one again
    (`on_conflict="return"`), takes its place while it waits (`"replace"`), or is `DuplicateJob` (`"reject"`, and
    `"replace"` once the earlier one has started).
    """

    by: Sequence[str] = ("payload",)
    within: Span = 0
    on_conflict: OnConflict = "return"

    def spec(self) -> UniqueSpec:
        """As it is submitted."""
        if isinstance(self.by, str):
            raise Invalid("unique.by is a text: give a list, such as ['payload.user_id']", pointer="/unique/by")
        if self.on_conflict not in get_args(OnConflict):
            raise Invalid("unique.on_conflict must be 'return', 'replace' or 'reject'", pointer="/unique/on_conflict")
        return UniqueSpec(tuple(self.by), duration(self.within, "unique/within"), self.on_conflict)


class BoundJobType(Generic[P, R_co]):
    """A job type with the options of a submission: what `options` gives."""

    def __init__(self, engines: EngineProvider, handler: Handler, spec: JobSpec) -> None:
        self._engines = engines
        self._arguments = handler.arguments
        self._spec = spec

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Submit a call with these arguments; the job is durable when this returns.

        Blocks meanwhile: on an event loop use `aenqueue`. Raises `Invalid` for arguments the function would not take.
        """
        spec = self._called(args, kwargs)
        return self._handle(self._engines.run(lambda engine: engine.submit(spec)))

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R_co]:
        """Submit a call with these arguments; the job is durable when this returns.

        Raises `Invalid` for arguments the function would not take.
        """
        spec = self._called(args, kwargs)
        return self._ahandle(await (await self._engines.here()).submit(spec))

    def enqueue_many(self, calls: Sequence[Call]) -> list[JobHandle[R_co]]:
        """Submit many calls, each a dict of arguments by name or a tuple of them: all, or none and `InvalidBatch`."""
        specs = self._called_many(calls)
        return [self._handle(each) for each in self._engines.run(lambda engine: engine.submit_many(specs))]

    async def aenqueue_many(self, calls: Sequence[Call]) -> list[AsyncJobHandle[R_co]]:
        """Submit many calls, each a dict of arguments by name or a tuple of them: all, or none and `InvalidBatch`."""
        specs = self._called_many(calls)
        return [self._ahandle(each) for each in await (await self._engines.here()).submit_many(specs)]

    def _called(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobSpec:
        return replace(self._spec, payload=self._arguments.check(args, kwargs))

    def _called_many(self, calls: Sequence[Call]) -> list[JobSpec]:
        specs: list[JobSpec] = []
        faults: dict[int, Invalid] = {}
        for index, call in enumerate(calls):
            try:
                specs.append(self._called(*_arguments(call)))
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
    """A decorated function. Calling it calls the function, here and now; `enqueue` has a worker call it."""

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
        """The type of its jobs."""
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
        """The same job type with options for what is enqueued through it; one left out is as the decorator has it."""
        if isinstance(tags, str):
            raise Invalid("tags is a text: give a list, such as ['nightly']", pointer="/tags")
        asked: dict[str, Any] = {
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
        spec = replace(self._spec, **{name: value for name, value in asked.items() if value is not None})
        submission.check_options(spec)
        return BoundJobType(self._engines, self.handler, spec)

    def handle(self, job_id: UUID | str) -> JobHandle[R_co]:
        """A handle of a job of this type that was submitted before."""
        return JobHandle(self._engines, parse_id(job_id), decode=self._arguments.decode_result)

    def ahandle(self, job_id: UUID | str) -> AsyncJobHandle[R_co]:
        """A handle of a job of this type that was submitted before, for code on an event loop."""
        return AsyncJobHandle(self._engines, parse_id(job_id), decode=self._arguments.decode_result)

    def __repr__(self) -> str:
        return f"<job {self.name!r}: {self.handler.function.__module__}.{self.handler.function.__qualname__}>"


class AsyncJobType(JobType[P, R_co]):
    """A decorated async function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function itself: no job, no worker."""
        coroutine: Coroutine[Any, Any, R_co] = self.handler.function(*args, **kwargs)
        return coroutine


class SyncJobType(JobType[P, R_co]):
    """A decorated plain function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself: no job, no worker."""
        result: R_co = self.handler.function(*args, **kwargs)
        return result


def _arguments(call: object) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(call, Mapping):
        return (), call
    if isinstance(call, Sequence) and not isinstance(call, str | bytes):
        return call, {}
    raise Invalid(f"a call is a dict of arguments or a tuple of them, not a {type(call).__name__}", pointer="/payload")


def _all_faults(specs: Sequence[JobSpec], faults: dict[int, Invalid]) -> dict[int, HoldfastError]:
    """With those that only the engine would find, so that one answer names them all."""
    try:
        submitting.check(specs, max_attempts=1, at_ms=0)
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
