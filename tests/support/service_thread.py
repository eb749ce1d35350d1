"""Node of the service in a thread, on a real socket, for tests without an event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from holdfast.api.server.server import bind, serve
from holdfast.compose import build_api, open_engine
from holdfast.config import Settings
from holdfast.engine.engine import Engine
from holdfast.model.ids import new_worker_id, worker_name
from holdfast.model.job import Job
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Failed, Failure, Outcome, Report, Succeeded
from holdfast.model.time import seconds
from holdfast.model.worker import WorkerInfo

T = TypeVar("T")

ADMIN = "an-admin-key-for-tests-only-4711"
JWT_SECRET = "f3a9c2e17b5d4860a1c3e5f7092b4d6e8a0c2e4f"
FAILS = Failed(Failure(kind="SmtpError", message="421 try again"), retryable=False)
WORKS = Succeeded(b'{"sent":1}')


class ServiceThread:
    """Running node, and access to its engine from other threads."""

    def __init__(self, url: str, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.key = ADMIN
        self._engine = engine
        self._loop = loop

    def do(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Run a coroutine with the engine, on its event loop."""

        async def main() -> T:
            return await work(self._engine)

        return asyncio.run_coroutine_threadsafe(main(), self._loop).result(60)

    def settle(self, outcome: Outcome, *, queue: str = "default") -> list[Job]:
        """Claim all jobs of a queue and settle them with this outcome, as a worker would."""

        async def work(engine: Engine) -> list[Job]:
            worker = WorkerInfo(new_worker_id(), "manual", "here", 1, "1", queue, 100)
            await engine.workers.register(worker, seconds(60))
            jobs = await engine.attempts.claims(worker.id, [queue]).claim(1_000)
            await engine.attempts.settle_many([Report(job, outcome) for job in jobs])
            await engine.workers.depart(worker.id)
            return jobs

        return self.do(work)

    def enter(self, node: str = "") -> str:
        """Register a worker that handles `send`; return its id."""
        schema = '{"type":"object","properties":{"to":{},"cc":{}},"required":["to"]}'
        worker = WorkerInfo(new_worker_id(), "manual", "here", 1, "1", "mail:2", 2, types=("send",), node=node)
        self.do(lambda engine: engine.workers.register(worker, seconds(60), [JobType("send", schema, "mail")]))
        return worker_name(worker.id)


@contextmanager
def run_service(database_url: str) -> Iterator[ServiceThread]:
    """Run a node within a block."""
    found: list[ServiceThread] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def main() -> None:
        settings = Settings(database_url=database_url, admin_key=ADMIN, jwt_secret=JWT_SECRET)
        engine = await open_engine(settings)
        listening = bind("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        found.append(ServiceThread(url, engine, asyncio.get_running_loop()))
        try:
            await serve(build_api(settings, engine), listening, stop=stop, ready=ready.set)
        finally:
            await engine.aclose()
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        found[0]._loop.call_soon_threadsafe(stop.set)
        thread.join(60)
