"""The `Holdfast` application object: declares job types and opens connections on demand."""

import inspect
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload
from uuid import UUID

from msgspec.structs import replace

from holdfast.app.handles import AsyncJobHandle, JobHandle, parse_id
from holdfast.app.job_types import AsyncJobType, JobType, SyncJobType
from holdfast.app.runtime import AppBackend, EngineProvider
from holdfast.compose import is_node, migrate, open_jobs, with_key
from holdfast.config import Settings, load, shown_url
from holdfast.errors import Invalid, Misconfigured
from holdfast.loop_thread import LoopThread
from holdfast.model.job import JobSpec
from holdfast.policy import submission
from holdfast.worker.context.context import Context, SyncContext
from holdfast.worker.handlers.exceptions import Retry, Span, duration
from holdfast.worker.handlers.registry import Handler, Isolation, Registry, describe_location
from holdfast.worker.handlers.signature import Arguments

P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """Type of the decorator that `@app.job(…)` returns."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncJobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[SyncContext, P], R], /) -> SyncJobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJobType[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncJobType[P, R]: ...


class Holdfast:
    """Application: a registry of job types, and a connection to the database or node.

    Settings are read and connections opened on first use. Connections are closed by `with app:`, `async with app:`,
    `close`, `aclose`, at event loop shutdown and at program exit.

    Args:
        url: A database URL, or the `http://…` URL of a node. Defaults to HOLDFAST_DATABASE_URL, or HOLDFAST_API_URL
            with HOLDFAST_API_KEY, else an SQLite file.
        key: API key for a node.
        settings: Settings to use instead of those from the environment.

    Example:
        app = Holdfast("postgresql://localhost/app")

        @app.job(retry=Retry(max_attempts=3))
        def send(user_id: int) -> None: ...

        send.enqueue(42)
    """

    def __init__(self, url: str | None = None, *, key: str | None = None, settings: Settings | None = None) -> None:
        self._url = url
        self._key = key
        self._settings = settings
        self.registry = Registry()
        self._engines = EngineProvider(self._open)

    @property
    def settings(self) -> Settings:
        """Settings of the application, loaded on first use; raises `Misconfigured`."""
        if self._settings is None:
            self._settings = load({} if self._names_a_node else {"database_url": self._url})
        elif self._url is not None and not self._names_a_node and self._settings.database_url != self._url:
            self._settings = replace(self._settings, database_url=self._url)
        return self._settings

    @property
    def url(self) -> str:
        """URL of the database or node that stores the jobs, including the API key if one was given."""
        url = self._url if self._url is not None and self._names_a_node else self.settings.jobs_url
        return with_key(url, self._key)

    @property
    def _names_a_node(self) -> bool:
        return self._url is not None and is_node(self._url)

    @overload
    def job(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncJobType[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[SyncContext, P], R], /) -> SyncJobType[P, R]: ...
    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJobType[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def job(self, function: Callable[P, R], /) -> SyncJobType[P, R]: ...
    @overload
    def job(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        retry: Retry | None = None,
        timeout: Span | None = None,
        priority: int = 0,
        cost: int = 1,
        isolation: Isolation | None = None,
    ) -> Decorator: ...
    def job(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        retry: Retry | None = None,
        timeout: Span | None = None,
        priority: int = 0,
        cost: int = 1,
        isolation: Isolation | None = None,
    ) -> Any:
        """Declare a function as a job type.

        Args:
            name: Name of the job type; defaults to the name of the function.
            queue: Queue of its jobs.
            retry: Number of attempts and delays between them.
            timeout: Maximum duration of one attempt.
            priority: Jobs with a higher priority run first.
            cost: Weight of one job in quotas and fair scheduling.
            isolation: `"process"` runs each job in its own process. By default an async function runs on the worker's
                event loop and a synchronous one in a thread.

        Raises:
            Misconfigured: An option or a parameter of the function is not supported.

        Example:
            @app.job(queue="mail", timeout="30s")
            async def send(user_id: int) -> None: ...
        """

        def declare(function: Callable[..., Any]) -> JobType[Any, Any]:
            kind = _isolation(function, isolation)
            job_type = name if name is not None else function.__name__
            try:
                spec = JobSpec(
                    type=job_type,
                    queue=queue,
                    priority=priority,
                    cost=cost,
                    timeout=None if timeout is None else duration(timeout, "timeout"),
                    retry=None if retry is None else retry.rule(),
                    max_attempts=None if retry is None else retry.max_attempts,
                )
                submission.check_options(spec)
            except Invalid as fault:
                raise Misconfigured(f"job {job_type!r}, {describe_location(function)}: {fault}") from None
            handler = Handler(
                type=job_type,
                function=function,
                isolation=kind,
                arguments=Arguments(function, job_type),
                queue=queue,
                retry=spec.retry,
                max_attempts=spec.max_attempts,
                timeout=spec.timeout,
                priority=priority,
                cost=cost,
            )
            self.registry.add(handler)
            shape = AsyncJobType if inspect.iscoroutinefunction(function) else SyncJobType
            return shape(self._engines, handler)

        return declare if function is None else declare(function)

    def handle(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return a handle for an existing job of any type; its result is plain JSON.

        Args:
            job_id: UUID of the job. The methods of the handle raise `NotFound` if it does not exist.

        Raises:
            Invalid: `job_id` is not a UUID.

        Example:
            app.handle("01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11").status()
        """
        return JobHandle(self._engines, parse_id(job_id))

    def ahandle(self, job_id: UUID | str) -> AsyncJobHandle[Any]:
        """Return an async handle for an existing job of any type; its result is plain JSON.

        Args:
            job_id: UUID of the job. The methods of the handle raise `NotFound` if it does not exist.

        Raises:
            Invalid: `job_id` is not a UUID.

        Example:
            await app.ahandle("01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11").status()
        """
        return AsyncJobHandle(self._engines, parse_id(job_id))

    def migrate(self) -> list[str]:
        """Migrate the schema of the application's database to this version of holdfast.

        Idempotent, and safe while nodes are running and in several processes at the same time. It does the same as
        `holdfast migrate`, for tests and for deployments that prepare the database from Python.

        Returns:
            The names of the applied steps; empty if the schema was up to date.

        Raises:
            Misconfigured: The application uses a node instead of a database.
            SchemaMismatch: The schema is newer than this version of holdfast.
            Unavailable: The database is unavailable.

        Example:
            app.migrate()
        """
        thread = LoopThread(_nothing)
        try:
            return thread.run(self.amigrate())
        finally:
            thread.stop()

    async def amigrate(self) -> list[str]:
        """Migrate the schema of the application's database, from async code.

        Returns and raises the same as `migrate`.
        """
        if is_node(self.url):
            raise Misconfigured(
                f"{shown_url(self.url)} is a node, which has no schema: migrate the database of the node"
            )
        return await migrate(self.url)

    def close(self) -> None:
        """Close the connections of synchronous calls. The next call opens new ones."""
        self._engines.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop and those of synchronous calls."""
        await self._engines.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        where = self._url or (self._settings.database_url if self._settings else None)
        return f"<Holdfast {shown_url(where) if where else 'url from settings'}: {len(self.registry.types())} jobs>"

    async def _open(self) -> AppBackend:
        return await open_jobs(self.settings, self.url, check=False)


async def _nothing() -> None:
    """Clean up nothing: a migration closes what it opens."""


def _isolation(function: Any, asked: Isolation | None) -> Isolation:
    """Return where the function runs; raises `Misconfigured` if it cannot be a job."""
    if isinstance(function, JobType):
        raise Misconfigured(f"job {function.name!r} is declared twice: decorate the plain function once")
    if not inspect.isfunction(function):
        raise Misconfigured(f"{function!r} cannot be a job: decorate a function (`def` or `async def`)")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Misconfigured(
            f"job {function.__name__!r}: {describe_location(function)} is a generator: use return, not yield"
        )
    own: Isolation = "async" if inspect.iscoroutinefunction(function) else "thread"
    if asked in (None, own, "process"):
        return asked or own
    what = "an async function runs on the event loop" if own == "async" else "a synchronous function runs in a thread"
    raise Misconfigured(
        f"job {function.__name__!r}, {describe_location(function)}: isolation is {asked!r}, but {what}: "
        f"leave isolation out, or use 'process'"
    )
