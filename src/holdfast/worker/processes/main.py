"""Program of the processes below a supervisor: fork server, worker and job process.

The supervisor starts a fork server, which loads the application once and forks worker processes on request. Each
worker forks its own fork server for job processes before it has threads or an event loop. If forking is unsafe, the
supervisor and the worker execute this program again for each process.
"""

import asyncio
import functools
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn, Protocol

from holdfast import tasks
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.model.outcome import Interrupted, Outcome
from holdfast.model.time import in_seconds
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import StepStore, WorkerBackend
from holdfast.worker.processes import forkserver, sentinel
from holdfast.worker.processes.process_control import die_with_parent, exit_now, name_process
from holdfast.worker.processes.protocol import (
    CannotFork,
    ForkServerReady,
    FromJob,
    HandlerFinished,
    HandlerLogged,
    HandlerStarted,
    RunJob,
    StartFailed,
    StopHandler,
    encode_line,
    read_to_job,
)
from holdfast.worker.processes.shared_state import SharedState, record_start
from holdfast.worker.processes.worker_process import WorkerOptions, WorkerProcess
from holdfast.worker.running.job_process import MAX_LINE_BYTES
from holdfast.worker.running.runner import Runner

_LOG = logging.getLogger("holdfast")


class Application(Protocol):
    """Application whose handlers the processes run."""

    @property
    def url(self) -> str:
        """Return the URL of the database or of the service node."""

    @property
    def registry(self) -> Registry:
        """Return the handlers."""


class LazyBackend(StepStore, Protocol):
    """Backend that connects on first use."""

    async def open(self) -> WorkerBackend:
        """Return the connected backend; connect if there is no connection yet."""


class Runtime(Protocol):
    """Concrete parts that the program needs and this package must not import."""

    max_slots: int
    """Number of entries in the shared state: the largest number of slots of a worker."""

    def load(self) -> Application:
        """Import the application.

        Raises:
            Misconfigured: The application cannot be imported or has no jobs.
        """

    def preload(self, app: Application) -> None:
        """Import all modules that a worker needs, so that a forked process imports nothing."""

    def prepare(self, app: Application) -> LazyBackend:
        """Add the built-in handlers to the registry; return the backend, not yet connected."""

    def worker_options(self, app: Application) -> WorkerOptions:
        """Return the options of a worker process.

        Call `prepare` first, because built-in handlers have queues too.
        """

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Create the event loop of a process."""

    def tune_garbage_collector(self) -> None:
        """Make garbage collections rare; called when everything that lives long is allocated."""


class WorkerProgram:
    """The roles of the program. Each method runs one role and ends by exiting the process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def run_forkserver(self, channel: socket.socket) -> NoReturn:
        """Load the application and fork a worker process for each request that arrives on `channel`."""
        _run_and_exit(channel, lambda: self._forkserver(channel))

    def run_worker(self, channel: socket.socket, shared_state: int) -> NoReturn:
        """Load the application and run its jobs, controlled by the supervisor over `channel`."""
        _run_and_exit(channel, lambda: self._worker(None, channel, shared_state))

    def run_job(self, channel: socket.socket, shared_state: int) -> NoReturn:
        """Load the application and run the jobs that the worker at the other end of `channel` sends."""
        _run_and_exit(channel, lambda: self._job(self._runtime.load(), channel, shared_state))

    def _forkserver(self, channel: socket.socket) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        inherited = forkserver.open_descriptors()
        app = self._load()
        if hazard := forkserver.fork_hazard(inherited):
            channel.send(encode_line(CannotFork(hazard)))
            return 0
        channel.send(encode_line(ForkServerReady()))
        descriptor, shared_state = forkserver.serve(channel)  # returns only in a forked process
        own_channel = socket.socket(fileno=descriptor)
        return _run_and_exit(own_channel, lambda: self._worker(app, own_channel, shared_state))

    def _worker(self, app: Application | None, channel: socket.socket, descriptor: int) -> int:
        shared_state = SharedState(descriptor, self._runtime.max_slots)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        name_process("hf-worker")
        sentinel.set_up(shared_state)
        inherited = forkserver.open_descriptors()
        app = app or self._load()
        job_forkserver = None
        if not forkserver.fork_hazard(inherited):  # fork now: later there are threads, connections and an event loop
            job_forkserver = self._fork_job_forkserver(app, channel, shared_state)
        return self._run_loop(self._work(app, channel, shared_state, job_forkserver))

    def _fork_job_forkserver(
        self, app: Application, channel: socket.socket, shared_state: SharedState
    ) -> forkserver.ForkServer:
        """Fork this worker's own fork server for job processes; it ends with the worker."""
        ours, theirs = socket.socketpair(*forkserver.SOCKET_TYPE)
        worker = os.getpid()
        if not os.fork():
            die_with_parent()
            for end in (ours, channel, shared_state):
                end.close()
            if os.getppid() != worker:  # the worker died before the request to the kernel took effect
                exit_now(0)
            descriptor, shared = forkserver.serve(theirs)  # returns only in a forked process
            job_channel = socket.socket(fileno=descriptor)
            _run_and_exit(job_channel, lambda: self._job(app, job_channel, shared))
        theirs.close()
        return forkserver.ForkServer(ours)

    def _job(self, app: Application, channel: socket.socket, shared_state: int) -> int:
        name_process("hf-job")
        return self._run_loop(self._run_jobs(app, channel, shared_state))

    def _load(self) -> Application:
        app = self._runtime.load()
        self._runtime.preload(app)
        return app

    def _run_loop(self, main: Coroutine[Any, Any, int]) -> int:
        """Run the coroutine and leave the loop open.

        Closing the loop would wait for its tasks, and a handler may never end.
        """
        loop = self._runtime.new_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)

    async def _work(
        self,
        app: Application,
        channel: socket.socket,
        shared_state: SharedState,
        job_forkserver: forkserver.ForkServer | None,
    ) -> int:
        backend = self._runtime.prepare(app)
        options = self._runtime.worker_options(app)
        if sum(options.queues.values()) > shared_state.entries:
            raise Misconfigured(
                f"--queues asks for more than {shared_state.entries} slots: start more processes instead"
            )
        process = WorkerProcess(
            app.url,
            app.registry,
            options,
            shared_state=shared_state,
            connect=backend.open,
            warn=_warn_blocked,
            forkserver=job_forkserver,
        )
        self._runtime.tune_garbage_collector()
        return await process.run(channel)

    async def _run_jobs(self, app: Application, channel: socket.socket, shared_state: int) -> int:
        """Run the jobs that the worker sends, even several at a time, until it closes the channel."""
        reader, _writer = await asyncio.open_connection(sock=channel, limit=MAX_LINE_BYTES)
        send = JobChannel(channel)
        backend = self._runtime.prepare(app)
        runner = Runner(app.registry, backend, threads=ThreadPoolExecutor(1))
        handlers: dict[int, asyncio.Task[Outcome]] = {}

        def finished(number: int, handler: "asyncio.Task[Outcome]") -> None:
            del handlers[number]
            send(HandlerFinished(number, Interrupted() if handler.cancelled() else handler.result()))

        while text := await reader.readline():
            match read_to_job(text):
                case StopHandler(number):
                    if number in handlers:
                        handlers[number].cancel()
                case RunJob(number) as request:
                    # The start is recorded before any code of the handler runs.
                    handler = _start_handler(request, runner, send, shared_state)
                    handlers[number] = handler
                    handler.add_done_callback(functools.partial(finished, number))
        return 0


class JobChannel:
    """Sends messages of a job process to its worker, from any thread.

    A message is handed to the kernel before the call returns, so that it arrives even if the process dies next.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def __call__(self, message: FromJob) -> None:
        """Send a message; block while the socket's buffer is full."""
        unsent = memoryview(encode_line(message))
        with self._lock, suppress(OSError):  # if the worker is gone, the kernel kills this process
            while unsent:
                try:
                    unsent = unsent[self._channel.send(unsent) :]
                except BlockingIOError:
                    writable = select.poll()
                    writable.register(self._channel, select.POLLOUT)
                    writable.poll()


def _start_handler(request: RunJob, runner: Runner, send: JobChannel, shared_state: int) -> "asyncio.Task[Outcome]":
    """Record the start of a handler in a job process, report it and start the handler."""
    job = request.job
    call = runner.call(job)
    if call is None:
        raise Misconfigured(f"there is no handler for {job.type!r}")
    timeout = call.timeout if job.timeout is None else job.timeout
    context = runner.context(
        job,
        call,
        None if timeout is None else time.monotonic() + in_seconds(timeout),
        AttemptLogs(lambda logged: send(HandlerLogged(request.run, logged))),
    )
    if request.entry is not None:
        record_start(shared_state, request.entry, job.id, job.fence)
    send(HandlerStarted(request.run))
    return tasks.start(runner.run(job, call, context), name=f"holdfast job {job.id}", awaited=True)


def _run_and_exit(channel: socket.socket, role: Callable[[], int]) -> NoReturn:
    """Run a role, report a failed start to the other end of the channel, and exit the process."""
    try:
        code = role()
    except HoldfastError as error:
        with suppress(OSError):
            channel.send(encode_line(StartFailed(str(error))))
        code = 2
    except SystemExit as error:  # raised by a callback that a handler left in the event loop
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - the outermost frame: log it and exit
        _LOG.exception("worker program failed")
        code = 1
    exit_now(code)  # threads that still run must not keep alive a process without an event loop


def _warn_blocked(handler: str, blocked: float) -> None:
    _LOG.warning(
        "handler %r has blocked the event loop of process %d for %.1f s: make it 'def' or isolation='process'",
        handler, os.getpid(), blocked,
    )  # fmt: skip
