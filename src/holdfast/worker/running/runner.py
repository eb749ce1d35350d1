"""Runs one job and says what came of it. The one home of `except Exception` around the user's code."""

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

from holdfast.errors import Invalid, LeaseLost, NonDeterministic, StepOutcomeUnknown
from holdfast.model.job import Job
from holdfast.model.outcome import CancelledByHandler, Failed, Failure, Outcome, Snoozed, Succeeded
from holdfast.model.time import Duration
from holdfast.policy.lifecycle import suspect
from holdfast.policy.redact import redact
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.context.context import Context, SyncContext
from holdfast.worker.handlers.annotations import write_model
from holdfast.worker.handlers.exceptions import Cancel, Discard, Hold, Retry, Snooze
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.ports import StepStore

MAX_RESULT_BYTES = 256 * 1024
MAX_SUSPECTS = 8
"""How many jobs run alone at a time because their process died: it may have had hundreds, and too little memory."""
_RESULT = msgspec.json.Encoder(enc_hook=write_model).encode
_NULL = Succeeded(b"null")
_MAX_FRAMES = 40


class Processes(Protocol):
    """Runs jobs in processes of their own."""

    async def run(
        self, job: Job, *, on_start: Callable[[], None], attempt_logs: AttemptLogs, entry: int | None
    ) -> Outcome:
        """What came of it; what it logs is in the book at once. `on_start` is called when the handler begins.

        By then that stands in this cell of the board, whether or not anybody lives to hear of it.

        The process is ended when the caller is cancelled.
        """


class HandlerCall(NamedTuple):
    """A handler, and what is worth knowing before each of its jobs."""

    handler: Handler
    place: Literal["loop", "thread", "process"]
    context: str | None
    timeout: Duration | None


class Runner:
    """Knows the handlers and where each kind of them runs."""

    def __init__(
        self,
        registry: Registry,
        step_store: StepStore,
        *,
        threads: Executor,
        processes: Processes | None = None,
        fail_rate: float = 0.0,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._calls = {handler.type: _handler_call(handler, apart=processes is not None) for handler in registry}
        self._alone = {name: task._replace(place="process", context=None) for name, task in self._calls.items()}
        self._suspects = asyncio.Semaphore(MAX_SUSPECTS)
        self._step_store = step_store
        self._threads = threads
        self._processes = processes
        self._fail_rate = fail_rate
        self._rng = dice

    def call(self, job: Job) -> HandlerCall | None:
        """Who handles this job, and where: one that may have crashed a process runs in one of its own."""
        alone = self._processes is not None and suspect(job)
        return (self._alone if alone else self._calls).get(job.type)

    def context(
        self, job: Job, task: HandlerCall, deadline: float | None, attempt_logs: AttemptLogs | None = None
    ) -> Context | SyncContext | None:
        """What the handler is told about its job, if it wants to know."""
        if task.context is None:
            return None
        context = Context(job, self._step_store, deadline=deadline, attempt_logs=attempt_logs)
        return SyncContext(context, asyncio.get_running_loop()) if task.place == "thread" else context

    async def run(
        self,
        job: Job,
        task: HandlerCall,
        context: Context | SyncContext | None,
        *,
        on_start: Callable[[], None] = lambda: None,
        attempt_logs: AttemptLogs | None = None,
        entry: int | None = None,
    ) -> Outcome:
        """Call the handler. Only being cancelled gets out of here; everything else is an outcome.

        Of one in a process of its own, `on_start` tells when the handler begins, and the book has what it logs.
        """
        try:
            if self._fail_rate and self._rng() < self._fail_rate:
                return Failed(Failure("FailedOnPurpose", "HOLDFAST_FAIL_RATE had this attempt fail"))
            if task.place == "process" and self._processes is not None:
                async with contextlib.nullcontext() if task.handler.isolation == "process" else self._suspects:
                    return await self._processes.run(
                        job, on_start=on_start, attempt_logs=attempt_logs or AttemptLogs(), entry=entry
                    )
            arguments = task.handler.arguments.decode(job.payload)
            if task.context is not None:
                arguments[task.context] = context
            if task.place == "loop":
                result = await task.handler.function(**arguments)
            else:
                call = functools.partial(task.handler.function, **arguments)
                result = await asyncio.get_running_loop().run_in_executor(self._threads, _contained, call)
            outcome = succeeded(result)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            outcome = outcome_of(HandlerExit("the handler raised CancelledError, though nobody cancelled it"))
        except BaseException as error:  # noqa: BLE001 - this is the user's code
            outcome = outcome_of(error)
        if context is not None:
            with contextlib.suppress(Exception):  # how far it came is worth no attempt
                await context.finish()
        return outcome


def _is_cancelled() -> bool:
    """Whether it is us who are to stop, and not something that the handler had waited for."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _handler_call(handler: Handler, *, apart: bool) -> HandlerCall:
    if handler.isolation == "process" and apart:
        return HandlerCall(handler, "process", None, handler.timeout)
    place: Literal["loop", "thread"] = "loop" if inspect.iscoroutinefunction(handler.function) else "thread"
    return HandlerCall(handler, place, handler.context, handler.timeout)


def succeeded(result: Any) -> Outcome:
    """A handler's return value as an outcome: JSON, within bounds."""
    if result is None:
        return _NULL
    try:
        encoded = _RESULT(result)
    except (TypeError, ValueError, RecursionError, OverflowError, UnicodeEncodeError) as error:
        message = f"it returned a {type(result).__name__} that cannot be written as JSON ({error}): return plain values"
        return Failed(Failure("ResultNotJson", message), retryable=False)
    if len(encoded) > MAX_RESULT_BYTES:
        head = encoded[:1_000].decode(errors="replace")
        encoded = _RESULT({"truncated": True, "bytes": len(encoded), "head": head})
    return Succeeded(encoded)


def outcome_of(error: BaseException) -> Outcome:
    """What an exception that left a handler means."""
    match error:
        case Snooze():
            return Snoozed(error.delay, held=isinstance(error, Hold))
        case Cancel():
            return CancelledByHandler(redact(error.reason))
        case Discard():
            return Failed(failure_of(error), retryable=False)
        case Retry():
            return Failed(failure_of(error), retry_in=error.in_)
        case StepOutcomeUnknown() | NonDeterministic():  # the records stay as they are, and so does what they mean
            return Failed(failure_of(error), retryable=False)
        case Invalid() if error.pointer.startswith("/step"):  # its effect may have happened; it would happen again
            return Failed(failure_of(error), retryable=False)
        case Invalid() if error.pointer.startswith("/payload"):
            return Failed(Failure("InvalidPayload", redact(str(error))), retryable=False)
        case LeaseLost():
            return Failed(Failure("LeaseLost", str(error)))
        case _:
            return Failed(failure_of(error))


def failure_of(error: BaseException) -> Failure:
    """An exception as it is stored: its chain, without any local variables, secrets redacted."""
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
    except Exception as broken:  # noqa: BLE001 - an exception whose own text fails
        message, text = f"(its text cannot be had: {type(broken).__name__})", ""
    return Failure(kind=kind, message=redact(message), traceback=redact(text))


def _contained(call: Callable[[], Any]) -> Any:
    """Runs on a thread: what would end the thread or the program becomes an ordinary failure."""
    try:
        return call()
    except (SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError, GeneratorExit) as error:
        raise HandlerExit(f"the handler raised {type(error).__name__}({error})") from error


class HandlerExit(Exception):
    """A handler tried to end the program."""
