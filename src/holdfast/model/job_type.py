"""What workers tell of the types of jobs that they have handlers for."""

from typing import NamedTuple

from msgspec import Struct

from holdfast.model.time import Duration, Instant

MAX_SCHEMA_BYTES = 16 * 1024
"""Bytes: a schema is for forms and for people, and one that is larger is told as if there were none."""

MAX_DESCRIBED_TYPES = 1_000
"""Types that are remembered of the workers of one tenant, and of those that are everybody's."""

EVERYBODY = ""
"""Whose types those are whose workers serve all tenants."""


class JobType(Struct, frozen=True, omit_defaults=True):
    """A type of jobs, as whoever handles it declares it. What is None was not said."""

    type: str
    schema: str | None = None
    """JSON Schema of the payload, as it is written."""
    queue: str | None = None
    """Where its jobs go that name no other queue."""
    queues: tuple[str, ...] = ()
    """Those that the worker serves which told of it."""
    max_attempts: int | None = None
    timeout: Duration | None = None
    priority: int | None = None
    cost: int | None = None
    described: bool = True
    """False: it was only named, which says nothing of what was told before."""


class TypeMark(NamedTuple):
    """What is remembered of a type, without what was told."""

    type: str
    digest: str
    seen_at: Instant


class TypeRow(NamedTuple):
    """What is remembered of a type: whose workers told it, what, and when it was last seen."""

    tenant: str
    about: JobType
    seen_at: Instant
