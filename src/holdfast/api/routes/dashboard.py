"""Routes of the dashboard: its page, its files, sign-in and the current caller."""

from holdfast.api import static_files
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import ANY_CALLER, PUBLIC, Route, RouteCall
from holdfast.api.static_files import CACHE_FOREVER, REVALIDATE, File
from holdfast.errors import NotFound, Unauthorized
from holdfast.model.access import DEFAULT_TENANT, Scope
from holdfast.model.time import rfc3339, seconds
from holdfast.wire import access as wire
from holdfast.wire.access import KeyMade, Me, SignIn

SIGN_IN_LIFETIME = seconds(12 * 3_600)
"""Lifetime of a key from a sign-in link: a working day."""

MAX_SIGN_IN_BYTES = 1_024
"""Size of a body that is read before the caller is known."""

NOT_BUILT = "this installation has no dashboard files: build them with ./dev dashboard"
CACHED = {"If-None-Match": "`ETag` of the cached copy."}


async def get_dashboard(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return the index page."""
    return _file_response(call, static_files.index(), NOT_BUILT, REVALIDATE)


async def get_dashboard_file(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return a file of the dashboard; its name contains a hash of its content."""
    return _file_response(
        call, static_files.asset(call.path["name"]), "there is no such file: reload the page", CACHE_FOREVER
    )


def _file_response(call: RouteCall[None, None], file: File | None, missing: str, cache_control: str) -> HttpResponse:
    if file is None:
        raise NotFound(missing)
    compressed = file.compressed if static_files.accepts_gzip(call.request.header("accept-encoding") or "") else None
    # Each encoding is its own representation, with its own tag.
    etag = file.etag if compressed is None else f"{file.etag}-gzip"
    headers = {"etag": f'"{etag}"', "cache-control": cache_control, "vary": "accept-encoding"}
    if static_files.is_cached(etag, call.request.header("if-none-match") or ""):
        return HttpResponse(None, 304, headers, file.media_type)
    if compressed is None:
        return HttpResponse(file.content, 200, headers, file.media_type)
    return HttpResponse(compressed, 200, headers | {"content-encoding": "gzip"}, file.media_type)


async def get_me(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Describe the caller, so that the dashboard shows only permitted actions."""
    caller, rules = call.caller, call.service.rules
    until = None if caller.until is None else rfc3339(caller.until)
    return HttpResponse(
        Me(caller.name, caller.tenant, wire.scope_names(caller.scopes), until, rules.version, rules.demo)
    )


async def sign_in(call: RouteCall[SignIn, None]) -> HttpResponse | Stream:
    """Exchange a single-use ticket for an administrator's API key that expires."""
    try:
        call.service.tickets.redeem(call.body.ticket)
    except Unauthorized:
        call.service.auth.record_failure(call.request)
        raise
    key, token = await call.service.engine.access.create_key(
        DEFAULT_TENANT, "dashboard, from the link of `up`", frozenset(Scope), lifetime=SIGN_IN_LIFETIME
    )
    return HttpResponse(wire.key_made(key, token), 201)


ROUTES = (
    Route(
        "GET", "/", PUBLIC, get_dashboard, "Dashboard page", {200: "text/html"}, tag="dashboard",
        error_statuses=(404,), described=False,
    ),
    Route(
        "GET", "/assets/{name}", PUBLIC, get_dashboard_file, "Dashboard file", {200: "application/octet-stream"},
        tag="dashboard", described=False,
    ),
    Route("GET", "/v1/me", ANY_CALLER, get_me, "Describe the caller and its scopes", {200: Me}, tag="access"),
    Route(
        "POST", "/v1/sign-in", PUBLIC, sign_in,
        "Exchange the ticket of `holdfast up`, once, for an API key valid for 12 hours", {201: KeyMade}, SignIn,
        body_limit=MAX_SIGN_IN_BYTES, tag="access", error_statuses=(401,),
    ),
)  # fmt: skip
