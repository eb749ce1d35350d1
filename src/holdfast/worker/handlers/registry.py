"""Registry of an application's handlers by job type."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import Misconfigured
from holdfast.model.job import RetryRule
from holdfast.model.job_type import MAX_DESCRIBED_TYPES, JobType
from holdfast.model.time import Duration
from holdfast.worker.handlers.signature import Arguments

Isolation = Literal["async", "thread", "process"]

MAX_SCHEMAS_LENGTH = 256 * 1024
"""Largest total length of the schemas of a worker; further types are described without one."""


class Handler(Struct, frozen=True):
    """Handler function of a job type and the defaults of its jobs."""

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
        """Name of the parameter that receives the context, or None."""
        return self.arguments.context


class Registry:
    """Handlers by job type; each type has one handler."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, handler: Handler) -> None:
        """Add a handler; raise `Misconfigured` if its job type already has one."""
        first = self._handlers.setdefault(handler.type, handler)
        if first is not handler:
            raise Misconfigured(
                f"two jobs are named {handler.type!r}: {describe_location(first.function)} and "
                f"{describe_location(handler.function)}; give one of them another name with @app.job(name=…)"
            )

    def set_default_timeout(self, timeout: Duration) -> None:
        """Set the timeout of handlers that have none."""
        self._handlers = {
            job_type: handler if handler.timeout is not None else replace(handler, timeout=timeout)
            for job_type, handler in self._handlers.items()
        }

    def get(self, job_type: str) -> Handler | None:
        """Return the handler of a job type, or None."""
        return self._handlers.get(job_type)

    def types(self) -> list[str]:
        """Return all job types, sorted."""
        return sorted(self._handlers)

    def described(self) -> list[JobType]:
        """Return descriptions of the job types for forms and clients, bounded in total size."""
        descriptions, remaining = [], MAX_SCHEMAS_LENGTH
        for handler in sorted(self, key=lambda handler: handler.type)[:MAX_DESCRIBED_TYPES]:
            schema = handler.arguments.schema()
            remaining -= len(schema or "")
            descriptions.append(
                JobType(
                    type=handler.type,
                    schema=schema if remaining > 0 else None,
                    queue=handler.queue,
                    max_attempts=handler.max_attempts,
                    timeout=handler.timeout,
                    priority=handler.priority,
                    cost=handler.cost,
                )
            )
        return descriptions

    def queues(self) -> list[str]:
        """Return the default queues of the job types, sorted."""
        return sorted({handler.queue for handler in self._handlers.values()})

    def resolve(self) -> None:
        """Resolve every signature; raise `Misconfigured` for one that cannot be used."""
        for handler in self:
            handler.arguments.resolve()

    def __iter__(self) -> Iterator[Handler]:
        return iter(list(self._handlers.values()))


def describe_location(function: Callable[..., Any]) -> str:
    """Return the name and source location of a function, for messages."""
    unwrapped = inspect.unwrap(function)
    code = getattr(unwrapped, "__code__", None)
    name = f"{unwrapped.__module__}.{unwrapped.__qualname__}"
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
