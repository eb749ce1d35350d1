"""Entry point of worker processes: composes the program in `holdfast.worker.processes.main`.

    python -m holdfast.cli.worker_process forkserver|worker|job APP [--queues Q] [--include M] CHANNEL [SHARED_STATE]

CHANNEL and SHARED_STATE are inherited file descriptors.
"""

import argparse
import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.builtin.register import register_builtin
from holdfast.builtin.webhooks.ports import DeliveryState
from holdfast.cli import event_loop
from holdfast.cli.loader import DEFAULT_SLOTS, MAX_SLOTS, application, hint_at_unimported, parse_slots
from holdfast.compose import open_jobs, preload, recycling_rules
from holdfast.config import load
from holdfast.model.breaker import DeliveryPermit
from holdfast.model.job import HeldJob, Job
from holdfast.model.step import Step
from holdfast.model.time import Duration, in_seconds
from holdfast.telemetry import logs
from holdfast.worker.ports import StepStore, TransactionSession
from holdfast.worker.processes.main import Application, Runtime, WorkerProgram
from holdfast.worker.processes.worker_process import WorkerOptions

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.sdk.remote import RemoteEngine

MODULE = "holdfast.cli.worker_process"

_LOG = logging.getLogger("holdfast")


def main() -> None:
    """Run one role of the worker program; see the module."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("role", choices=("forkserver", "worker", "job"))
    parser.add_argument("app")
    parser.add_argument("--queues", default="")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("channel", type=int)
    parser.add_argument("shared_state", type=int, nargs="?")
    args = parser.parse_args()
    settings = load()
    logs.set_up(settings.log_format, settings.log_level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the supervisor decides
    announce = args.role == "forkserver"  # which starts first, and once
    program = WorkerProgram(AppRuntime(args.app, args.queues, args.include, announce=announce))
    channel = socket.socket(fileno=args.channel)
    match args.role:
        case "forkserver":
            program.run_forkserver(channel)
        case "worker":
            program.run_worker(channel, args.shared_state)
        case "job":
            program.run_job(channel, args.shared_state)


def include_flags(modules: Sequence[str]) -> list[str]:
    """Return the arguments of this program that import further modules."""
    return [word for module in modules for word in ("--include", module)]


class AppRuntime(Runtime):
    """Parts for the application that the command line names, built from the settings."""

    max_slots = MAX_SLOTS

    def __init__(self, app: str, queues: str, include: Sequence[str] = (), *, announce: bool = False) -> None:
        self._app = app
        self._queues = queues
        self._include = include
        self._announce = announce

    def load(self) -> Application:
        app = application(self._app, self._include)
        if self._announce and self._app:
            _LOG.info("loaded %s with the job types %s", self._app, ", ".join(app.registry.types()))
            if hint := hint_at_unimported(self._app):
                _LOG.warning("%s", hint)
        return app

    def preload(self, app: Application) -> None:
        preload(app.url)
        event_loop.preload()

    def prepare(self, app: Application) -> "LazyEngine":
        settings = load()
        engine = LazyEngine(lambda: open_jobs(settings, app.url))
        register_builtin(app.registry, settings, engine)
        if settings.job_timeout is not None:
            app.registry.set_default_timeout(settings.job_timeout)
        return engine

    def worker_options(self, app: Application) -> WorkerOptions:
        settings = load()
        return WorkerOptions(
            queues=parse_slots(self._queues, app.registry, settings.worker_slots or DEFAULT_SLOTS),
            max_prefetch=settings.job_queue_size,
            poll=in_seconds(settings.poll_interval),
            fail_rate=settings.fail_rate,
            recycling=recycling_rules(settings),
            job_command=["-m", MODULE, "job", self._app, *include_flags(self._include)],
        )

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return event_loop.new_loop()

    def tune_garbage_collector(self) -> None:
        event_loop.reduce_gc()


class LazyEngine(StepStore, DeliveryState):
    """Engine, or HTTP client of one, that connects on first use.

    A job process needs a connection only if its handler uses steps, transactions or progress, or delivers a webhook.
    """

    def __init__(self, connect: Callable[[], Awaitable["Engine | RemoteEngine"]]) -> None:
        self._connect = connect
        self._opening = asyncio.Lock()
        self._engine: Engine | RemoteEngine | None = None

    async def open(self) -> "Engine | RemoteEngine":
        """Return the engine; connect if there is no connection yet."""
        async with self._opening:
            if self._engine is None:
                self._engine = await self._connect()
        return self._engine

    async def steps_of(self, held: HeldJob) -> Sequence[Step]:
        return await (await self.open()).attempts.steps_of(held)

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        return await (await self.open()).attempts.record_step(held, step)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        return await (await self.open()).attempts.save_progress(held, progress)

    @asynccontextmanager
    async def session(self, held: HeldJob, key: str) -> AsyncIterator[TransactionSession]:
        async with (await self.open()).attempts.session(held, key) as session:
            yield session

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        deliveries = (await self.open()).deliveries
        return await deliveries.before_delivery(job, destination, probe_for=probe_for, at=at, body=body)

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        await (await self.open()).deliveries.after_delivery(job, destination, probe=probe, error=error)


if __name__ == "__main__":
    main()
