"""Routes for tenants, API keys and tokens."""

from msgspec import UnsetType

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT, tenant_of
from holdfast.api.routing import ANY_CALLER, Route, RouteCall
from holdfast.errors import NotFound
from holdfast.model.access import Scope
from holdfast.model.time import rfc3339
from holdfast.policy.access import is_tenant, permit_granting, token_scopes, visible_tenant
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
from holdfast.wire.name_cursors import name_cursor, read_name_cursor
from holdfast.wire.problems import HttpError


async def list_tenants(call: RouteCall[None, TenantQuery]) -> HttpResponse | Stream:
    """List tenants by name."""
    query = call.query
    if not call.caller.is_admin:  # an administrator of a tenant sees that one
        own = await call.service.engine.access.tenant(call.caller.tenant)
        return HttpResponse(TenantPage([wire.tenant_out(own)] if own is not None else [], None))
    tenants = await call.service.engine.access.tenants(read_name_cursor(query.cursor), query.limit)
    next_cursor = name_cursor(tenants[-1].name) if len(tenants) == query.limit else None
    return HttpResponse(TenantPage([wire.tenant_out(tenant) for tenant in tenants], next_cursor))


async def create_tenant(call: RouteCall[NewTenant, None]) -> HttpResponse | Stream:
    """Create a tenant."""
    tenant = await call.service.engine.access.create_tenant(call.body.name, wire.quotas_of(call.body))
    return HttpResponse(wire.tenant_out(tenant), 201)


async def change_tenant(call: RouteCall[TenantChange, None]) -> HttpResponse | Stream:
    """Change the weight and quotas of a tenant."""
    name = call.path["name"]
    if not is_tenant(name):
        raise NotFound(f"there is no tenant {name[:40]!r}: GET /v1/tenants lists them")
    return HttpResponse(
        wire.tenant_out(await call.service.engine.access.change_tenant(name, wire.changes_of(call.body)))
    )


async def list_keys(call: RouteCall[None, KeyQuery]) -> HttpResponse | Stream:
    """List API keys, newest first, including revoked and expired ones."""
    query = call.query
    tenant = visible_tenant(call.caller, query.tenant)
    keys = await call.service.engine.access.keys(tenant, wire.read_key_cursor(query.cursor), query.limit)
    next_cursor = wire.key_cursor(keys[-1]) if len(keys) == query.limit else None
    return HttpResponse(KeyPage([wire.key_out(key) for key in keys], next_cursor))


async def create_key(call: RouteCall[NewKeyRequest, None]) -> HttpResponse | Stream:
    """Create an API key; the response is the only place that shows its secret."""
    body, scopes = call.body, wire.scopes_of(call.body.scopes)
    tenant = call.caller.tenant if isinstance(body.tenant, UnsetType) else body.tenant
    permit_granting(call.caller, tenant, scopes)
    key, token = await call.service.engine.access.create_key(
        tenant,
        body.name,
        scopes,
        expires_at=instant(body.expires_at),
        lifetime=wire.key_lifetime(body),
    )
    return HttpResponse(wire.key_made(key, token), 201)


async def revoke_key(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Revoke an API key and all tokens created with it."""
    key_id = call.path["id"]
    if not key_id.isascii() or not key_id.isalnum():
        raise NotFound(f"there is no API key {key_id[:40]!r}: GET /v1/keys lists them")
    tenant = visible_tenant(call.caller, None)
    return HttpResponse(wire.key_out(await call.service.engine.access.revoke_key(key_id, tenant=tenant)))


async def create_token(call: RouteCall[TokenRequest, None]) -> HttpResponse | Stream:
    """Create a short-lived token with the caller's scopes, or fewer."""
    scopes = None if call.body.scopes is None else wire.scopes_of(call.body.scopes)
    caller = call.caller._replace(tenant=tenant_of(call), scopes=token_scopes(call.caller, scopes))
    signed = await call.service.auth.token(caller, wire.token_lifetime(call.body))
    if signed is None:
        detail = "this node cannot sign tokens: set HOLDFAST_JWT_SECRET to at least 32 random bytes, on all nodes"
        raise HttpError(409, "no_jwt_secret", detail)
    token, until = signed
    return HttpResponse(TokenOut(token, "Bearer", caller.tenant, wire.scope_names(caller.scopes), rfc3339(until)), 201)


ROUTES = (
    Route(
        "GET", "/v1/tenants", Scope.ADMIN, list_tenants, "List tenants by name", {200: TenantPage}, query=TenantQuery,
        tag="access", tenant_admin=True,
    ),
    Route(
        "POST", "/v1/tenants", Scope.ADMIN, create_tenant, "Create a tenant", {201: TenantOut}, NewTenant, tag="access",
        error_statuses=(409,),
    ),
    Route(
        "PATCH", "/v1/tenants/{name}", Scope.ADMIN, change_tenant, "Change the weight and quotas of a tenant",
        {200: TenantOut}, TenantChange, tag="access",
    ),
    Route(
        "GET", "/v1/keys", Scope.ADMIN, list_keys, "List API keys, newest first", {200: KeyPage}, query=KeyQuery,
        tag="access", tenant_admin=True,
    ),
    Route(
        "POST", "/v1/keys", Scope.ADMIN, create_key, "Create an API key", {201: KeyMade}, NewKeyRequest, tag="access",
        tenant_admin=True,
    ),
    Route(
        "DELETE", "/v1/keys/{id}", Scope.ADMIN, revoke_key, "Revoke an API key and all tokens created with it",
        {200: KeyOut}, tag="access", tenant_admin=True,
    ),
    Route(
        "POST", "/v1/tokens", ANY_CALLER, create_token, "Create a short-lived token with the caller's scopes, or fewer",
        {201: TokenOut}, TokenRequest, tag="access", headers=TENANT, error_statuses=(409,),
    ),
)  # fmt: skip
