"""The dashboard: its page, its files, and what it asks first."""

from holdfast.api import static_files
from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import ANY_CALLER, PUBLIC, Call, Route
from holdfast.api.static_files import CACHE_FOREVER, LIMIT_RECHECK_INTERVAL_S, File
from holdfast.errors import NotFound
from holdfast.model.access import DEFAULT_TENANT, Scope
from holdfast.model.time import rfc3339, seconds
from holdfast.wire import access as wire
from holdfast.wire.access import KeyMade, Me, SignIn

SIGN_IN_LIFETIME = seconds(12 * 3_600)
"""A working day: after it, whoever came by a link signs in again."""

NOT_BUILT = "the dashboard was not built into this installation: run ./dev dashboard"
CACHED = {"If-None-Match": "The `ETag` that is held already."}


async def dashboard(call: Call[None, None]) -> HttpResponse | Stream:
    """The page that starts it."""
    return _answer(call, static_files.index(), NOT_BUILT, LIMIT_RECHECK_INTERVAL_S)


async def dashboard_file(call: Call[None, None]) -> HttpResponse | Stream:
    """A file of it; its name changes with its content."""
    return _answer(
        call, static_files.asset(call.path["name"]), "there is no such file: load the page again", CACHE_FOREVER
    )


def _answer(call: Call[None, None], file: File | None, missing: str, kept: str) -> HttpResponse:
    if file is None:
        raise NotFound(missing)
    packed = file.compressed if static_files.accepts_gzip(call.request.header("accept-encoding") or "") else None
    # Two encodings are two representations, each with a tag of its own.
    etag = file.etag if packed is None else f"{file.etag}-gzip"
    headers = {"etag": f'"{etag}"', "cache-control": kept, "vary": "accept-encoding"}
    if static_files.is_known(etag, call.request.header("if-none-match") or ""):
        return HttpResponse(None, 304, headers, file.media_type)
    if packed is None:
        return HttpResponse(file.content, 200, headers, file.media_type)
    return HttpResponse(packed, 200, headers | {"content-encoding": "gzip"}, file.media_type)


async def me(call: Call[None, None]) -> HttpResponse | Stream:
    """Who the caller is, so that a page shows what may be done and hides what may not."""
    caller, rules = call.caller, call.service.rules
    until = None if caller.until is None else rfc3339(caller.until)
    return HttpResponse(
        Me(caller.name, caller.tenant, wire.scope_names(caller.scopes), until, rules.version, rules.demo)
    )


async def sign_in(call: Call[SignIn, None]) -> HttpResponse | Stream:
    """Take a ticket, once, for a key of the administrator that ends by itself."""
    call.service.tickets.redeem(call.body.ticket)
    key, token = await call.service.engine.access.create_key(
        DEFAULT_TENANT, "dashboard, by the link of `up`", frozenset(Scope), lifetime=SIGN_IN_LIFETIME
    )
    return HttpResponse(wire.key_made(key, token), 201)


ROUTES = (
    Route("GET", "/", PUBLIC, dashboard, "The dashboard", {200: "text/html"}, tag="dashboard", refusals=(404,)),
    Route(
        "GET", "/assets/{name}", PUBLIC, dashboard_file, "A file of the dashboard", {200: "application/octet-stream"},
        tag="dashboard",
    ),
    Route("GET", "/v1/me", ANY_CALLER, me, "Who the caller is, and what they may do", {200: Me}, tag="access"),
    Route(
        "POST", "/v1/sign-in", PUBLIC, sign_in, "Take the ticket of `holdfast up`, once, for a key of 12 hours",
        {201: KeyMade}, SignIn, tag="access", refusals=(401,),
    ),
)  # fmt: skip
