"""pytest plugin: the option `--db`, servers of a run, and a clean database for each test.

A test with the fixture `database_url` or `store` runs once per database; `@pytest.mark.databases("mysql")` restricts it
to some. A server starts when a test first needs it, and the last lines of the run list all servers. With
`--db pgbouncer`, tests for all databases run on PostgreSQL through a pooler.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import shutil
import signal
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
import pytest_asyncio

from holdfast.compose import open_store
from tests.support.databases import DATABASES, Database, drop_all, migrate
from tests.support.long import LONG
from tests.support.servers import Missing, Server
from tests.support.servers.shared import Shared, shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holdfast.store.port.store import Store

DIALECTS = ("postgres", "mysql", "sqlite")
POOLED = {"pgbouncer": "postgres"}
"""Databases behind a pooler; used by tests that name them, and by all tests with `--db`."""
RUN = pytest.StashKey["Run"]()


class Run:
    """State of a test run, shared by its processes."""

    def __init__(self, servers: Shared, prefix: str) -> None:
        self.servers = servers
        self.prefix = prefix  # of the names of all its databases

    def server(self, name: str) -> Server:
        """Return the named server; if it is missing, skip the test, or fail in CI."""
        found = self.servers.get(name)
        if isinstance(found, Server):
            return found
        if _in_ci():
            pytest.fail(f"no {name}: {found.reason}", pytrace=False)
        pytest.skip(f"no {name}: {found.reason}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--db",
        action="append",
        choices=(*DIALECTS, *POOLED),
        help="run database tests only on this database; may be repeated (default: all, without a pooler)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control starts background commands with SIGINT ignored, and child processes inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "databases(*names): run the test only on these databases")
    config.addinivalue_line(
        "markers", "by_http_too(*names): run it also with workers over HTTP on these databases (long tests: on all)"
    )
    config.addinivalue_line("markers", "only_by_http: run it only with workers over HTTP")
    config.addinivalue_line("markers", "only_by_database: never run it with workers over HTTP")
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        config.stash[RUN] = Run(Shared(Path(worker["servers"])), worker["database_prefix"])
        return
    stack = ExitStack()
    config.add_cleanup(stack.close)
    run = Run(stack.enter_context(shared()), f"holdfast_test_{secrets.token_hex(6)}_")
    stack.callback(_drop_databases, run)
    config.stash[RUN] = run


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Pass the state of the run to an xdist worker."""
    run: Run = node.config.stash[RUN]  # type: ignore[attr-defined]
    node.workerinput |= {"servers": str(run.servers.folder), "database_prefix": run.prefix}  # type: ignore[attr-defined]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests over the selected databases."""
    for fixture in ("database_url", "empty_database_url"):
        if fixture in metafunc.fixturenames:
            names = dialects(metafunc)
            if fixture == "database_url" and "scene" in metafunc.fixturenames:
                transports = [(name, way) for name in names for way in worker_transports(metafunc, name)]
                ids = [name if way == "database" else f"{name}-{way}" for name, way in transports]
                metafunc.parametrize(("database_url", "scene"), transports, indirect=True, ids=ids)
            else:
                metafunc.parametrize(fixture, names, indirect=True, ids=names)


def dialects(metafunc: pytest.Metafunc) -> list[str]:
    """Return the databases that a test runs on."""
    named = {name for mark in metafunc.definition.iter_markers("databases") for name in mark.args}
    selected = metafunc.config.getoption("--db") or named or DIALECTS
    return [name for name in (*DIALECTS, *POOLED) if name in selected and (name in named or not named)]


def worker_transports(metafunc: pytest.Metafunc, dialect: str) -> list[str]:
    """Return how the workers of a test get their jobs: from the database, and in some tests over HTTP."""
    marks = {mark.name: mark for mark in metafunc.definition.iter_markers()}
    if "only_by_database" in marks:
        return ["database"]
    if "only_by_http" in marks:
        return ["http"]
    named = marks["by_http_too"].args if "by_http_too" in marks else ()
    of_workers = "faults" in metafunc.definition.path.parts or "worker" in metafunc.definition.path.parts
    if dialect in named or (LONG and of_workers):
        return ["database", "http"]
    return ["database"]


@pytest.fixture(scope="session")
def run(pytestconfig: pytest.Config) -> Run:
    return pytestconfig.stash[RUN]


@pytest.fixture(scope="session")
def postgres_server(run: Run) -> Server:
    return run.server("postgres")


@pytest.fixture(scope="session")
def mysql_server(run: Run) -> Server:
    return run.server("mysql")


@pytest.fixture(scope="session")
def redis_server(run: Run) -> Server:
    return run.server("redis")


class Databases:
    """Databases of a test process: one per server, created at its first use and emptied before each test."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        # A separate event loop, independent of those of the tests.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._stack = AsyncExitStack()
        self._created: dict[str, Database] = {}
        self._sqlite: Path | None = None

    def clean(self, dialect: str, folder: Path) -> str:
        """Return the URL of a migrated, empty database; for SQLite a file in `folder`."""
        if dialect == "sqlite":
            return sqlite_url(Path(shutil.copy(self._sqlite_template(), folder / "holdfast.db")))
        if dialect in self._created:
            self._runner.run(self._created[dialect].empty())
        else:
            database = self._new(dialect)
            self._runner.run(database.migrate())
            self._created[dialect] = database
        return self._created[dialect].url

    def blank(self, dialect: str, folder: Path) -> str:
        """Return the URL of a new database without tables."""
        return sqlite_url(folder / "blank.db") if dialect == "sqlite" else self._new(dialect).url

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _new(self, dialect: str) -> Database:
        name = self._run.prefix + secrets.token_hex(4)
        through = self._run.server(dialect).url
        direct = self._run.server(POOLED.get(dialect, dialect)).url
        database = DATABASES[POOLED.get(dialect, dialect)](direct, name, through=through)
        return self._runner.run(self._stack.enter_async_context(database))

    def _sqlite_template(self) -> Path:
        if self._sqlite is None:
            template = self._folder / "template.db"
            self._runner.run(migrate(sqlite_url(template)))
            self._sqlite = template
        return self._sqlite


@pytest.fixture(scope="session")
def databases(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    created = Databases(run, tmp_path_factory.mktemp("sqlite"))
    yield created
    created.close()


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """Name of the database of this test, as in `--db`."""
    name: str = request.node.callspec.params["database_url"]
    return name


@pytest.fixture
def database_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> str:
    """URL of a migrated, empty database for this test."""
    return databases.clean(request.param, tmp_path)


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> str:
    """URL of a database without tables, for tests of migrations."""
    return databases.blank(request.param, tmp_path)


@pytest_asyncio.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store(database_url)
    yield opened
    await opened.aclose()


def sqlite_url(file: Path) -> str:
    return f"sqlite:///{file}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the servers of the run, and those that were missing."""
    known = config.stash[RUN].servers.known()
    parts = [f"Python {platform.python_version()}", f"SQLite {apsw.sqlite_lib_version()}"]
    parts += [f"{name} {each}" for name, each in known.items() if isinstance(each, Server)]
    terminalreporter.section("ran on")
    terminalreporter.line(", ".join(parts))
    for name, each in known.items():
        if isinstance(each, Missing):
            outcome = "FAILED" if _in_ci() else "SKIPPED"
            terminalreporter.line(f"WITHOUT {name}, its tests {outcome}: {each.reason}", red=True, bold=True)


def _drop_databases(run: Run) -> None:
    for name, each in run.servers.known().items():
        if name in DATABASES and isinstance(each, Server) and not each.private:
            asyncio.run(drop_all(name, each.url, run.prefix))


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}
