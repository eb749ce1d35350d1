"""The programs that `holdfast work` starts: a worker process, and below it processes for single jobs."""

import argparse
import asyncio
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.builtin.register import fill
from holdfast.builtin.webhooks.ports import Shared
from holdfast.cli import event_loop
from holdfast.cli.loader import MOST_SLOTS, application, slots_of
from holdfast.compose import open_jobs, preload
from holdfast.config import load
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.model.breaker import DeliveryPermit
from holdfast.model.job import HeldJob, Job
from holdfast.model.step import Step
from holdfast.model.time import Duration, in_seconds
from holdfast.telemetry import logs
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.ports import TransactionSession
from holdfast.worker.processes import forkserver, sentinel
from holdfast.worker.processes.child import Application, Child, Options
from holdfast.worker.processes.process_control import die_with_parent, exit_now, name_process
from holdfast.worker.processes.protocol import (
    CannotFork,
    ForkServerReady,
    FromJob,
    HandlerFinished,
    HandlerLogged,
    HandlerStarted,
    StartFailed,
    line,
    read_to_job,
)
from holdfast.worker.processes.shared_state import SharedState, note
from holdfast.worker.running.job_process import MAX_LINE_BYTES
from holdfast.worker.running.runner import Runner

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.sdk.remote import Remote

_LOG = logging.getLogger("holdfast")


def main() -> None:
    """`python -m holdfast.cli.child forkserver|worker|job APP [--queues Q] CHANNEL [BOARD]`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("forkserver", "worker", "job"))
    parser.add_argument("app")
    parser.add_argument("--queues", default="")
    parser.add_argument("channel", type=int)
    parser.add_argument("board", type=int, nargs="?")
    args = parser.parse_args()
    logs.set_up(load().log_format)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches all; the supervisor decides
    channel = socket.socket(fileno=args.channel)
    match args.kind:
        case "job":
            _live(channel, lambda: _job(application(args.app), channel, args.shared_state))
        case "worker":
            _live(channel, lambda: _worker(args, None, channel, SharedState(args.shared_state, MOST_SLOTS)))
        case _:
            _live(channel, lambda: _forkserver(args, channel))


def _live(channel: socket.socket, life: Callable[[], int]) -> NoReturn:
    """Tell the other end what went wrong, if something did, and end."""
    try:
        code = life()
    except HoldfastError as error:
        with suppress(OSError):
            channel.send(line(StartFailed(str(error))))
        code = 2
    except SystemExit as error:  # raised in a call that a handler started
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is told and the process ends
        _LOG.exception("this process cannot go on")
        code = 1
    exit_now(code)  # threads that still run must not keep a process alive that has no loop any more


def _forkserver(args: argparse.Namespace, line_: socket.socket) -> int:
    """Have the application ready; in what is forked of it, be a worker."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inherited = forkserver.open_descriptors()
    app = _load(args.app)
    if reason := forkserver.fork_hazard(inherited):
        line_.send(line(CannotFork(reason)))
        return 0
    line_.send(line(ForkServerReady()))
    descriptor, shared_state = forkserver.serve(line_)
    channel = socket.socket(fileno=descriptor)
    _live(channel, lambda: _worker(args, app, channel, SharedState(shared_state, MOST_SLOTS)))


def _load(name: str) -> "Holdfast":
    """The application, and all that it takes to run it: what is forked of this has no need to import anything."""
    app = application(name)
    preload(app.url)
    event_loop.preload()
    return app


def _worker(args: argparse.Namespace, app: "Holdfast | None", channel: socket.socket, shared_state: SharedState) -> int:
    """Be a worker, with a nursery of its own for jobs that run alone: forked while there is nothing but the app."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    name_process("hf-worker")
    sentinel.set_up(shared_state)
    known = forkserver.open_descriptors()
    app = app or _load(args.app)
    own: forkserver.ForkServer | None = None
    if not forkserver.fork_hazard(known):
        ours, theirs = socket.socketpair(*forkserver.SOCKET_TYPE)
        worker = os.getpid()
        if not os.fork():
            die_with_parent()
            for end in (ours, channel, shared_state):
                end.close()
            if os.getppid() != worker:
                return 0
            descriptor, shared = forkserver.serve(theirs)
            line_ = socket.socket(fileno=descriptor)
            _live(line_, lambda: _job(app, line_, shared))
        theirs.close()
        own = forkserver.ForkServer(ours)
    return _drive(_work(args, app, channel, shared_state, own))


def _job(app: "Holdfast", channel: socket.socket, shared_state: int) -> int:
    name_process("hf-job")
    return _drive(_jobs(app, channel, shared_state))


def _drive(main: Coroutine[Any, Any, int]) -> int:
    """Run it and leave the loop as it is: whoever closes one waits for its tasks, and a handler may never end."""
    loop = event_loop.new_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(main)


async def _work(
    args: argparse.Namespace,
    app: "Holdfast",
    channel: socket.socket,
    shared_state: SharedState,
    own: forkserver.ForkServer | None,
) -> int:
    settings = load()
    engine = LazyEngine(lambda: open_jobs(settings, app.url))
    fill(app.registry, settings, engine)
    application = Application(app.url, app.registry, slots_of(args.queues, app.registry))
    options = Options(
        max_prefetch=settings.job_queue_size,
        poll=in_seconds(settings.poll_interval),
        fail_rate=settings.fail_rate,
        process_command=["-m", "holdfast.cli.child", "job", args.app],
    )
    if sum(application.queues.values()) > shared_state.entries:
        raise Misconfigured(f"--queues asks for more than {shared_state.entries} slots: start more processes instead")
    child = Child(application, options, shared_state=shared_state, connect=engine.open, warn=_warn, forkserver=own)
    event_loop.collect_seldom()
    return await child.run(channel)


def _warn(handler: str, blocked: float) -> None:
    _LOG.warning(
        "handler %r has blocked the event loop of process %d for %.1f s: make it 'def' or isolation='process'",
        handler, os.getpid(), blocked,
    )  # fmt: skip


class LazyEngine:
    """The way to jobs, connected when somebody first asks for something."""

    def __init__(self, connect: Callable[[], Awaitable["Engine | Remote"]]) -> None:
        self._connect = connect
        self._opening = asyncio.Lock()
        self._engine: Engine | Remote | None = None

    async def steps_of(self, held: HeldJob) -> Sequence[Step]:
        """See `holdfast.worker.ports.StepStore`."""
        return await (await self.open()).steps_of(held)

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """See `holdfast.worker.ports.StepStore`."""
        return await (await self.open()).record_step(held, step)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """See `holdfast.worker.ports.StepStore`."""
        return await (await self.open()).save_progress(held, progress)

    @asynccontextmanager
    async def session(self, held: HeldJob, key: str) -> AsyncIterator[TransactionSession]:
        """See `holdfast.worker.ports.StepStore`."""
        async with (await self.open()).session(held, key) as session:
            yield session

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """See `holdfast.builtin.webhooks.ports.Shared`."""
        shared = await self._deliveries()
        return await shared.before_delivery(job, destination, probe_for=probe_for, at=at, body=body)

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """See `holdfast.builtin.webhooks.ports.Shared`."""
        await (await self._deliveries()).after_delivery(job, destination, probe=probe, error=error)

    async def _deliveries(self) -> Shared:
        engine = await self.open()
        return engine.deliveries if isinstance(engine, Engine) else engine

    async def open(self) -> "Engine | Remote":
        """It, connected."""
        async with self._opening:
            if self._engine is None:
                self._engine = await self._connect()
        return self._engine


class JobChannel:
    """Tells the worker, from any thread. What was told is out: also if the process ends with the next instruction."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def __call__(self, message: FromJob) -> None:
        """Send it."""
        rest = memoryview(line(message))
        with self._lock, suppress(OSError):  # a worker that is gone takes this process with it
            while rest:
                try:
                    rest = rest[self._channel.send(rest) :]
                except BlockingIOError:
                    full = select.poll()
                    full.register(self._channel, select.POLLOUT)
                    full.poll()


async def _jobs(app: "Holdfast", channel: socket.socket, shared_state: int) -> int:
    """Run one job after the other, for the worker at the other end."""
    reader, _writer = await asyncio.open_connection(sock=channel, limit=MAX_LINE_BYTES)
    tell = JobChannel(channel)
    settings = load()
    engine = LazyEngine(lambda: open_jobs(settings, app.url))
    fill(app.registry, settings, engine)
    runner = Runner(app.registry, engine, threads=ThreadPoolExecutor(1))
    while text := await reader.readline():
        given = read_to_job(text)
        job = given.job
        call = runner.call(job)
        if call is None:
            raise Misconfigured(f"there is no handler for {job.type!r}")
        timeout = call.timeout if job.timeout is None else job.timeout
        context = runner.context(
            job,
            call,
            None if timeout is None else time.monotonic() + in_seconds(timeout),
            AttemptLogs(lambda line: tell(HandlerLogged(line))),
        )
        if given.entry is not None:  # before anything of the handler happens
            note(shared_state, given.entry, job.id, job.fence)
        tell(HandlerStarted())
        tell(HandlerFinished(await runner.run(job, call, context)))
    return 0


if __name__ == "__main__":
    main()
