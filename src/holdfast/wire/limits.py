"""Types and codec of concurrency limits, rate limits and pauses."""

from typing import Annotated, Generic, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid
from holdfast.model.limit import (
    Limit,
    LimitKind,
    LimitName,
    Pause,
    PauseKind,
    Rate,
    key_limit,
    queue_limit,
    tenant_limit,
)
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.wire.durations import RATE_PERIOD, RatePeriod, span
from holdfast.wire.types import Name, Query, RequestBody, Time, TimeT, When

MaxRunning = Annotated[
    int, Meta(ge=0, le=1_000_000_000, description="Maximum number of running jobs; 0 lets none start.")
]
Key = Annotated[str, Meta(min_length=1, max_length=255)]
KindName = Literal["queue", "tenant", "key"]
PauseName = Literal["type", "tenant"]


class RateShape(RequestBody):
    """Rate limit: at most `limit` starts per `per` seconds."""

    limit: Annotated[int, Meta(ge=1, le=1_000_000_000)]
    """Number of starts per period."""
    per: RatePeriod = 1
    """Period of the limit."""
    burst: Annotated[int, Meta(ge=1, le=1_000_000_000)] | UnsetType = UNSET
    """Maximum number of starts at once after an idle period; defaults to `limit`."""


class SetLimit(RequestBody):
    """Limit of a queue, a tenant, or (with `tenant` and `concurrency_key`) a concurrency key.

    Omitted or null fields are unlimited, except that a concurrency key then runs one job at a time.
    """

    queue: Name | None = None
    """Queue to limit."""
    tenant: Name | None = None
    """Tenant to limit, or tenant of the concurrency key."""
    concurrency_key: Key | None = None
    """Concurrency key to limit."""
    max_running: MaxRunning | None = None
    rate: RateShape | None = None


class RateOut(Struct, frozen=True):
    """Rate limit of starts."""

    limit: int
    """Number of starts per period."""
    per: float
    """Seconds."""
    burst: int
    """Maximum number of starts at once after an idle period."""


class LimitFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a limit."""

    kind: KindName
    """Object that the limit applies to."""
    queue: str | None
    """Queue of the limit; null for other kinds."""
    tenant: str | None
    """Tenant of the limit; null for a queue."""
    concurrency_key: str | None
    """Concurrency key of the limit; null for other kinds."""
    max_running: int | None
    rate: RateOut | None
    used: int
    """Running jobs that count against it; for a concurrency key, reserved ones too."""
    room: int | None
    """Number of jobs that may start now; null if unlimited."""
    changed_at: TimeT
    changed_by: str


class LimitOut(LimitFields[Time], frozen=True):
    """Limit and its current use."""


class LimitList(Struct, frozen=True):
    """Limits that were set explicitly."""

    items: list[LimitOut]
    next_cursor: str | None = None
    """Always null: the list has one page."""


class LimitQuery(Query):
    """Filter of a list of limits."""

    kind: KindName | None = None
    """Only limits of this kind."""
    tenant: Name | None = None
    """Tenant whose concurrency keys to list."""


class SetPause(RequestBody):
    """Pause of a type or a tenant: no more of its jobs are claimed; running ones continue."""

    type: Name | None = None
    """Type to pause; not together with `tenant`."""
    tenant: Name | None = None
    """Tenant to pause; not together with `type`."""
    reason: Annotated[str, Meta(max_length=500)] = ""
    until: When | None = None
    """End of the pause; null for no end."""


class PauseQuery(Query):
    """Pause to end."""

    type: Name | None = None
    """Type to resume; not together with `tenant`."""
    tenant: Name | None = None
    """Tenant to resume; not together with `type`."""


class PauseFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a pause."""

    kind: PauseName
    """Kind of the paused object."""
    name: str
    """Name of the type or tenant."""
    reason: str
    until: TimeT | None
    """End of the pause; null if it has none."""
    since: TimeT
    """Start of the pause."""
    by: str
    """Caller who paused it."""


class PauseOut(PauseFields[Time], frozen=True):
    """Paused type or tenant."""


class PauseList(Struct, frozen=True):
    """Paused types and tenants; queues list their own pauses."""

    items: list[PauseOut]
    next_cursor: str | None = None
    """Always null: the list has one page."""


def limit_name(body: SetLimit) -> LimitName:
    """Return the name of the limit that the request sets."""
    if body.concurrency_key is not None:
        if body.tenant is None or body.queue is not None:
            raise Invalid("concurrency_key: give its tenant too, and no queue", pointer="/concurrency_key")
        return key_limit(body.tenant, body.concurrency_key)
    if (body.queue is None) == (body.tenant is None):
        raise Invalid("queue: give a queue, or a tenant, or a tenant and a concurrency_key", pointer="/queue")
    return queue_limit(body.queue) if body.queue is not None else tenant_limit(body.tenant or "")


def rate_of(rate: RateShape | None) -> Rate | None:
    """Parse a rate limit. Raises `Invalid`."""
    if rate is None:
        return None
    per = span(rate.per, "/rate/per", RATE_PERIOD) or Duration(0)
    return Rate(rate.limit, per, rate.limit if isinstance(rate.burst, UnsetType) else rate.burst)


def rate_out(rate: Rate | None) -> RateOut | None:
    """Render a rate limit."""
    return None if rate is None else RateOut(rate.limit, in_seconds(rate.per), rate.burst)


def limit_out(limit: Limit, now: Instant) -> LimitOut:
    """Render a limit."""
    kind, tenant, name = limit.of
    bounded = limit.is_set or kind is LimitKind.KEY
    return LimitOut(
        kind=_KINDS[kind],
        queue=name if kind is LimitKind.QUEUE else None,
        tenant=tenant if kind is LimitKind.KEY else name if kind is LimitKind.TENANT else None,
        concurrency_key=name if kind is LimitKind.KEY else None,
        max_running=limit.max_running,
        rate=rate_out(limit.rate),
        used=limit.used,
        room=limit.room(now) if bounded else None,
        changed_at=rfc3339(limit.changed_at),
        changed_by=limit.changed_by,
    )


def kind_of(name: KindName | None) -> LimitKind | None:
    """Return the kind of limit that has this name in the API."""
    return None if name is None else LimitKind[name.upper()]


def pause_name(body: SetPause | PauseQuery) -> tuple[PauseKind, str]:
    """Return the kind and name of the type or tenant to pause or resume."""
    if body.type is not None and body.tenant is None:
        return PauseKind.TYPE, body.type
    if body.tenant is not None and body.type is None:
        return PauseKind.TENANT, body.tenant
    raise Invalid(
        "type: give either a type or a tenant; to pause a queue, use PATCH /v1/queues/{name}", pointer="/type"
    )


def pause_out(pause: Pause) -> PauseOut:
    """Render a pause."""
    until = None if pause.until is None else rfc3339(pause.until)
    kind: PauseName = "type" if pause.kind is PauseKind.TYPE else "tenant"
    return PauseOut(kind, pause.name, pause.reason, until, rfc3339(pause.changed_at), pause.changed_by)


_KINDS: dict[LimitKind, KindName] = {LimitKind.QUEUE: "queue", LimitKind.TENANT: "tenant", LimitKind.KEY: "key"}
