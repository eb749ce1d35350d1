"""Routes for health, metrics and the API description."""

import msgspec

from holdfast.api.docs_page import STYLE, STYLE_PATH, page, with_address
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.openapi import describe
from holdfast.api.routing import PUBLIC, Route, RouteCall
from holdfast.model.access import Scope
from holdfast.telemetry.metrics import MEDIA_TYPE, NodeStats, RedisStats, render_page


class Alive(msgspec.Struct, frozen=True):
    """Liveness of the process."""

    status: str = "ok"


class Ready(msgspec.Struct, frozen=True):
    """Readiness to serve requests."""

    ready: bool
    database: bool
    """True if the database responds."""
    schema: bool
    """True if this version works with the schema of the database."""


async def healthz(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report that the process is alive; does not check the database."""
    del call
    return HttpResponse(Alive())


async def readyz(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report whether the node can serve requests; 503 if not, and during shutdown."""
    if call.service.stopping.is_set():
        return HttpResponse(Ready(ready=False, database=True, schema=True), 503, {"retry-after": "1"})
    database, schema = await call.service.engine.ready()
    good = database and schema
    return HttpResponse(Ready(good, database, schema), 200 if good else 503, {} if good else {"retry-after": "2"})


async def metrics(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return metrics of the installation and of this node, in the Prometheus format."""
    service = call.service
    pool = service.engine.store.pool()
    node = NodeStats(service.rules.version, len(service.streams), pool.busy, pool.idle, pool.size)
    redis = RedisStats(*service.engine.coordination.status())
    sources = (await service.scrapes.installation(), node, redis, service.requests, service.events)
    return HttpResponse(render_page(source.collect() for source in sources), 200, {}, MEDIA_TYPE)


async def openapi(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the OpenAPI description of all routes."""
    routes = call.service.routes
    if "openapi" not in routes.pages:
        routes.pages["openapi"] = msgspec.json.encode(describe(routes.table, call.service.rules.version))
    return HttpResponse(routes.pages["openapi"])


async def docs(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the API reference as a page."""
    routes = call.service.routes
    if "docs" not in routes.pages:
        routes.pages["docs"] = page(routes.table, call.service.rules.version)
    headers = call.request.headers
    https = headers.get(b"x-forwarded-proto", b"").lower() == b"https" or call.service.rules.tls
    shown = with_address(routes.pages["docs"], headers.get(b"host", b""), call.service.rules.base_path, https=https)
    return HttpResponse(shown, 200, {}, "text/html; charset=utf-8")


async def docs_style(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the style sheet of the reference page."""
    del call
    return HttpResponse(STYLE, 200, {"cache-control": "no-cache"}, "text/css; charset=utf-8")


ROUTES = (
    Route("GET", "/healthz", PUBLIC, healthz, "Check that the process is alive", {200: Alive}, tag="node"),
    Route(
        "GET", "/readyz", PUBLIC, readyz, "Check that the node can serve requests", {200: Ready, 503: Ready}, tag="node"
    ),
    Route("GET", "/metrics", Scope.METRICS, metrics, "Metrics for Prometheus", {200: MEDIA_TYPE}, tag="node"),
    Route("GET", "/openapi.json", PUBLIC, openapi, "OpenAPI description", {200: dict}, tag="node"),
    Route("GET", "/docs", PUBLIC, docs, "API reference as a page", {200: "text/html"}, tag="node"),
    Route("GET", STYLE_PATH, PUBLIC, docs_style, "Style sheet of the API reference", {200: "text/css"}, tag="node"),
)

_PRIVATE_PATHS = ("/healthz", "/readyz", "/metrics")
PRIVATE_ROUTES = tuple(route._replace(scope=PUBLIC) for route in ROUTES if route.path in _PRIVATE_PATHS)
"""Routes of the private port for metrics, which need no key."""
