"""Routes for health, metrics and the API description."""

import msgspec

from holdfast.api.docs_page import ADDRESS, STYLE, STYLE_PATH, page, with_address
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.openapi.document import DEFAULT_ADDRESS, describe
from holdfast.api.routing import PUBLIC, Route, RouteCall
from holdfast.model.access import Scope
from holdfast.telemetry.metrics import MEDIA_TYPE, NodeStats, RedisStats, render_page


class Alive(msgspec.Struct, frozen=True):
    """Liveness of the process."""

    status: str = "ok"
    """Always `ok`."""


class Ready(msgspec.Struct, frozen=True):
    """Readiness to serve requests."""

    ready: bool
    """True if the node can serve requests."""
    database: bool
    """True if the database responds."""
    schema: bool
    """True if this version works with the schema of the database."""


async def check_health(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report that the process is alive; does not check the database."""
    del call
    return HttpResponse(Alive())


async def check_readiness(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report whether the node can serve requests; 503 if not, and during shutdown."""
    if call.service.stopping.is_set():
        return HttpResponse(Ready(ready=False, database=True, schema=True), 503, {"retry-after": "1"})
    database, schema = await call.service.engine.ready()
    good = database and schema
    return HttpResponse(Ready(good, database, schema), 200 if good else 503, {} if good else {"retry-after": "2"})


async def get_metrics(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return metrics of the installation and of this node, in the Prometheus format."""
    service = call.service
    pool = service.engine.store.pool()
    node = NodeStats(service.rules.version, len(service.streams), pool.busy, pool.idle, pool.size)
    redis = RedisStats(*service.engine.coordination.status())
    sources = (await service.scrapes.installation(), node, redis, service.requests, service.events)
    return HttpResponse(render_page(source.collect() for source in sources), 200, {}, MEDIA_TYPE)


async def get_openapi(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the OpenAPI description of all routes."""
    routes = call.service.routes
    if "openapi" not in routes.pages:
        routes.pages["openapi"] = msgspec.json.encode(describe(routes.table, call.service.rules.version))
    return HttpResponse(_with_own_address(call, routes.pages["openapi"], DEFAULT_ADDRESS.encode()))


async def get_docs(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the API reference as a page."""
    routes = call.service.routes
    if "docs" not in routes.pages:
        routes.pages["docs"] = page(routes.table, call.service.rules.version)
    return HttpResponse(_with_own_address(call, routes.pages["docs"], ADDRESS), 200, {}, "text/html; charset=utf-8")


def _with_own_address(call: RouteCall[None, None], rendered: bytes, placeholder: bytes) -> bytes:
    """Return a page with the address by which the caller reached this node."""
    headers, rules = call.request.headers, call.service.rules
    https = headers.get(b"x-forwarded-proto", b"").lower() == b"https" or rules.tls
    return with_address(rendered, headers.get(b"host", b""), rules.base_path, https=https, placeholder=placeholder)


async def get_docs_style(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the style sheet of the reference page."""
    del call
    return HttpResponse(STYLE, 200, {"cache-control": "no-cache"}, "text/css; charset=utf-8")


ROUTES = (
    Route("GET", "/healthz", PUBLIC, check_health, "Check that the process is alive", {200: Alive}, tag="node"),
    Route(
        "GET",
        "/readyz",
        PUBLIC,
        check_readiness,
        "Check that the node can serve requests",
        {200: Ready, 503: Ready},
        tag="node",
    ),
    Route("GET", "/metrics", Scope.METRICS, get_metrics, "Metrics for Prometheus", {200: MEDIA_TYPE}, tag="node"),
    Route("GET", "/openapi.json", PUBLIC, get_openapi, "OpenAPI description", {200: dict}, tag="node"),
    Route("GET", "/docs", PUBLIC, get_docs, "API reference as a page", {200: "text/html"}, tag="node", described=False),
    Route(
        "GET",
        STYLE_PATH,
        PUBLIC,
        get_docs_style,
        "Style sheet of the API reference",
        {200: "text/css"},
        tag="node",
        described=False,
    ),
)

_PRIVATE_PATHS = ("/healthz", "/readyz", "/metrics")
PRIVATE_ROUTES = tuple(route._replace(scope=PUBLIC) for route in ROUTES if route.path in _PRIVATE_PATHS)
"""Routes of the private port for metrics, which need no key."""
