"""Application whose jobs log, report progress and die, for tests of attempt records.

DIARY_LOADING makes it unsafe to fork and slow to load in a job process, for that many seconds.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from holdfast import CONTEXT, Context, Holdfast, SyncContext
from holdfast.errors import StepOutcomeUnknown
from tests.support.ledger import Ledger

app = Holdfast()

if loading := float(os.environ.get("DIARY_LOADING", "0")):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    if sys.argv[1:2] == ["job"]:
        time.sleep(loading)


def _ledger() -> Ledger:
    return Ledger(Path(os.environ["FAULT_APP_LEDGER"]))


def _note(event: str, ctx: Context | SyncContext, key: str) -> None:
    _ledger().write(event, job=ctx.job.id, key=key, attempt=ctx.attempt, fence=ctx.fence, pid=os.getpid())


def _write(ctx: Context | SyncContext, key: str, end: str) -> None:
    ctx.log(f"attempt {ctx.attempt} of {key}", password="hunter2", size=7)
    if end == "exit":
        os._exit(5)
    if end == "fail" and ctx.attempt == 1:
        raise RuntimeError("the first fails")


@app.job
async def on_loop(key: str, end: str = "", *, ctx: Context = CONTEXT) -> None:
    """Log a line."""
    await ctx.progress(0.1)
    await ctx.progress(ctx.attempt / 10, "so far")
    _write(ctx, key, end)
    if end == "hang":
        await asyncio.Event().wait()


@app.job
def in_thread(key: str, end: str = "", *, ctx: SyncContext = CONTEXT) -> None:
    """Log a line in a thread."""
    _write(ctx, key, end)


@app.job(isolation="process")
def in_process(key: str, end: str = "", *, ctx: SyncContext = CONTEXT) -> None:
    """Log a line in a job process."""
    _write(ctx, key, end)
    if end == "hang":
        time.sleep(600)


@app.job
async def silent(key: str) -> str:
    """Log nothing."""
    return key


@app.job
async def at_most_once(key: str, *, ctx: Context = CONTEXT) -> None:
    """Die during an at-most-once step."""
    _note("start", ctx, key)
    await ctx.step("pay", lambda: os._exit(5), at_most_once=True)


@app.job
async def at_most_once_and_knows(key: str, *, ctx: Context = CONTEXT) -> str:
    """Die during an at-most-once step; continue without it in the next attempt."""
    _note("start", ctx, key)
    try:
        await ctx.step("pay", lambda: os._exit(5), at_most_once=True)
    except StepOutcomeUnknown:
        return "asked the bank"
    return "paid"


@app.job
async def waits(key: str, *, ctx: Context = CONTEXT) -> str:
    """Wait for a "go" in the ledger."""
    _note("start", ctx, key)
    while not _ledger().count("go"):
        await asyncio.sleep(0.02)
    return key


@app.job
async def waits_for_file(key: str, path: str, *, stubborn: bool = False, ctx: Context = CONTEXT) -> str:
    """Wait until the file exists; a stubborn handler even if it is cancelled."""
    _note("start", ctx, key)
    while not Path(path).exists():  # noqa: ASYNC240 - a quick call
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            _note("stopped", ctx, key)
            if not stubborn:
                raise
    return key


@app.job
async def poison(key: str, beside: int, *, ctx: Context = CONTEXT) -> None:
    """Kill the process when this many other jobs have started."""
    while len(_ledger().per_key("start")) < beside:
        await asyncio.sleep(0.02)
    _note("poison", ctx, key)
    os._exit(5)


@app.job
async def spawns(key: str, *, ctx: Context = CONTEXT) -> None:
    """Start a program that would outlive the handler."""
    await asyncio.to_thread(_spawn, ctx, key)
    await asyncio.Event().wait()


@app.job(isolation="process")
def spawns_apart(key: str, *, ctx: SyncContext = CONTEXT) -> None:
    """Start such a program from a job process."""
    _spawn(ctx, key)
    time.sleep(600)


def _spawn(ctx: Context | SyncContext, key: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _note(f"spawned {child.pid}", ctx, key)
