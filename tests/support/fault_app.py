"""Application of the fault tests, whose jobs do what their payload says.

`sink` runs on the event loop, `sink_thread` in a thread, `sink_process` in its own process. Each records its start and
its end in the ledger that FAULT_APP_LEDGER names.
"""

import asyncio
import ctypes
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from holdfast import Context, Discard, Holdfast, Retry, Snooze, SyncContext
from holdfast.store.mysql import session as mysql_session
from holdfast.store.postgres import session as postgres_session
from tests.support.ledger import Ledger

app = Holdfast()

if _idle := os.environ.get("FAULT_APP_IDLE_TIMEOUT_S"):
    postgres_session.IDLE_TIMEOUT = f"{_idle}s"
    mysql_session._SET_IDLE_TIMEOUT = f"SET SESSION wait_timeout = {_idle}"

_TASKS: list[asyncio.Task[None]] = []
_LIBC = ctypes.PyDLL(None)  # calls through PyDLL keep the interpreter's lock


def _note(event: str, ctx: Context | SyncContext, key: str) -> None:
    if path := os.environ.get("FAULT_APP_LEDGER"):
        Ledger(Path(path)).write(event, job=ctx.job.id, key=key, attempt=ctx.attempt, fence=ctx.fence, pid=os.getpid())


def _may_continue(until: float, key: str, *, held: bool) -> bool:
    """Tell if a handler has slept until the deadline, or, if it is held, until the test releases it."""
    return time.monotonic() >= until or (held and Ledger(Path(os.environ["FAULT_APP_LEDGER"])).count("go", key) > 0)


def _do_at_once(ctx: Context | SyncContext, action: str, amount: float) -> None:
    """Run an action that blocks, fails or ends the process."""
    if action:
        ACTIONS[action](ctx, amount)


def _fail_times(ctx: Context | SyncContext, amount: float) -> None:
    if ctx.attempt <= amount:
        raise RuntimeError(f"attempt {ctx.attempt} of {amount:g} that fail")


def _interrupt(_ctx: Context | SyncContext, _amount: float) -> None:
    raise KeyboardInterrupt


def _base(_ctx: Context | SyncContext, _amount: float) -> None:
    raise BaseException("not an ordinary exception")  # noqa: TRY002 - that is the point


def _allocate(_ctx: Context | SyncContext, amount: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    bytearray(int(amount) << 20)


def _spin(_ctx: Context | SyncContext, amount: float) -> None:
    until = time.monotonic() + amount
    while time.monotonic() < until:
        pass


def _spawn(ctx: Context | SyncContext, amount: float) -> None:
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({amount})"])
    _note(f"spawned {child.pid}", ctx, "")


def _fork_and_exit(ctx: Context | SyncContext, amount: float) -> None:
    """Leave a forked child behind, and exit."""
    if (child := os.fork()) == 0:
        time.sleep(amount)
        os._exit(0)
    _note(f"spawned {child}", ctx, "")
    os._exit(7)


def _cancelled(_ctx: Context | SyncContext, _amount: float) -> None:
    raise asyncio.CancelledError("by the handler itself")


def _exit_in_task(_ctx: Context | SyncContext, amount: float) -> None:
    """Raise SystemExit in a task, where the caller of the handler cannot catch it."""

    async def leave() -> None:
        sys.exit(int(amount))

    _TASKS.append(asyncio.get_running_loop().create_task(leave()))


def _snooze(ctx: Context | SyncContext, amount: float) -> None:
    if ctx.stored.releases < amount:
        raise Snooze(0.05)


def _retry_in(ctx: Context | SyncContext, amount: float) -> None:
    if ctx.attempt == 1:
        raise Retry(in_=amount)


def _discard(_ctx: Context | SyncContext, _amount: float) -> None:
    raise Discard("given up")


ACTIONS: dict[str, Callable[[Context | SyncContext, float], object]] = {
    "fail_times": _fail_times,
    "exit": lambda _, code: os._exit(int(code)),
    "sys_exit": lambda _, code: sys.exit(int(code)),
    "interrupt": _interrupt,
    "base": _base,
    "segfault": lambda *_: ctypes.string_at(0),
    "abort": lambda *_: os.abort(),
    "kill": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
    "cancelled": _cancelled,
    "exit_in_task": _exit_in_task,
    "fork_and_exit": _fork_and_exit,
    "allocate": _allocate,
    "hold_gil": lambda _, seconds: _LIBC.usleep(int(seconds * 1e6)),
    "block": lambda _, seconds: time.sleep(seconds),
    "spin": _spin,
    "spawn": _spawn,
    "snooze": _snooze,
    "retry_in": _retry_in,
    "discard": _discard,
    "result": lambda *_: None,
}


@app.job
async def sink(
    key: str = "",
    action: str = "",
    amount: float = 0.0,
    sleep: float = 0.0,
    ignore_cancel: bool = False,
    *,
    held: bool = False,
    ctx: Context,
) -> str:
    """Run on the event loop."""
    _note("start", ctx, key)
    until = time.monotonic() + sleep
    while not _may_continue(until, key, held=held):
        try:
            await asyncio.sleep(0.05 if held else until - time.monotonic())
        except asyncio.CancelledError:
            _note("cancelled", ctx, key)
            if not ignore_cancel:
                raise
    if held and action:
        _note("acts", ctx, key)
    _do_at_once(ctx, action, amount)
    _note("end", ctx, key)
    return "x" * int(amount) if action == "result" else key


@app.job
def sink_thread(
    key: str = "",
    action: str = "",
    amount: float = 0.0,
    sleep: float = 0.0,
    ignore_cancel: bool = False,
    *,
    held: bool = False,
    ctx: SyncContext,
) -> str:
    """Run in a thread."""
    _note("start", ctx, key)
    until = time.monotonic() + sleep
    while not _may_continue(until, key, held=held):
        time.sleep(0.02)
        if ctx.cancelled and not ignore_cancel:
            _note("cancelled", ctx, key)
            ctx.raise_if_cancelled()
    if held and action:
        _note("acts", ctx, key)
    _do_at_once(ctx, action, amount)
    _note("end", ctx, key)
    return key


@app.job(isolation="process")
def sink_process(
    key: str = "",
    action: str = "",
    amount: float = 0.0,
    sleep: float = 0.0,
    ignore_cancel: bool = False,
    *,
    held: bool = False,
    ctx: SyncContext,
) -> str:
    """Run in a separate process."""
    if ignore_cancel:
        _LIBC.signal(int(signal.SIGTERM), 1)  # SIG_IGN; Python's own call is for main threads only
    _note("start", ctx, key)
    until = time.monotonic() + sleep
    while not _may_continue(until, key, held=held):
        time.sleep(0.02 if held else max(0.0, until - time.monotonic()))
    if held and action:
        _note("acts", ctx, key)
    _do_at_once(ctx, action, amount)
    _note("end", ctx, key)
    return key


@app.job(isolation="process")
def spawning(key: str = "", sleep: float = 0.0, *, ctx: SyncContext) -> str:
    """Run in a separate process, with a child that would outlive it."""
    _spawn(ctx, sleep)
    _note("start", ctx, key)
    time.sleep(sleep)
    return key


@app.job
async def stepping(key: str = "", *, ctx: Context) -> str:
    """Run one step, and record its effect and its result."""
    _note("start", ctx, key)

    async def effect() -> int:
        _note("effect", ctx, key)
        return ctx.attempt

    by = await ctx.step("once", effect)
    _note(f"step of attempt {by}", ctx, key)
    _note("end", ctx, key)
    return key


@app.job
async def writing(key: str = "", *, ctx: Context) -> str:
    """Run steps until the test releases the job."""
    _note("start", ctx, key)
    number = 0
    while not _may_continue(math.inf, key, held=True):
        number += 1
        await ctx.step(f"{ctx.attempt}-{number}", asyncio.sleep, 0.02)
    _note("end", ctx, key)
    return key


@app.job
async def effect(key: str, sql: str, args: list[str], sleep: float = 0.0, *, ctx: Context) -> str:
    """Write a row in the engine's database exactly once, even if the worker dies."""
    _note("start", ctx, key)
    try:
        async with ctx.transaction() as tx:
            await tx.execute(sql, *args)
        await asyncio.sleep(sleep)
    except BaseException:
        _note("stopped", ctx, key)
        raise
    _note("end", ctx, key)
    return key


@app.job
async def transaction(key: str, *, ctx: Context) -> str:
    """Begin a transaction in the engine's database, which locks the job, and stay in it until the test says so."""
    _note("start", ctx, key)
    async with ctx.transaction() as tx:
        await tx.execute("SELECT 1")
        _note("in transaction", ctx, key)
        while not _may_continue(math.inf, key, held=True):
            await asyncio.sleep(0.05)
    return key
