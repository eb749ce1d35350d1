"""The handlers of an application, by the name of the job type."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct

from holdfast.errors import Misconfigured
from holdfast.model.job import RetryRule
from holdfast.model.job_type import MAX_DESCRIBED_TYPES, JobType
from holdfast.model.time import Duration
from holdfast.worker.handlers.signature import Arguments

Isolation = Literal["async", "thread", "process"]

MAX_SCHEMAS_LENGTH = 256 * 1024
"""Characters of schemas that a worker tells in all; types beyond that are told without theirs."""


class Handler(Struct, frozen=True):
    """One job type, as the worker sees it."""

    type: str
    function: Callable[..., Any]
    isolation: Isolation
    arguments: Arguments
    queue: str = "default"
    retry: RetryRule | None = None
    max_attempts: int | None = None
    timeout: Duration | None = None
    priority: int = 0
    cost: int = 1

    @property
    def context(self) -> str | None:
        """The parameter that wants the running job's context."""
        return self.arguments.context


class Registry:
    """A type name means one handler."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, handler: Handler) -> None:
        """Enter a handler; a name that is taken is an error that names both places."""
        known = self._handlers.setdefault(handler.type, handler)
        if known is not handler:
            raise Misconfigured(
                f"two jobs are called {handler.type!r}: {place(known.function)} and {place(handler.function)}; "
                f"give one of them another name: @app.job(name=…)"
            )

    def get(self, job_type: str) -> Handler | None:
        """Who handles jobs of this type."""
        return self._handlers.get(job_type)

    def types(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._handlers)

    def described(self) -> list[JobType]:
        """What there is to tell of each type, for whoever makes such jobs; little enough to be sent at once."""
        told, left = [], MAX_SCHEMAS_LENGTH
        for handler in sorted(self, key=lambda each: each.type)[:MAX_DESCRIBED_TYPES]:
            schema = handler.arguments.schema()
            left -= len(schema or "")
            told.append(
                JobType(
                    type=handler.type,
                    schema=schema if left > 0 else None,
                    queue=handler.queue,
                    max_attempts=handler.max_attempts,
                    timeout=handler.timeout,
                    priority=handler.priority,
                    cost=handler.cost,
                )
            )
        return told

    def queues(self) -> list[str]:
        """The queues that the types go to unless a submission says otherwise, sorted."""
        return sorted({handler.queue for handler in self._handlers.values()})

    def resolve(self) -> None:
        """Look at every signature now; raises `Misconfigured` for one that cannot be used."""
        for handler in self:
            handler.arguments.resolve()

    def __iter__(self) -> Iterator[Handler]:
        return iter(list(self._handlers.values()))


def place(function: Callable[..., Any]) -> str:
    """Where a function stands, for people."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = f"{plain.__module__}.{plain.__qualname__}"
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
