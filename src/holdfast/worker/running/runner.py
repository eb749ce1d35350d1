"""Runner of handlers: calls a handler and converts its result or exception to an outcome."""

import asyncio
import contextlib
import functools
import inspect
import random
import traceback
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from holdfast.errors import Invalid, LeaseLost, NonDeterministic, StepOutcomeUnknown, Unavailable
from holdfast.model.job import Job
from holdfast.model.outcome import BackendUnavailable, CancelledByHandler, Failed, Failure, Outcome, Snoozed, Succeeded
from holdfast.model.result import bounded_result
from holdfast.model.time import Duration
from holdfast.policy.lifecycle import suspect_group_size
from holdfast.policy.redact import redact
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.context.context import Context, SyncContext
from holdfast.worker.handlers.annotations import write_model
from holdfast.worker.handlers.exceptions import Cancel, Discard, Hold, Retry, Snooze
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.ports import StepStore

_RESULT = msgspec.json.Encoder(enc_hook=write_model).encode
_NULL = Succeeded(b"null")
_MAX_FRAMES = 40


class Processes(Protocol):
    """Pool of job processes."""

    async def run(
        self,
        job: Job,
        *,
        group_size: int | None,
        on_start: Callable[[], None],
        attempt_logs: AttemptLogs,
        entry: int | None,
    ) -> Outcome:
        """Run a job in a job process and return the outcome. Cancelling the call stops the handler.

        Args:
            job: The job to run.
            group_size: For suspects: largest number of suspects that may share the process; None for other jobs.
            on_start: Called when the handler has started.
            attempt_logs: Receives the handler's log lines as they are written.
            entry: Shared-state entry in which the process records the start, before `on_start` is called.
        """


class HandlerCall(NamedTuple):
    """How to call a handler: where, with which context parameter and which default timeout."""

    handler: Handler
    place: Literal["loop", "thread", "process"]
    context: str | None
    timeout: Duration | None


class Runner:
    """Runs the handlers of a registry on the event loop, in threads or in job processes."""

    def __init__(
        self,
        registry: Registry,
        step_store: StepStore,
        *,
        threads: Executor,
        processes: Processes | None = None,
        fail_rate: float = 0.0,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._calls = {
            handler.type: _handler_call(handler, has_processes=processes is not None) for handler in registry
        }
        self._isolated = {name: call._replace(place="process", context=None) for name, call in self._calls.items()}
        self._step_store = step_store
        self._threads = threads
        self._processes = processes
        self._fail_rate = fail_rate
        self._rng = rng

    def call(self, job: Job) -> HandlerCall | None:
        """Return how to call the handler of a job, or None if there is none.

        The handler of a suspect is called in a job process.
        """
        isolated = self._processes is not None and suspect_group_size(job) is not None
        return (self._isolated if isolated else self._calls).get(job.type)

    def context(
        self, job: Job, call: HandlerCall, deadline: float | None, attempt_logs: AttemptLogs | None = None
    ) -> Context | SyncContext | None:
        """Return a context for the handler, or None if it takes none."""
        if call.context is None:
            return None
        context = Context(job, self._step_store, deadline=deadline, attempt_logs=attempt_logs)
        return SyncContext(context, asyncio.get_running_loop()) if call.place == "thread" else context

    async def run(
        self,
        job: Job,
        call: HandlerCall,
        context: Context | SyncContext | None,
        *,
        on_start: Callable[[], None] = lambda: None,
        attempt_logs: AttemptLogs | None = None,
        entry: int | None = None,
    ) -> Outcome:
        """Call the handler and return its outcome; raise nothing but `CancelledError`.

        Args:
            job: The job to run.
            call: Result of `call`.
            context: Result of `context`.
            on_start: For job processes: called when the handler has started.
            attempt_logs: For job processes: receives the handler's log lines.
            entry: For job processes: shared-state entry in which the start is recorded.
        """
        try:
            if self._fail_rate and self._rng() < self._fail_rate:
                return Failed(Failure("FailedOnPurpose", "this attempt failed because HOLDFAST_FAIL_RATE is set"))
            if call.place == "process" and self._processes is not None:
                return await self._processes.run(
                    job,
                    group_size=self._group_size(job),
                    on_start=on_start,
                    attempt_logs=attempt_logs or AttemptLogs(),
                    entry=entry,
                )
            arguments = call.handler.arguments.decode(job.payload)
            if call.context is not None:
                arguments[call.context] = context
            if call.place == "loop":
                result = await call.handler.function(**arguments)
            else:
                function = functools.partial(call.handler.function, **arguments)
                result = await asyncio.get_running_loop().run_in_executor(self._threads, _call_in_thread, function)
            outcome = outcome_of_result(result)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            outcome = outcome_of(HandlerExit("the handler raised CancelledError although it was not cancelled"))
        except BaseException as error:  # noqa: BLE001 - user code
            outcome = outcome_of(error)
        if context is not None:
            with contextlib.suppress(Exception):  # progress that cannot be saved must not fail the attempt
                await context.finish()
        return outcome

    def _group_size(self, job: Job) -> int | None:
        """Return the group size of a suspect; None if its handler asks for a process.

        Only a coroutine can be stopped without ending its process, so a suspect that needs a thread runs alone.
        """
        match self._calls[job.type].place:
            case "process":
                return None
            case "thread":
                return 1
            case "loop":
                return suspect_group_size(job)


def _is_cancelled() -> bool:
    """Return True if this task is cancelled, not just something the handler awaited."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _handler_call(handler: Handler, *, has_processes: bool) -> HandlerCall:
    if handler.isolation == "process" and has_processes:
        return HandlerCall(handler, "process", None, handler.timeout)
    place: Literal["loop", "thread"] = "loop" if inspect.iscoroutinefunction(handler.function) else "thread"
    return HandlerCall(handler, place, handler.context, handler.timeout)


def outcome_of_result(result: Any) -> Outcome:
    """Convert a handler's return value to an outcome: JSON of bounded size."""
    if result is None:
        return _NULL
    try:
        encoded = _RESULT(result)
    except (TypeError, ValueError, RecursionError, OverflowError, UnicodeEncodeError) as error:
        message = (
            f"the handler returned a {type(result).__name__} that JSON cannot represent ({error}): return plain values"
        )
        return Failed(Failure("ResultNotJson", message), retryable=False)
    return Succeeded(bounded_result(encoded))


def outcome_of(error: BaseException) -> Outcome:
    """Convert an exception that a handler raised to an outcome."""
    match error:
        case Snooze():
            return Snoozed(error.delay, held=isinstance(error, Hold))
        case Cancel():
            return CancelledByHandler(redact(error.reason))
        case Discard():
            return Failed(failure_of(error), retryable=False)
        case Retry():
            return Failed(failure_of(error), retry_in=error.in_)
        case StepOutcomeUnknown() | NonDeterministic():  # the step records do not change, so a retry would fail too
            return Failed(failure_of(error), retryable=False)
        case Invalid() if error.pointer.startswith("/step"):  # a retry could repeat the effect of the step
            return Failed(failure_of(error), retryable=False)
        case Invalid() if error.pointer.startswith("/payload"):
            return Failed(Failure("InvalidPayload", redact(str(error))), retryable=False)
        case LeaseLost():
            return Failed(Failure("LeaseLost", str(error)))
        case _ if _is_unavailable(error):
            return BackendUnavailable(failure_of(error))
        case _:
            return Failed(failure_of(error))


def _is_unavailable(error: BaseException) -> bool:
    """Return True if holdfast could not reach its database or node, in all branches of a group."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_unavailable(each) for each in error.exceptions)
    return isinstance(error, Unavailable)


def failure_of(error: BaseException) -> Failure:
    """Convert an exception to its stored form, without local variables and secrets."""
    kind = (
        type(error).__qualname__
        if type(error).__module__ == "builtins"
        else f"{type(error).__module__}.{type(error).__qualname__}"
    )
    try:
        message = str(error)
        text = "".join(
            traceback.TracebackException.from_exception(error, limit=-_MAX_FRAMES, capture_locals=False).format()
        )
    except Exception as broken:  # noqa: BLE001 - user code: __str__ of the exception may fail
        message, text = f"(str() of the exception raised {type(broken).__name__})", ""
    return Failure(kind=kind, message=redact(message), traceback=redact(text))


def _call_in_thread(call: Callable[[], Any]) -> Any:
    """Call a handler in a thread; convert exceptions that would end the program."""
    try:
        return call()
    except (SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError, GeneratorExit) as error:
        raise HandlerExit(f"the handler raised {type(error).__name__}({error})") from error


class HandlerExit(Exception):
    """Raised in place of an exception with which a handler tried to end the program."""
