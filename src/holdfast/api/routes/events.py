"""Streams of what changes."""

from typing import Annotated

from msgspec import Meta

from holdfast.api.events.event_stream import EventFilter, change_of, low_water_of
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Call, Route
from holdfast.model.access import Scope
from holdfast.policy.access import visible_tenant
from holdfast.wire import codec
from holdfast.wire.events import MEDIA_TYPE
from holdfast.wire.types import Name, Query

RESUME = {"Last-Event-ID": "The last id that came: go on after it, on whichever node."}


class EventQuery(Query):
    """Which events."""

    queue: Name | None = None
    type: Name | None = None
    job: Annotated[str, Meta(max_length=36, description="The id of one job.")] | None = None
    tenant: Name | None = None


async def events(call: Call[None, EventQuery]) -> HttpResponse | Stream:
    """What changes from now on, as server-sent events."""
    if call.request.method == "HEAD":
        return HttpResponse(None, media_type=MEDIA_TYPE)
    asked = call.query
    wanted = EventFilter(visible_tenant(call.caller, asked.tenant), asked.queue, asked.type)
    watched = None
    if asked.job is not None:
        job = (await call.service.engine.jobs.detail(codec.job_id(asked.job), tenant=wanted.tenant)).job
        wanted = wanted._replace(tenant=job.tenant, queue=job.queue, type=job.type, job=str(job.id))
        watched = change_of(job)
    last = low_water_of(call.request.header("last-event-id"))
    reader = call.service.streams.open(call.caller, wanted, last, watched)
    return Stream(reader, MEDIA_TYPE, {"x-accel-buffering": "no"}, reader.cut)


ROUTES = (
    Route(
        "GET", "/v1/events", Scope.READ, events, "What changes, as server-sent events", {200: MEDIA_TYPE},
        query=EventQuery, tag="events", headers=RESUME, refusals=(404,),
    ),
)  # fmt: skip
