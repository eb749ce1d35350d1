"""The running job, as its handler sees it: steps, transactions, progress, and whether to go on."""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar, overload

from holdfast.errors import Conflict, HoldfastError, Invalid, LeaseLost, StepOutcomeUnknown
from holdfast.failpoints import reach
from holdfast.model.ids import WorkerId
from holdfast.model.job import HeldJob, Job
from holdfast.model.step import Step, StepState
from holdfast.policy.steps import StepDecision, decide_step
from holdfast.worker.context.attempt_logs import AttemptLogs, format_line, format_message, render_fields
from holdfast.worker.context.progress import ProgressReporter
from holdfast.worker.context.transaction import SyncTransaction, Transaction
from holdfast.worker.handlers import results
from holdfast.worker.ports import StepStore

T = TypeVar("T")

MAX_KEY_LENGTH = 255
_LOG = logging.getLogger("holdfast.job")


class Context:
    """For handlers that are coroutines. Steps may run beside each other; a transaction runs alone."""

    def __init__(
        self, job: Job, step_store: StepStore, *, deadline: float | None = None, attempt_logs: AttemptLogs | None = None
    ) -> None:
        self.job = job
        self.deadline = deadline
        """When the attempt times out, by `time.monotonic()`."""
        self.attempt_logs = AttemptLogs() if attempt_logs is None else attempt_logs
        """What the handler logged, for the record of the attempt."""
        self._step_store = step_store
        self._held = HeldJob(job.id, job.fence, job.worker or WorkerId(0))
        self._stopped: str | None = None
        self._keys: set[str] = set()
        self._running: set[str] = set()
        self._numbered = 0
        self._open: str | None = None
        self._loading = asyncio.Lock()
        # Nobody held the job before its first claim, so there is nothing to look for.
        self._found: dict[str, Step] | None = {} if job.fence == 1 else None
        self._progress = ProgressReporter(self._save_progress)

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.job.attempts

    @property
    def cancelled(self) -> bool:
        """Whether the handler is to stop: the job was cancelled, timed out, or is another's now."""
        return self._stopped is not None

    def raise_if_cancelled(self) -> None:
        """Raise `LeaseLost` if the handler is to stop."""
        if self._stopped is not None:
            raise LeaseLost(f"job {self.job.id}: {self._stopped}; nothing it does counts any more")

    def cancel(self, reason: str) -> None:
        """For the worker: the handler is to stop. From now on it can record nothing."""
        if self._stopped is None:
            self._stopped = reason

    def time_left(self) -> float | None:
        """Seconds until the attempt times out; None if it never does."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def idempotency_key(self, step: str) -> str:
        """The same at every attempt: for services that do a thing once per key."""
        return f"{self.job.id}:{step}"

    def log(self, message: str, *, level: int = logging.INFO, **fields: object) -> None:
        """Write to the log `holdfast.job`, with the job's id and attempt and these fields.

        The newest lines are kept with the attempt as well. What looks like a secret is in neither.
        """
        about = {"job_id": str(self.job.id), "job_type": self.job.type, "attempt": self.attempt}
        told, text = render_fields(fields), format_message(message)
        _LOG.log(level, "%s", text, extra={**about, "fields": told})
        self.attempt_logs.add(format_line(level, text, told))

    @overload
    async def step(
        self, key: str, fn: Callable[..., Awaitable[T]], *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, key: str, fn: Callable[..., T], *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> T: ...
    async def step(
        self, key: str, fn: Callable[..., Any], *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> Any:
        """Call `fn` and record what it returns; a later attempt is given the record and does not call it.

        Interrupted between the call and the record, it is called again: pass `idempotency_key(key)` on. With
        `at_most_once` it is never called again; the next attempt then gets `StepOutcomeUnknown`. What is returned went
        through JSON, at the first attempt too. A plain function is called in a thread.
        """
        found = await self.begin_step(key, at_most_once=at_most_once)
        try:
            if found is None:
                result = fn(*args, **kwargs) if _is_async(fn) else await asyncio.to_thread(_called, fn, args, kwargs)
                found = await self.end_step(key, await result if inspect.isawaitable(result) else result)
        finally:
            self._running.discard(key)
        return results.decode(key, found.result, fn)

    @asynccontextmanager
    async def transaction(self, key: str | None = None) -> AsyncIterator[Transaction]:
        """A transaction in the engine's own database: its writes happen once, however many attempts there are.

        Its statements, the record of them and the check that the job is still ours commit together. When an earlier
        attempt committed it, its statements are not run; they give what they gave then. Without a key it is known
        by its number, in order of use.
        """
        self._may_write("open a transaction")
        if self._running:
            raise Conflict(f"a transaction cannot be opened while step {min(self._running)!r} runs: open it after it")
        if key is None:
            self._numbered += 1
            key = f"transaction-{self._numbered}"
        self._use(key)
        self._open = key
        try:
            async with self._step_store.session(self._held, key) as session:
                transaction = Transaction(key, session, self.raise_if_cancelled)
                yield transaction
                transaction.complete()
                reach("before_step_commit")
            reach("after_step_commit")
        except LeaseLost as error:
            self.cancel(str(error))
            raise
        finally:
            self._open = None

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show how far the job is, from 0 to 1. Written at most about once a second; the last one always is."""
        self._may_write("report progress")
        await self._progress.report(fraction, note)

    async def finish(self) -> None:
        """For the worker, before the attempt is settled: write the progress that is not written yet, if it can be."""
        with suppress(HoldfastError):
            await self._progress.flush()

    async def begin_step(self, key: str, *, at_most_once: bool) -> Step | None:
        """The first half of a step: its record, or None when it is to be done now and `end_step` is to follow."""
        self._may_write(f"run step {key!r}")
        self._use(key)
        found = (await self._recorded()).get(key)
        match decide_step(found, at_most_once=at_most_once):
            case StepDecision.REUSE:
                return found
            case StepDecision.UNKNOWN:
                raise StepOutcomeUnknown(
                    f"step {key!r} was begun by an earlier attempt and may have been done; since it is to be done at "
                    "most once it is not repeated: find out, and go on without it"
                )
            case StepDecision.RUN:
                self._running.add(key)
        if at_most_once:
            try:
                await self._record(Step(key, StepState.STARTED))
            except BaseException:
                self._running.discard(key)
                raise
        return None

    async def end_step(self, key: str, value: Any) -> Step:
        """The second half of a step: record its result."""
        done = Step(key, StepState.DONE, results.encode(key, value))
        await self._record(done)
        return done

    async def _recorded(self) -> dict[str, Step]:
        async with self._loading:
            if self._found is None:
                self._found = {step.key: step for step in await self._step_store.steps_of(self._held)}
            return self._found

    async def _record(self, step: Step) -> None:
        reach("before_step_commit")
        held = await self._step_store.record_step(self._held, step)
        reach("after_step_commit")
        self._held_still(held)

    async def _save_progress(self, progress: bytes) -> None:
        self._held_still(await self._step_store.save_progress(self._held, progress))

    def _held_still(self, held: bool) -> None:  # noqa: FBT001 - the answer of a store
        if not held:
            self.cancel("it was taken away from this worker")
        self.raise_if_cancelled()

    def _may_write(self, what: str) -> None:
        self.raise_if_cancelled()
        if self._open is not None:
            raise Conflict(
                f"cannot {what} inside transaction {self._open!r}: do it before or after. It would not be part of "
                "the transaction, and could wait for it forever"
            )

    def _use(self, key: str) -> None:
        if type(key) is not str or not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
            raise Invalid(
                f"{key!r} is not a valid step key: use 1 to {MAX_KEY_LENGTH} printable characters", pointer="/step"
            )
        if key in self._keys:
            raise Invalid(
                f"step {key!r} was already used in this attempt: give each step its own key",
                pointer="/step",
            )
        self._keys.add(key)


class SyncContext:
    """The same for handlers that are plain functions, which run in threads."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self.job = context.job
        self.attempt = context.attempt
        self.deadline = context.deadline
        self.raise_if_cancelled = context.raise_if_cancelled
        self.cancel = context.cancel
        self.time_left = context.time_left
        self.idempotency_key = context.idempotency_key
        self.log = context.log
        self.attempt_logs = context.attempt_logs
        self.finish = context.finish

    @property
    def cancelled(self) -> bool:
        """Whether the handler is to stop: the job was cancelled, timed out, or is another's now."""
        return self._context.cancelled

    def step(self, key: str, fn: Callable[..., T], *args: Any, at_most_once: bool = False, **kwargs: Any) -> T:
        """Call `fn`, in this thread, and record what it returns; see `Context.step`."""
        found = self._wait(self._context.begin_step(key, at_most_once=at_most_once))
        try:
            if found is None:
                found = self._wait(self._context.end_step(key, fn(*args, **kwargs)))
        finally:
            self._loop.call_soon_threadsafe(self._context._running.discard, key)  # noqa: SLF001 - its own other half
        value: T = results.decode(key, found.result, fn)
        return value

    @contextmanager
    def transaction(self, key: str | None = None) -> Iterator[SyncTransaction]:
        """A transaction in the engine's own database; see `Context.transaction`."""
        block = self._context.transaction(key)
        transaction = self._wait(block.__aenter__())
        try:
            yield SyncTransaction(transaction, self._wait)
        except BaseException as error:
            if not self._wait(block.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._wait(block.__aexit__(None, None, None))

    def progress(self, fraction: float, note: str = "") -> None:
        """Show how far the job is, from 0 to 1."""
        self._wait(self._context.progress(fraction, note))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(fn)) or inspect.iscoroutinefunction(type(fn).__call__)


def _called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return fn(*args, **kwargs)
    except StopIteration as error:  # no future can carry it: whoever waits would wait forever
        raise RuntimeError("the step raised StopIteration") from error
