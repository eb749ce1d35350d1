"""A database, an engine on it, a ledger, and nodes that come and go: the ground of fault tests."""

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

PATIENCE = 60.0
"""Seconds after which a fact is given up: machines of many tests are slow, and a fact that comes late has come."""

KINDS = {"async": "sink", "thread": "sink_thread", "process": "sink_process"}
"""The job types of the kitchen, by where their handlers run."""


class Scene:
    """What a fault test acts on. Jobs are known by their keys; nodes retry at once and are ended with the test."""

    def __init__(
        self, url: str, folder: Path, engine: Engine, stack: ExitStack, reach: dict[str, str] | None = None
    ) -> None:
        self.url = url
        self.engine = engine
        self.ledger = Ledger(folder / "ledger.db").create()
        self._folder = folder
        self._stack = stack
        self._reach = reach or {}
        """What has nodes reach their jobs in another way than by the database."""
        self.service: Service | None = None
        """The node of the HTTP service that workers reach their jobs through, if they do."""
        self._jobs: dict[str, JobId] = {}

    def node(self, *, lease: float = 15.0, environment: dict[str, str] | None = None, **options: Any) -> Node:
        """Start a node; it works when it works. Only a test that waits for leases to run out wants a short one."""
        variables = {"HOLDFAST_BACKOFF_BASE_MS": "1", **self._reach, **(environment or {})}
        url = options.pop("url", self.url)
        started = nodes.start(url, self._folder, ledger=self.ledger.path, lease=lease, environment=variables, **options)
        self._stack.callback(started.end)
        return started

    async def freeze(self, node: Node, *, supervisor_only: bool = False) -> None:
        """Stop a node's processes where they stand, SIGCONT wakes them; but none in the middle of a write to SQLite.

        Whoever is stopped there keeps the file locked for everybody, for as long as it is stopped: nothing could be
        seen of what the others do meanwhile.
        """
        processes = [node.pid] if supervisor_only else node.everyone()

        async def all_stand() -> bool:
            return all(nodes.stands_still(pid) for pid in processes)

        with self._nobody_writes():
            (node.signal if supervisor_only else node.signal_all)(signal.SIGSTOP)
            await eventually(all_stand, within=PATIENCE)

    @contextmanager
    def _nobody_writes(self) -> Iterator[None]:
        if dialect_of(self.url) != "sqlite":
            yield
            return
        file = apsw.Connection(self.url.removeprefix("sqlite:///"))
        try:
            file.set_busy_timeout(int(PATIENCE * 1_000))
            file.execute("BEGIN IMMEDIATE")
            yield
        finally:
            file.close()  # and with it what was begun

    def leaves_running(self, pid: int) -> None:
        """The test may leave this process behind: end it with the test."""
        self._stack.callback(_end, pid)

    async def submit(
        self, key: str, kind: str = "async", *, payload: dict[str, Any] | None = None, **options: Any
    ) -> JobId:
        """A job for the kitchen: options of jobs are given to the job, all others to its handler."""
        for name in ("timeout", "delay"):
            if name in options:
                options[name] = seconds(options[name])
        given = {name: options.pop(name) for name in list(options) if name not in JobSpec.__struct_fields__}
        spec = JobSpec(type=KINDS.get(kind, kind), payload={"key": key, **given, **(payload or {})}, **options)
        self._jobs[key] = (await self.engine.jobs.submit(spec)).id
        return self._jobs[key]

    async def job(self, key: str) -> Job:
        """The job as it stands."""
        return await self.engine.jobs.get(self._jobs[key])

    async def attempts(self, key: str) -> list[AttemptRecord]:
        """Its attempts that did not succeed, oldest first."""
        return attempt_log(await self.job(key))

    async def becomes(self, status: str, *keys: str) -> list[Job]:
        """Wait until these jobs stand so; all jobs that were submitted, if none is named."""

        async def all_so() -> list[Job]:
            jobs = [await self.job(key) for key in keys or self._jobs]
            return jobs if all(job.status == status for job in jobs) else []

        try:
            return await eventually(all_so, within=PATIENCE)
        except TimeoutError:
            standing = {key: str((await self.job(key)).status) for key in keys or self._jobs}
            raise AssertionError(f"not all became {status}: {standing}\n{self.logs()}") from None

    async def noted(self, event: str, key: str | None = None, times: int = 1) -> None:
        """Wait until the ledger has this, that often at least."""

        async def enough() -> bool:
            return self.ledger.count(event, key) >= times

        try:
            await eventually(enough, within=PATIENCE)
        except TimeoutError:
            seen = [(entry.event, entry.key, entry.attempt) for entry in self.ledger.entries()]
            raise AssertionError(f"never {times} × {event!r} of {key!r}: {seen}\n{self.logs()}") from None

    def let_go(self, key: str) -> None:
        """End the sleep of a handler that is held."""
        self.ledger.write("go", job="", key=key, attempt=0, fence=0, pid=0)

    async def starts(self, key: str, times: int = 1) -> None:
        """Wait until a handler began with this job, that often at least."""
        await self.noted("start", key, times)

    async def says(self, node: Node, text: str) -> None:
        """Wait until a node's log has this."""

        async def said() -> bool:
            return text in node.log

        try:
            await eventually(said, within=PATIENCE)
        except TimeoutError:
            raise AssertionError(f"never said {text!r}:\n{node.log}") from None

    async def workers(self, count: int) -> list[WorkerRow]:
        """Wait until so many are in the register."""

        async def registered() -> bool:
            return len(await self.engine.workers.all()) == count

        try:
            await eventually(registered, within=PATIENCE)
            return await self.engine.workers.all()
        except TimeoutError:
            names = [row.info.name for row in await self.engine.workers.all()]
            raise AssertionError(f"not {count} in the register: {names}\n{self.logs()}") from None

    async def workers_of(self, node: Node) -> list[WorkerRow]:
        """Wait until all workers of a node are in the register, and at least one; those."""

        async def registered() -> list[WorkerRow]:
            children = set(node.children())
            rows = [row for row in await self.engine.workers.all() if row.info.pid in children]
            return rows if len(rows) == len(children) else []

        try:
            return await eventually(registered, within=PATIENCE)
        except TimeoutError:
            raise AssertionError(f"not all in the register:\n{node.log}") from None

    async def gone(self, pid: int) -> None:
        """Wait until there is no such process any more, but for a zombie perhaps."""

        async def ended() -> bool:
            return nodes.state_of(pid) == "Z"

        await eventually(ended, within=PATIENCE)

    def logs(self) -> str:
        """What all nodes said."""
        return "\n".join(f"── {log.name}\n{log.read_text()}" for log in sorted(self._folder.glob("node-*")))


@pytest_asyncio.fixture
async def scene(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    """A clean database with nobody at work yet. Nodes reach their jobs there, or through a node of the HTTP service."""
    engine = await open_engine(Settings(database_url=database_url))
    with ExitStack() as stack:
        if request.param == "http":
            service = Service(database_url, tmp_path)
            _, key = await engine.access.create_key("default", "of a scene", frozenset({Scope.WORKER}))
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
