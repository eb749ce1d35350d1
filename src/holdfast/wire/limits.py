"""The shapes of limits on what runs, and of what rests."""

from typing import Annotated, Literal

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
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.wire.codec import span
from holdfast.wire.types import Name, Query, RequestBody, Seconds, When

MaxRunning = Annotated[
    int, Meta(ge=0, le=1_000_000_000, description="How many jobs may run at once; 0 lets none start.")
]
Key = Annotated[str, Meta(min_length=1, max_length=255)]
KindName = Literal["queue", "tenant", "key"]
PauseName = Literal["type", "tenant"]

_SPANS = (seconds(0.001), seconds(86_400))


class RateShape(RequestBody):
    """So many starts in each span of time."""

    limit: Annotated[int, Meta(ge=1, le=1_000_000_000)]
    per: Seconds = 1
    burst: Annotated[int, Meta(ge=1, le=1_000_000_000)] | UnsetType = UNSET
    """How many may start at once after a rest; `limit` if it is left out."""


class SetLimit(RequestBody):
    """A limit: of a queue, of a tenant, or, with both `tenant` and `concurrency_key`, of a key.

    What is left out or null is not limited; of a key, one job runs at a time then.
    """

    queue: Name | None = None
    tenant: Name | None = None
    concurrency_key: Key | None = None
    max_running: MaxRunning | None = None
    rate: RateShape | None = None


class RateOut(Struct, frozen=True):
    """A rate of starts."""

    limit: int
    per: float
    """Seconds."""
    burst: int


class LimitOut(Struct, frozen=True):
    """A limit and how it stands."""

    kind: KindName
    queue: str | None
    tenant: str | None
    concurrency_key: str | None
    max_running: int | None
    rate: RateOut | None
    used: int
    """How many jobs run that it counts; of a key, those too that are about to."""
    room: int | None
    """How many may start now; null if any number may."""
    changed_at: str
    changed_by: str


class LimitList(Struct, frozen=True):
    """The limits that somebody set."""

    items: list[LimitOut]
    next_cursor: None = None


class LimitQuery(Query):
    """Which limits."""

    kind: KindName | None = None
    tenant: Name | None = None
    """Whose keys."""


class SetPause(RequestBody):
    """A type or a tenant, of which nothing is to be claimed; what runs goes on."""

    type: Name | None = None
    tenant: Name | None = None
    reason: Annotated[str, Meta(max_length=500)] = ""
    until: When | None = None


class PauseQuery(Query):
    """Which pause to end."""

    type: Name | None = None
    tenant: Name | None = None


class PauseOut(Struct, frozen=True):
    """What rests besides queues."""

    kind: PauseName
    name: str
    reason: str
    until: str | None
    since: str
    by: str


class PauseList(Struct, frozen=True):
    """All that rests besides queues."""

    items: list[PauseOut]
    next_cursor: None = None


def limit_name(asked: SetLimit) -> LimitName:
    """Which limit is meant."""
    if asked.concurrency_key is not None:
        if asked.tenant is None or asked.queue is not None:
            raise Invalid("concurrency_key: give the tenant whose key it is, and no queue", pointer="/concurrency_key")
        return key_limit(asked.tenant, asked.concurrency_key)
    if (asked.queue is None) == (asked.tenant is None):
        raise Invalid("queue: give a queue, or a tenant, or a tenant and a concurrency_key", pointer="/queue")
    return queue_limit(asked.queue) if asked.queue is not None else tenant_limit(asked.tenant or "")


def rate_of(asked: RateShape | None) -> Rate | None:
    """A rate as the engine keeps it."""
    if asked is None:
        return None
    per = span(asked.per, "/rate/per") or Duration(0)
    if not _SPANS[0] <= per <= _SPANS[1]:
        raise Invalid("rate.per: give a time from 1 ms to 86,400 s", pointer="/rate/per")
    return Rate(asked.limit, per, asked.limit if isinstance(asked.burst, UnsetType) else asked.burst)


def rate_out(rate: Rate | None) -> RateOut | None:
    """A rate as it is shown."""
    return None if rate is None else RateOut(rate.limit, in_seconds(rate.per), rate.burst)


def limit_out(limit: Limit, now: Instant) -> LimitOut:
    """A limit as it is shown."""
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
    """A kind by its name."""
    return None if name is None else LimitKind[name.upper()]


def pause_name(asked: SetPause | PauseQuery) -> tuple[PauseKind, str]:
    """What is to rest, or to rest no more."""
    if asked.type is not None and asked.tenant is None:
        return PauseKind.TYPE, asked.type
    if asked.tenant is not None and asked.type is None:
        return PauseKind.TENANT, asked.tenant
    raise Invalid(
        "type: give a type or a tenant, and not both; queues are paused at /v1/queues/{name}", pointer="/type"
    )


def pause_out(pause: Pause) -> PauseOut:
    """A pause as it is shown."""
    until = None if pause.until is None else rfc3339(pause.until)
    kind: PauseName = "type" if pause.kind is PauseKind.TYPE else "tenant"
    return PauseOut(kind, pause.name, pause.reason, until, rfc3339(pause.changed_at), pause.changed_by)


_KINDS: dict[LimitKind, KindName] = {LimitKind.QUEUE: "queue", LimitKind.TENANT: "tenant", LimitKind.KEY: "key"}
