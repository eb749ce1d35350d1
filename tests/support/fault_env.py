"""Environment of fault tests: a database, an engine, a ledger, and nodes that are started and killed."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import apsw
import pytest_asyncio

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.model.access import Scope
from holdfast.model.job import JobSpec
from holdfast.model.time import seconds
from holdfast.policy.lifecycle import attempt_log
from tests.support import nodes
from tests.support.clock import dialect_of
from tests.support.eventually import eventually
from tests.support.ledger import Ledger
from tests.support.services import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    import pytest

    from holdfast.engine.engine import Engine
    from holdfast.model.ids import JobId
    from holdfast.model.job import Job
    from holdfast.model.worker import WorkerRow
    from holdfast.policy.lifecycle import AttemptRecord
    from tests.support.nodes import Node

TIMEOUT_S = 60.0
"""Time after which waiting fails, long enough for a machine that runs many tests."""

KINDS = {"async": "sink", "thread": "sink_thread", "process": "sink_process"}
"""Job types of the fault application, by where their handlers run."""


class Scene:
    """Subject of a fault test. Jobs have keys; nodes retry at once and are stopped after the test."""

    def __init__(
        self, url: str, folder: Path, engine: Engine, stack: ExitStack, reach: dict[str, str] | None = None
    ) -> None:
        self.url = url
        self.engine = engine
        self.ledger = Ledger(folder / "ledger.db").create()
        self._folder = folder
        self._stack = stack
        self._reach = reach or {}
        """Environment variables of nodes that get their jobs over HTTP."""
        self.service: Service | None = None
        """Node of the HTTP service, if workers get their jobs over HTTP."""
        self._jobs: dict[str, JobId] = {}

    def node(self, *, lease: float = 15.0, environment: dict[str, str] | None = None, **options: Any) -> Node:
        """Start a node without waiting for it. Use a short lease only in tests of expired leases."""
        variables = {"HOLDFAST_BACKOFF_BASE_MS": "1", **self._reach, **(environment or {})}
        url = options.pop("url", self.url)
        started = nodes.start(url, self._folder, ledger=self.ledger.path, lease=lease, environment=variables, **options)
        self._stack.callback(started.end)
        return started

    async def freeze(self, node: Node, *, supervisor_only: bool = False) -> None:
        """Stop the processes of a node with SIGSTOP, but none during a write to SQLite.

        A process that is stopped during a write keeps the file locked, so that no other process could work.
        """
        processes = [node.pid] if supervisor_only else node.all_processes()

        async def all_stopped() -> bool:
            return all(nodes.is_stopped(pid) for pid in processes)

        with self._block_writes():
            (node.signal if supervisor_only else node.signal_all)(signal.SIGSTOP)
            await eventually(all_stopped, within=TIMEOUT_S)

    @contextmanager
    def _block_writes(self) -> Iterator[None]:
        if dialect_of(self.url) != "sqlite":
            yield
            return
        file = apsw.Connection(self.url.removeprefix("sqlite:///"))
        try:
            file.set_busy_timeout(int(TIMEOUT_S * 1_000))
            file.execute("BEGIN IMMEDIATE")
            yield
        finally:
            file.close()  # rolls back

    def leaves_running(self, pid: int) -> None:
        """Kill this process after the test."""
        self._stack.callback(_end, pid)

    async def submit(
        self, key: str, kind: str = "async", *, payload: dict[str, Any] | None = None, **options: Any
    ) -> JobId:
        """Submit a job; options that are not fields of a job go to its handler."""
        for name in ("timeout", "delay"):
            if name in options:
                options[name] = seconds(options[name])
        given = {name: options.pop(name) for name in list(options) if name not in JobSpec.__struct_fields__}
        spec = JobSpec(type=KINDS.get(kind, kind), payload={"key": key, **given, **(payload or {})}, **options)
        self._jobs[key] = (await self.engine.jobs.submit(spec)).id
        return self._jobs[key]

    async def job(self, key: str) -> Job:
        """Read the job."""
        return await self.engine.jobs.get(self._jobs[key])

    async def attempts(self, key: str) -> list[AttemptRecord]:
        """Return the attempts that did not succeed, oldest first."""
        return attempt_log(await self.job(key))

    async def becomes(self, status: str, *keys: str) -> list[Job]:
        """Wait until these jobs, by default all, have this status."""

        async def all_in_status() -> list[Job]:
            jobs = [await self.job(key) for key in keys or self._jobs]
            return jobs if all(job.status == status for job in jobs) else []

        try:
            return await eventually(all_in_status, within=TIMEOUT_S)
        except TimeoutError:
            statuses = {key: str((await self.job(key)).status) for key in keys or self._jobs}
            raise AssertionError(f"not all became {status}: {statuses}\n{self.logs()}") from None

    async def noted(self, event: str, key: str | None = None, times: int = 1) -> None:
        """Wait until the ledger has at least this many entries of an event."""

        async def enough() -> bool:
            return self.ledger.count(event, key) >= times

        try:
            await eventually(enough, within=TIMEOUT_S)
        except TimeoutError:
            seen = [(entry.event, entry.key, entry.attempt) for entry in self.ledger.entries()]
            raise AssertionError(f"never {times} × {event!r} of {key!r}: {seen}\n{self.logs()}") from None

    def let_go(self, key: str) -> None:
        """Release a handler that is held."""
        self.ledger.write("go", job="", key=key, attempt=0, fence=0, pid=0)

    async def starts(self, key: str, times: int = 1) -> None:
        """Wait until handlers have started this job at least this many times."""
        await self.noted("start", key, times)

    async def says(self, node: Node, text: str) -> None:
        """Wait until the log of a node contains this text."""

        async def said() -> bool:
            return text in node.log

        try:
            await eventually(said, within=TIMEOUT_S)
        except TimeoutError:
            raise AssertionError(f"the log never contained {text!r}:\n{node.log}") from None

    async def workers(self, count: int) -> list[WorkerRow]:
        """Wait until this many workers are registered."""

        async def registered() -> bool:
            return len(await self.engine.workers.all()) == count

        try:
            await eventually(registered, within=TIMEOUT_S)
            return await self.engine.workers.all()
        except TimeoutError:
            names = [row.info.name for row in await self.engine.workers.all()]
            raise AssertionError(f"not {count} registered: {names}\n{self.logs()}") from None

    async def workers_of(self, node: Node) -> list[WorkerRow]:
        """Wait until all workers of a node, and at least one, are registered; return them."""

        async def registered() -> list[WorkerRow]:
            children = set(node.children())
            rows = [row for row in await self.engine.workers.all() if row.info.pid in children]
            return rows if len(rows) == len(children) else []

        try:
            return await eventually(registered, within=TIMEOUT_S)
        except TimeoutError:
            raise AssertionError(f"not all registered:\n{node.log}") from None

    async def gone(self, pid: int) -> None:
        """Wait until a process has ended; it may remain as a zombie."""

        async def ended() -> bool:
            return nodes.state_of(pid) == "Z"

        await eventually(ended, within=TIMEOUT_S)

    def logs(self) -> str:
        """Return the logs of all nodes."""
        return "\n".join(f"── {log.name}\n{log.read_text()}" for log in sorted(self._folder.glob("node-*")))


@pytest_asyncio.fixture
async def scene(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    """Clean database without workers; nodes use it directly or through the HTTP service."""
    engine = await open_engine(Settings(database_url=database_url))
    with ExitStack() as stack:
        if request.param == "http":
            service = Service(database_url, tmp_path)
            _, key = await engine.access.create_key("default", "scene", frozenset({Scope.WORKER}))
            service.start()
            stack.callback(service.kill)
            reach = {"HOLDFAST_DATABASE_URL": "", "HOLDFAST_API_URL": service.url, "HOLDFAST_API_KEY": key}
            made = Scene(database_url, tmp_path, engine, stack, reach)
            made.service = service
            yield made
        else:
            yield Scene(database_url, tmp_path, engine, stack)
    await engine.aclose()


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
