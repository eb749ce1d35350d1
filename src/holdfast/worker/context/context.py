"""Context of a running job for its handler: steps, transactions, progress, cancellation."""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar, overload

from holdfast.errors import Conflict, HoldfastError, Invalid, LeaseLost, StepOutcomeUnknown
from holdfast.failpoints import reach
from holdfast.model import job
from holdfast.model.bounds import MAX_KEY_LENGTH
from holdfast.model.decoded_job import Job, decode_job
from holdfast.model.ids import WorkerId
from holdfast.model.job import HeldJob
from holdfast.model.step import Step, StepState
from holdfast.policy.lifecycle import actions
from holdfast.policy.steps import StepDecision, decide_step
from holdfast.worker.context.attempt_logs import AttemptLogs, format_line, format_message, render_fields
from holdfast.worker.context.progress import ProgressReporter
from holdfast.worker.context.transaction import SyncTransaction, Transaction
from holdfast.worker.handlers import results
from holdfast.worker.ports import StepStore

T = TypeVar("T")

_LOG = logging.getLogger("holdfast.job")


class Context:
    """The running job, passed to an `async def` handler with a parameter of type `Context`.

    Steps may run concurrently; a transaction must not overlap with a step or another transaction.

    Attributes:
        deadline: Time at which the attempt times out, by `time.monotonic()`; None if it never does.

    Example:
        ```python
        @app.job
        async def charge(ctx: Context, order_id: int) -> None:
            receipt = await ctx.step("charge", pay, order_id, key=ctx.idempotency_key("charge"))
            async with ctx.transaction() as tx:
                await tx.execute("UPDATE orders SET receipt = $1 WHERE id = $2", receipt, order_id)
            await ctx.progress(1.0, "paid")
        ```
    """

    def __init__(
        self,
        stored: job.Job,
        step_store: StepStore,
        *,
        deadline: float | None = None,
        attempt_logs: AttemptLogs | None = None,
    ) -> None:
        self.stored = stored
        """The job as it is stored, for the worker and the built-in handlers."""
        self.deadline = deadline
        self.attempt_logs = AttemptLogs() if attempt_logs is None else attempt_logs
        """Log lines of the handler, for the worker."""
        self._step_store = step_store
        self._held = HeldJob(stored.id, stored.fence, stored.worker or WorkerId(0))
        self._stop_reason: str | None = None
        self._used_keys: set[str] = set()
        self._running: set[str] = set()
        self._transaction_count = 0
        self._open_transaction: str | None = None
        self._steps_lock = asyncio.Lock()
        # No attempt before the first claim (fence 1) can have recorded steps, so there is nothing to read.
        self._steps: dict[str, Step] | None = {} if stored.fence == 1 else None
        self._progress = ProgressReporter(self._save_progress)

    @cached_property
    def job(self) -> Job:
        """The job as it was claimed: `Job`, as `handle.job()` returns it."""
        # Decoded on first use, because most handlers never look at it.
        return decode_job(self.stored, actions(self.stored.status))

    @property
    def attempt(self) -> int:
        """Number of this attempt, starting at 1."""
        return self.stored.attempts

    @property
    def fence(self) -> int:
        """Fencing token, which rises with every claim; lets other systems refuse an old attempt."""
        return self.stored.fence

    @property
    def cancelled(self) -> bool:
        """True if the job was cancelled, timed out or is held by another worker: stop now."""
        return self._stop_reason is not None

    def raise_if_cancelled(self) -> None:
        """Check whether the handler must stop; call it between steps of a long computation.

        Raises:
            LeaseLost: The job was cancelled, timed out, or is held by another worker.

        Example:
            ```python
            for row in rows:
                ctx.raise_if_cancelled()
                total += await compute(row)
            ```
        """
        if self._stop_reason is not None:
            raise LeaseLost(f"job {self.stored.id}: {self._stop_reason}; this attempt can no longer record anything")

    def cancel(self, reason: str) -> None:
        """For the worker: mark the handler as stopped, so that it can record nothing from now on."""
        if self._stop_reason is None:
            self._stop_reason = reason

    def time_left(self) -> float | None:
        """Return the seconds until the attempt times out, or None if it never does."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def idempotency_key(self, step: str) -> str:
        """Return an idempotency key for an external service; it is the same in every attempt.

        Args:
            step: Name of the operation, usually the key of the step.

        Example:
            `await ctx.step("charge", pay, order_id, key=ctx.idempotency_key("charge"))`
        """
        return f"{self.stored.id}:{step}"

    def log(self, message: str, *, level: int = logging.INFO, **fields: object) -> None:
        """Log a message to the logger `holdfast.job` and store it with the attempt.

        The log record has the job's id, type and attempt. Values that look like secrets are redacted. The attempt keeps
        its newest lines.

        Args:
            message: Text of the message.
            level: Level of the `logging` module.
            **fields: Structured values to log with the message.

        Example:
            `ctx.log("invoice sent", invoice=invoice.id)`
        """
        job_fields = {"job_id": str(self.stored.id), "job_type": self.stored.type, "attempt": self.attempt}
        rendered, text = render_fields(fields), format_message(message)
        _LOG.log(level, "%s", text, extra={**job_fields, "fields": rendered})
        self.attempt_logs.add(format_line(level, text, rendered))

    @overload
    async def step(
        self, key: str, fn: Callable[..., Awaitable[T]], /, *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, key: str, fn: Callable[..., T], /, *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> T: ...
    async def step(
        self, key: str, fn: Callable[..., Any], /, *args: Any, at_most_once: bool = False, **kwargs: Any
    ) -> Any:
        """Call `fn` and record its result, which later attempts return without calling `fn`.

        If the worker dies between the call and the record, the next attempt calls `fn` again, so pass
        `idempotency_key(key)` to external services. A plain function is called in a thread. The result is always
        decoded from JSON, in the first attempt too, so that all attempts get the same value.

        Args:
            key: Name of the step, unique within the job.
            fn: Function to call, plain or `async`.
            *args: Positional arguments of `fn`.
            at_most_once: Never call `fn` again after an attempt that died during the call.
            **kwargs: Keyword arguments of `fn`.

        Raises:
            StepOutcomeUnknown: With `at_most_once`: an earlier attempt called `fn` and recorded no result.
            NonDeterministic: An earlier attempt used the key for a transaction.
            Invalid: The key is not valid or was used in this attempt, or JSON cannot represent the result. If `fn` is
                annotated with a return type that JSON cannot represent, it is not called.
            Conflict: A transaction of this context is open.
            LeaseLost: The worker no longer holds the job.

        Example:
            `receipt = await ctx.step("charge", pay, order_id, key=ctx.idempotency_key("charge"))`
        """
        recorded = await self.begin_step(key, fn, at_most_once=at_most_once)
        try:
            if recorded is None:
                result = fn(*args, **kwargs) if _is_async(fn) else await asyncio.to_thread(_call, fn, args, kwargs)
                recorded = await self.end_step(key, await result if inspect.isawaitable(result) else result)
        finally:
            self._running.discard(key)
        return results.decode(key, recorded.result, fn)

    @asynccontextmanager
    async def transaction(self, key: str | None = None) -> AsyncIterator[Transaction]:
        """Open a transaction in the database of the job queue; its writes take effect exactly once.

        The statements, a record of their results and the check that the worker still holds the job commit together. If
        an earlier attempt committed the transaction, its statements are not executed and return their recorded results.

        Args:
            key: Name of the transaction, unique within the job; by default `transaction-1`, `transaction-2`, … in order
                of use. Give a key to each transaction that an attempt may skip.

        Raises:
            NonDeterministic: An earlier attempt committed other statements under this key.
            Conflict: A step or another transaction of this context is running.
            Invalid: The key is not valid or was used in this attempt.
            LeaseLost: The worker no longer holds the job; nothing was written.

        Example:
            ```python
            async with ctx.transaction() as tx:
                await tx.execute("UPDATE accounts SET balance = balance - $1 WHERE id = $2", amount, account)
            ```
        """
        self._require_no_transaction("open a transaction")
        if self._running:
            raise Conflict(f"cannot open a transaction while step {min(self._running)!r} runs: wait for the step first")
        if key is None:
            self._transaction_count += 1
            key = f"transaction-{self._transaction_count}"
        self._reserve_key(key)
        self._open_transaction = key
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
            self._open_transaction = None

    async def progress(self, fraction: float, note: str = "") -> None:
        """Report the progress of the job.

        The progress is stored at most once a second; the last value is always stored.

        Args:
            fraction: Part of the work that is done, from 0 to 1.
            note: Short text for the dashboard.

        Raises:
            Invalid: The fraction is not between 0 and 1.
            Conflict: A transaction of this context is open.
            LeaseLost: The worker no longer holds the job.

        Example:
            `await ctx.progress(done / total, f"{done} of {total} rows")`
        """
        self._require_no_transaction("report progress")
        await self._progress.report(fraction, note)

    async def finish(self) -> None:
        """For the worker: write unwritten progress before the attempt is settled; ignore errors."""
        with suppress(HoldfastError):
            await self._progress.flush()

    async def begin_step(self, key: str, fn: Callable[..., Any], *, at_most_once: bool) -> Step | None:
        """Start a step: return its record, or None if the caller must run it and call `end_step`."""
        self._require_no_transaction(f"run step {key!r}")
        self._reserve_key(key)
        recorded = (await self._recorded()).get(key)
        match decide_step(recorded, at_most_once=at_most_once):
            case StepDecision.REUSE:
                return recorded
            case StepDecision.UNKNOWN:
                raise StepOutcomeUnknown(
                    f"an earlier attempt started step {key!r}, which may or may not have taken effect; it runs at most "
                    "once, so it is not repeated: catch StepOutcomeUnknown, check whether it took effect, and continue "
                    "without it"
                )
            case StepDecision.RUN:
                results.check_return_type(key, fn)
                self._running.add(key)
        if at_most_once:
            try:
                await self._record(Step(key, StepState.STARTED))
            except BaseException:
                self._running.discard(key)
                raise
        return None

    async def end_step(self, key: str, value: Any) -> Step:
        """Finish a step: record its result."""
        done = Step(key, StepState.DONE, results.encode(key, value))
        await self._record(done)
        return done

    async def _recorded(self) -> dict[str, Step]:
        async with self._steps_lock:
            if self._steps is None:
                self._steps = {step.key: step for step in await self._step_store.steps_of(self._held)}
            return self._steps

    async def _record(self, step: Step) -> None:
        reach("before_step_commit")
        held = await self._step_store.record_step(self._held, step)
        reach("after_step_commit")
        self._require_held(held)

    async def _save_progress(self, progress: bytes) -> None:
        self._require_held(await self._step_store.save_progress(self._held, progress))

    def _require_held(self, held: bool) -> None:  # noqa: FBT001 - the result of a store method
        if not held:
            self.cancel("this worker no longer holds the job")
        self.raise_if_cancelled()

    def _require_no_transaction(self, action: str) -> None:
        self.raise_if_cancelled()
        if self._open_transaction is not None:
            raise Conflict(
                f"cannot {action} inside transaction {self._open_transaction!r}: it would not be part of the "
                "transaction and could deadlock with it; do it before or after the transaction"
            )

    def _reserve_key(self, key: str) -> None:
        if type(key) is not str or not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
            raise Invalid(
                f"{key!r} is not a valid step key: use 1 to {MAX_KEY_LENGTH} printable characters", pointer="/step"
            )
        if key in self._used_keys:
            raise Invalid(
                f"step {key!r} was already used in this attempt: give each step its own key",
                pointer="/step",
            )
        self._used_keys.add(key)


class SyncContext:
    """The running job, passed to a plain `def` handler with a parameter of type `SyncContext`.

    Such a handler runs in a thread. The methods behave like those of `Context` and block the thread.

    Attributes:
        attempt: Number of this attempt, starting at 1.
        fence: Fencing token, which rises with every claim; lets other systems refuse an old attempt.
        deadline: Time at which the attempt times out, by `time.monotonic()`; None if it never does.

    Example:
        ```python
        @app.job
        def resize(ctx: SyncContext, path: str) -> None:
            for number, tile in enumerate(tiles(path)):
                ctx.raise_if_cancelled()
                ctx.step(f"tile-{number}", resize_tile, tile)
        ```
    """

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self.stored = context.stored
        self.attempt = context.attempt
        self.fence = context.fence
        self.deadline = context.deadline
        self.raise_if_cancelled = context.raise_if_cancelled
        self.cancel = context.cancel
        self.time_left = context.time_left
        self.idempotency_key = context.idempotency_key
        self.log = context.log
        self.attempt_logs = context.attempt_logs
        self.finish = context.finish

    @property
    def job(self) -> Job:
        """The job as it was claimed: `Job`, as `handle.job()` returns it."""
        return self._context.job

    @property
    def cancelled(self) -> bool:
        """True if the job was cancelled, timed out or is held by another worker: stop now."""
        return self._context.cancelled

    def step(self, key: str, fn: Callable[..., T], /, *args: Any, at_most_once: bool = False, **kwargs: Any) -> T:
        """Call `fn` in this thread and record its result, which later attempts return.

        Args:
            key: Name of the step, unique within the job.
            fn: Function to call.
            *args: Positional arguments of `fn`.
            at_most_once: Never call `fn` again after an attempt that died during the call.
            **kwargs: Keyword arguments of `fn`.

        Raises:
            StepOutcomeUnknown: With `at_most_once`: an earlier attempt called `fn` and recorded no result.
            LeaseLost: The worker no longer holds the job. `Context.step` lists the other errors.

        Example:
            `receipt = ctx.step("charge", pay, order_id, key=ctx.idempotency_key("charge"))`
        """
        recorded = self._wait(self._context.begin_step(key, fn, at_most_once=at_most_once))
        try:
            if recorded is None:
                recorded = self._wait(self._context.end_step(key, fn(*args, **kwargs)))
        finally:
            self._loop.call_soon_threadsafe(self._context._running.discard, key)  # noqa: SLF001 - the two classes belong together
        value: T = results.decode(key, recorded.result, fn)
        return value

    @contextmanager
    def transaction(self, key: str | None = None) -> Iterator[SyncTransaction]:
        """Open a transaction in the database of the job queue; its writes take effect exactly once.

        Args:
            key: Name of the transaction, unique within the job; by default `transaction-1`, `transaction-2`, …

        Raises:
            LeaseLost: The worker no longer holds the job; nothing was written. `Context.transaction` lists the other
                errors.

        Example:
            ```python
            with ctx.transaction() as tx:
                tx.execute("UPDATE accounts SET balance = balance - $1 WHERE id = $2", amount, account)
            ```
        """
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
        """Report the progress of the job; it is stored at most once a second.

        Args:
            fraction: Part of the work that is done, from 0 to 1.
            note: Short text for the dashboard.

        Raises:
            Invalid: The fraction is not between 0 and 1.
            LeaseLost: The worker no longer holds the job.
        """
        self._wait(self._context.progress(fraction, note))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(fn)) or inspect.iscoroutinefunction(type(fn).__call__)


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return fn(*args, **kwargs)
    except StopIteration as error:  # a future cannot hold it, so the caller would wait forever
        raise RuntimeError("the step raised StopIteration") from error
