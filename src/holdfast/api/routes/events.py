"""Route of the event stream."""

from typing import Annotated

from msgspec import Meta

from holdfast.api.events.event_stream import EventFilter, change_of, low_water_of
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Route, RouteCall
from holdfast.model.access import Scope
from holdfast.policy.access import visible_tenant
from holdfast.wire import codec
from holdfast.wire.events import MEDIA_TYPE
from holdfast.wire.types import Name, Query

RESUME = {"Last-Event-ID": "Id of the last event received; the stream resumes after it, on any node."}


class EventQuery(Query):
    """Filter of an event stream."""

    queue: Name | None = None
    type: Name | None = None
    job: Annotated[str, Meta(max_length=36, description="Id of one job to watch.")] | None = None
    tenant: Name | None = None


async def stream_events(call: RouteCall[None, EventQuery]) -> HttpResponse | Stream:
    """Stream changes of jobs and workers as server-sent events."""
    if call.request.method == "HEAD":
        return HttpResponse(None, media_type=MEDIA_TYPE)
    query = call.query
    event_filter = EventFilter(visible_tenant(call.caller, query.tenant), query.queue, query.type)
    watched = None
    if query.job is not None:
        job = (await call.service.engine.jobs.detail(codec.job_id(query.job), tenant=event_filter.tenant)).job
        event_filter = event_filter._replace(tenant=job.tenant, queue=job.queue, type=job.type, job=str(job.id))
        watched = change_of(job)
    last = low_water_of(call.request.header("last-event-id"))
    reader = call.service.streams.open(call.caller, event_filter, last, watched)
    return Stream(reader, MEDIA_TYPE, {"x-accel-buffering": "no"}, reader.cut)


ROUTES = (
    Route(
        "GET", "/v1/events", Scope.READ, stream_events, "Stream changes as server-sent events", {200: MEDIA_TYPE},
        query=EventQuery, tag="events", headers=RESUME, error_statuses=(404,),
    ),
)  # fmt: skip
