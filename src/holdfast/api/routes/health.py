"""Whether the node lives, whether it is ready, and what the API looks like."""

import msgspec

from holdfast.api.docs_page import STYLE, STYLE_PATH, page
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.openapi import describe
from holdfast.api.routing import PUBLIC, Call, Route
from holdfast.model.access import Scope
from holdfast.telemetry.metrics import MEDIA_TYPE, NodeStats, RedisStats, render_page


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "ok"


class Ready(msgspec.Struct, frozen=True):
    """Whether requests can be served now."""

    ready: bool
    database: bool
    """It answers."""
    schema: bool
    """It is the one this version works with."""


async def healthz(call: Call[None, None]) -> HttpResponse | Stream:
    """Constant: it says that the process lives and nothing about the database."""
    del call
    return HttpResponse(Alive())


async def readyz(call: Call[None, None]) -> HttpResponse | Stream:
    """Asks the database each time."""
    if call.service.stopping.is_set():
        return HttpResponse(Ready(ready=False, database=True, schema=True), 503, {"retry-after": "1"})
    database, schema = await call.service.engine.ready()
    good = database and schema
    return HttpResponse(Ready(good, database, schema), 200 if good else 503, {} if good else {"retry-after": "2"})


async def metrics(call: Call[None, None]) -> HttpResponse | Stream:
    """For Prometheus: figures of the installation, and of this node."""
    service = call.service
    pool = service.engine.store.pool()
    node = NodeStats(service.rules.version, len(service.streams), pool.busy, pool.idle, pool.most)
    redis = RedisStats(*service.engine.coordination.figures())
    sources = (await service.scrapes.installation(), node, redis, service.requests, service.events)
    return HttpResponse(render_page(source.collect() for source in sources), 200, {}, MEDIA_TYPE)


async def openapi(call: Call[None, None]) -> HttpResponse | Stream:
    """The description of all that is here."""
    routes = call.service.routes
    if "openapi" not in routes.pages:
        routes.pages["openapi"] = msgspec.json.encode(describe(routes.table, call.service.rules.version))
    return HttpResponse(routes.pages["openapi"])


async def docs(call: Call[None, None]) -> HttpResponse | Stream:
    """The same for people."""
    routes = call.service.routes
    if "docs" not in routes.pages:
        routes.pages["docs"] = page(routes.table, call.service.rules.version)
    return HttpResponse(routes.pages["docs"], 200, {}, "text/html; charset=utf-8")


async def docs_style(call: Call[None, None]) -> HttpResponse | Stream:
    """How that page looks."""
    del call
    return HttpResponse(STYLE, 200, {"cache-control": "no-cache"}, "text/css; charset=utf-8")


ROUTES = (
    Route("GET", "/healthz", PUBLIC, healthz, "Whether the process lives", {200: Alive}, tag="node"),
    Route("GET", "/readyz", PUBLIC, readyz, "Whether it can serve requests", {200: Ready, 503: Ready}, tag="node"),
    Route("GET", "/metrics", Scope.ADMIN, metrics, "Figures for Prometheus", {200: MEDIA_TYPE}, tag="node"),
    Route("GET", "/openapi.json", PUBLIC, openapi, "This description", {200: dict}, tag="node"),
    Route("GET", "/docs", PUBLIC, docs, "The API for people", {200: "text/html"}, tag="node"),
    Route("GET", STYLE_PATH, PUBLIC, docs_style, "How that page looks", {200: "text/css"}, tag="node"),
)
