"""Database server that tests crash, restart and reset, and checks of the state afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from signal import SIGINT, SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any

from holdfast.errors import Unavailable
from holdfast.model.state import Status
from tests.support.builders import read_all
from tests.support.clock import Console
from tests.support.databases import at_database, migrate
from tests.support.eventually import eventually
from tests.support.nodes import children_of
from tests.support.servers.__main__ import find
from tests.support.servers.private import PrivateServer
from tests.support.servers.process import scratch
from tests.support.servers.recipes import RECIPES, Program

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from holdfast.engine.engine import Engine
    from holdfast.model.ids import JobId
    from holdfast.model.job import JobSpec
    from tests.support.ledger import Ledger

_OTHERS = {
    "postgres": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
_BUSY = {"postgres": " AND state <> 'idle'", "mysql": " AND command <> 'Sleep'"}
_KILL = {"postgres": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}


class Outages:
    """Private database server with faults from which the database recovers by itself."""

    def __init__(self, private: PrivateServer, url: str) -> None:
        self._private = private
        self._server_url = url
        self.dialect = private.recipe.name
        self._databases = 0

    @property
    def admin_url(self) -> str:
        """URL of the server for its administrator."""
        return self._server_url

    async def new_database(self) -> str:
        """Create and migrate a database; return its URL."""
        self._databases += 1
        name = f"holdfast_{self._databases}"
        async with Console(self._server_url) as console:
            await console.run(f"CREATE DATABASE {name}")
        url = at_database(self._server_url, name)
        await migrate(url)
        return url

    def crash(self) -> None:
        """Kill all processes of the server at once, like a power failure."""
        process = self._private._process
        assert process is not None
        pids = [process.pid, *children_of(process.pid)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        self._private.stop()
        while any(_alive(pid) for pid in pids):
            time.sleep(0.005)
        # The stale pid file would be taken for that of the next server.
        (self._private.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def shut_down(self) -> None:
        """Shut the server down gracefully."""
        process = self._private._process
        assert process is not None
        process.send_signal(SIGINT if self.dialect == "postgres" else SIGTERM)
        process.wait(60)
        self._private.stop()

    def start(self) -> None:
        """Start the server again on the same port with the same data."""
        self._private.start()
        self._private.wait()

    def become_standby(self) -> None:
        """Restart PostgreSQL as a standby, which is read-only, without a primary."""
        self.shut_down()
        (self._private.folder / "data" / "standby.signal").touch()
        self.start()

    async def promote(self) -> None:
        """Promote the standby to a primary."""
        async with Console(self._server_url) as console:
            assert await console.value("SELECT pg_promote()")

    def copy_data(self, folder: Path) -> Path:
        """Copy the data of the stopped server, like a standby that receives no further changes."""
        _copy(self._private.folder / "data", folder)
        return folder

    def restore_data(self, folder: Path) -> None:
        """Replace the data of the stopped server by a copy."""
        shutil.rmtree(self._private.folder / "data")
        _copy(folder, self._private.folder / "data")

    async def set_read_only(self, url: str, read_only: bool) -> None:
        """Make new sessions of a database read-only, or writable; open sessions keep what they have."""
        async with Console(self._server_url) as console:
            if self.dialect == "postgres":
                name = url.rsplit("/", 1)[-1].split("?", maxsplit=1)[0]
                await console.run(f"ALTER DATABASE {name} SET default_transaction_read_only = {read_only}")
            else:
                (variable,) = await console.run(
                    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('tx_read_only', 'transaction_read_only')"
                )
                await console.run(f"SET GLOBAL {variable[0]} = {int(read_only)}")

    async def reset(self, url: str, *, one_in: int = 1) -> int:
        """Cut the sessions of a database, or one in `one_in`; return how many."""
        async with Console(url) as console:
            sessions = [row[0] for row in await console.run(_OTHERS[self.dialect])]
            for session in sessions[::one_in]:
                with suppress(Exception):  # already closed
                    await console.run(_KILL[self.dialect].format(session))
        return len(sessions[::one_in])

    async def is_idle(self, url: str) -> bool:
        """Tell if the server has sent the response to every statement of the database's other sessions."""
        async with Console(url) as console:
            return not await console.run(_OTHERS[self.dialect] + _BUSY[self.dialect])


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True)  # keeps the owner, which the server requires


@contextmanager
def outages(dialect: str) -> Iterator[Outages | str]:
    """Run such a server within a block; yield a reason if there is none."""
    recipe = RECIPES[dialect]()
    (program,) = find([recipe])
    if not isinstance(program, Program):
        yield program.reason
        return
    with scratch() as folder:
        private = PrivateServer(recipe, program, folder)
        private.prepare()
        private.start()
        try:
            yield Outages(private, private.wait().url)
        finally:
            private.stop()


class Client:
    """Client that repeats each submission with its idempotency key until it is accepted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.accepted: dict[str, JobId] = {}
        self.unanswered = 0
        """Submissions that had to be repeated."""

    async def submit(self, spec: JobSpec) -> JobId:
        """Submit a job, repeatedly if needed."""
        key = spec.idempotency_key or ""
        while key not in self.accepted:
            try:
                self.accepted[key] = (await self._engine.jobs.submit(spec)).id
            except Unavailable:
                self.unanswered += 1
                await asyncio.sleep(0.05)
        return self.accepted[key]


async def all_ended(engine: Engine, ids: Collection[JobId], *, within: float = 60) -> None:
    """Wait until all these jobs have finished."""

    async def ended() -> bool:
        try:
            return all(job.status.terminal for job in await engine.store.single(lambda tx: tx.get(ids)))
        except Unavailable:
            return False

    await eventually(ended, within=within)


async def check_all(engine: Engine, ids: Collection[JobId], ledger: Ledger | None = None) -> None:
    """S1, S3, S5, S8: each job exists once and succeeded, there is no other, and its fences increase."""
    jobs = await read_all(engine.store, ids)
    assert [job.id for job in jobs] == sorted(ids)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert all(job.attempts <= job.max_attempts for job in jobs)
    assert not [count for count in await engine.jobs.counts() if count.jobs]
    if ledger is not None:
        starts: dict[str, list[int]] = defaultdict(list)
        for entry in ledger.entries("start"):
            starts[entry.job].append(entry.fence)
        assert set(starts) == {str(job.id) for job in jobs}
        # A claim starts a job at most once, and later claims start later.
        twice: dict[str, Any] = {job: fences for job, fences in starts.items() if fences != sorted(set(fences))}
        assert not twice
        ended = {(entry.job, entry.fence) for entry in ledger.entries("end")}
        assert not [job.id for job in jobs if (str(job.id), job.fence) not in ended]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
