"""Start and stop asyncio tasks that outlive the function that starts them.

Inside one function use `asyncio.TaskGroup`. These helpers are for tasks that an object owns: `start` keeps a strong
reference (the event loop holds only a weak one, so a bare `create_task` can be garbage collected while it runs) and
logs a failure at once instead of when the task object is collected; `stop` cancels and waits.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_LOG = logging.getLogger("holdfast.tasks")

_T = TypeVar("_T")

_running: set[asyncio.Task[Any]] = set()

_THREADS = ThreadPoolExecutor(1, thread_name_prefix="holdfast-call")
"""A single thread, because it is for calls that use the CPU and much memory."""


def start(coroutine: Coroutine[Any, Any, _T], *, name: str, awaited: bool = False) -> asyncio.Task[_T]:
    """Start a task and keep it alive until it ends.

    Args:
        coroutine: Work of the task.
        name: Name for logs and debuggers, such as "holdfast rollups".
        awaited: The owner awaits the task and handles its exception, so a failure is not logged here.
    """
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _running.add(task)
    task.add_done_callback(_running.discard)
    if not awaited:
        task.add_done_callback(_log_failure)
    return task


async def stop(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel the tasks and wait until all have ended; ignore their results and exceptions."""
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("task %r failed: %s", task.get_name(), error, exc_info=error)


async def call_in_thread(function: Callable[[], _T]) -> _T:
    """Call a function in a thread, one at a time; return its result or raise its exception.

    Unlike with `asyncio.to_thread`, both are freed without the garbage collector: there, a future holds them whose
    callbacks refer to the future.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    pending, results = [function], list[_T]()  # lists, because the thread may hold `call` a moment longer
    del function
    errors: list[Exception] = []

    def call() -> None:
        try:
            results.append(pending.pop()())
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            errors.append(error)
        loop.call_soon_threadsafe(_finish, done)

    _THREADS.submit(call)
    await done
    if errors:
        raise errors.pop()
    return results.pop()


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():  # the caller may have been cancelled
        done.set_result(None)
