"""Tenants, keys and tokens."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT, tenant_of
from holdfast.api.routing import ANY_CALLER, Call, Route
from holdfast.errors import NotFound
from holdfast.model.access import Scope
from holdfast.model.time import rfc3339
from holdfast.policy.access import is_tenant, token_scopes
from holdfast.wire import access as wire
from holdfast.wire.access import (
    KeyMade,
    KeyOut,
    KeyPage,
    KeyQuery,
    NewKeyRequest,
    NewTenant,
    TenantChange,
    TenantOut,
    TenantPage,
    TenantQuery,
    TokenOut,
    TokenRequest,
)
from holdfast.wire.codec import instant
from holdfast.wire.problems import HttpError


async def list_tenants(call: Call[None, TenantQuery]) -> HttpResponse | Stream:
    """Tenants by name, page by page."""
    asked = call.query
    found = await call.service.engine.access.tenants(wire.read_tenant_cursor(asked.cursor), asked.limit)
    following = wire.tenant_cursor(found[-1].name) if len(found) == asked.limit else None
    return HttpResponse(TenantPage([wire.tenant_out(each) for each in found], following))


async def create_tenant(call: Call[NewTenant, None]) -> HttpResponse | Stream:
    """Enter a tenant."""
    made = await call.service.engine.access.create_tenant(call.body.name, wire.quotas_of(call.body))
    return HttpResponse(wire.tenant_out(made), 201)


async def change_tenant(call: Call[TenantChange, None]) -> HttpResponse | Stream:
    """Change what a tenant may have."""
    name = call.path["name"]
    if not is_tenant(name):
        raise NotFound(f"there is no tenant {name[:40]!r}")
    return HttpResponse(
        wire.tenant_out(await call.service.engine.access.change_tenant(name, wire.changes_of(call.body)))
    )


async def list_keys(call: Call[None, KeyQuery]) -> HttpResponse | Stream:
    """Keys, newest first, also those that are good no more."""
    asked = call.query
    before = wire.read_key_cursor(asked.cursor)
    found = await call.service.engine.access.keys(asked.tenant, before, asked.limit)
    following = wire.key_cursor(found[-1]) if len(found) == asked.limit else None
    return HttpResponse(KeyPage([wire.key_out(each) for each in found], following))


async def create_key(call: Call[NewKeyRequest, None]) -> HttpResponse | Stream:
    """Make a key; its token is shown this once."""
    asked = call.body
    key, token = await call.service.engine.access.create_key(
        asked.tenant,
        asked.name,
        wire.scopes_of(asked.scopes),
        expires_at=instant(asked.expires_at),
        lifetime=wire.key_life(asked),
    )
    return HttpResponse(wire.key_made(key, token), 201)


async def revoke_key(call: Call[None, None]) -> HttpResponse | Stream:
    """End a key, and all tokens that were made with it."""
    key_id = call.path["id"]
    if not key_id.isascii() or not key_id.isalnum():
        raise NotFound(f"there is no key {key_id[:40]!r}")
    return HttpResponse(wire.key_out(await call.service.engine.access.revoke_key(key_id)))


async def create_token(call: Call[TokenRequest, None]) -> HttpResponse | Stream:
    """Make a token that does what the caller's key does, or less, for a short while."""
    asked = None if call.body.scopes is None else wire.scopes_of(call.body.scopes)
    caller = call.caller._replace(tenant=tenant_of(call), scopes=token_scopes(call.caller, asked))
    made = await call.service.auth.token(caller, wire.token_life(call.body))
    if made is None:
        detail = "this node signs no tokens: set HOLDFAST_JWT_SECRET to a random text of 32 bytes or more, on all nodes"
        raise HttpError(409, "no_jwt_secret", detail)
    token, until = made
    return HttpResponse(TokenOut(token, "Bearer", caller.tenant, wire.scope_names(caller.scopes), rfc3339(until)), 201)


ROUTES = (
    Route(
        "GET", "/v1/tenants", Scope.ADMIN, list_tenants, "Tenants, by name", {200: TenantPage}, query=TenantQuery,
        tag="access",
    ),
    Route(
        "POST", "/v1/tenants", Scope.ADMIN, create_tenant, "Enter a tenant", {201: TenantOut}, NewTenant, tag="access",
        refusals=(409,),
    ),
    Route(
        "PATCH", "/v1/tenants/{name}", Scope.ADMIN, change_tenant, "Change what a tenant may have", {200: TenantOut},
        TenantChange, tag="access",
    ),
    Route(
        "GET", "/v1/keys", Scope.ADMIN, list_keys, "Keys, newest first", {200: KeyPage}, query=KeyQuery, tag="access"
    ),
    Route("POST", "/v1/keys", Scope.ADMIN, create_key, "Make a key", {201: KeyMade}, NewKeyRequest, tag="access"),
    Route(
        "DELETE", "/v1/keys/{id}", Scope.ADMIN, revoke_key, "End a key, and all tokens made with it", {200: KeyOut},
        tag="access",
    ),
    Route(
        "POST", "/v1/tokens", ANY_CALLER, create_token, "Make a short-lived token with the caller's rights, or fewer",
        {201: TokenOut}, TokenRequest, tag="access", headers=TENANT, refusals=(409,),
    ),
)  # fmt: skip
