"""Job types as declared by workers that handle them."""

from typing import NamedTuple

from msgspec import Struct

from holdfast.model.time import Duration, Instant

MAX_SCHEMA_BYTES = 16 * 1024
"""Larger payload schemas are dropped."""

MAX_DESCRIBED_TYPES = 1_000
"""Maximum number of stored types per tenant, and for workers that serve all tenants."""

ALL_TENANTS = ""
"""Tenant of the types of workers that serve all tenants."""


class JobType(Struct, frozen=True, omit_defaults=True):
    """Job type as declared by a worker. None means not declared."""

    type: str
    schema: str | None = None
    """JSON Schema of the payload, as text."""
    queue: str | None = None
    """Default queue of its jobs."""
    queues: tuple[str, ...] = ()
    """Queues served by the declaring worker."""
    max_attempts: int | None = None
    timeout: Duration | None = None
    priority: int | None = None
    cost: int | None = None
    described: bool = True
    """False if only the name is known; an earlier description stays valid."""


class TypeMark(NamedTuple):
    """Digest and last-seen time of a stored type."""

    type: str
    digest: str
    seen_at: Instant


class TypeRow(NamedTuple):
    """Stored job type with its tenant and last-seen time."""

    tenant: str
    about: JobType
    seen_at: Instant
