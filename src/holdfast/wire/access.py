"""Types and codec of tenants, API keys and tokens."""

from base64 import urlsafe_b64encode
from typing import Annotated, Any, Generic, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid
from holdfast.model.access import ApiKey, KeyPosition, Quotas, Scope, Tenant
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.wire.codec import invalid_cursor
from holdfast.wire.durations import (
    KEY_LIFETIME,
    RATE_WINDOW,
    TOKEN_LIFETIME,
    KeyLifetime,
    RateWindow,
    TokenLifetime,
    span,
)
from holdfast.wire.name_cursors import read_name_cursor
from holdfast.wire.types import Name, Query, RequestBody, Time, TimeT, When

ScopeName = Literal["submit", "read", "cancel", "worker", "metrics", "admin"]
Scopes = Annotated[list[ScopeName], Meta(min_length=1, max_length=6)]
Weight = Annotated[int, Meta(ge=1, le=1_000, description="Share of service relative to the weights of other tenants.")]
Rate = Annotated[int, Meta(ge=1, le=10**12, description="Maximum cost submitted per `rate_window`.")]
MaxBacklog = Annotated[int, Meta(ge=0, le=10**12, description="Maximum number of unfinished jobs.")]
Cursor = Annotated[str, Meta(max_length=256)]
Limit = Annotated[int, Meta(ge=1, le=200)]


class NewTenant(RequestBody):
    """Tenant to create; omitted or null fields use the installation's defaults."""

    name: Name
    """Name of the tenant."""
    weight: Weight | None = None
    rate: Rate | None = None
    rate_window: RateWindow | None = None
    """Window of the rate quota."""
    backlog: MaxBacklog | None = None
    queue_backlog: MaxBacklog | None = None


class TenantChange(RequestBody):
    """Change of a tenant; null restores the installation's default.

    These quotas limit what is submitted and waits. To limit what runs, use `PUT /v1/limits` with `tenant`.
    """

    weight: Weight | UnsetType | None = UNSET
    rate: Rate | UnsetType | None = UNSET
    rate_window: RateWindow | UnsetType | None = UNSET
    """Window of the rate quota; null for the installation's default."""
    backlog: MaxBacklog | UnsetType | None = UNSET
    queue_backlog: MaxBacklog | UnsetType | None = UNSET


class TenantFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a tenant."""

    name: str
    """Name of the tenant."""
    weight: int | None
    rate: int | None
    """Maximum cost submitted per `rate_window`; null for the default."""
    rate_window: float | None
    """Seconds."""
    backlog: int | None
    queue_backlog: int | None
    created_at: TimeT


class TenantOut(TenantFields[Time], frozen=True):
    """A tenant. Null means the installation's default."""


class TenantPage(Struct, frozen=True):
    """Page of tenants, by name."""

    items: list[TenantOut]
    next_cursor: str | None


class TenantQuery(Query):
    """Page of a tenant list."""

    cursor: Cursor | None = None
    limit: Limit = 50


class NewKeyRequest(RequestBody):
    """API key to create."""

    scopes: Scopes
    """Permissions of the key."""
    name: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Name that says who uses the key."""
    tenant: Name | UnsetType = UNSET
    """Default: the tenant of the caller."""
    expires_at: When | None = None
    """Time at which the key expires; not together with `expires_in`."""
    expires_in: KeyLifetime | None = None
    """Time until the key expires; not together with `expires_at`. By default it does not expire."""


class KeyFields(Struct, Generic[TimeT], frozen=True):
    """Fields of an API key."""

    id: str
    """Id of the key, which is part of its token."""
    tenant: str
    name: str
    """Name that says who uses the key."""
    scopes: list[ScopeName]
    created_at: TimeT
    expires_at: TimeT | None
    revoked_at: TimeT | None
    """Time of the revocation; null if it is valid."""
    last_used_at: TimeT | None
    """Accurate to a few minutes."""


class KeyOut(KeyFields[Time], frozen=True):
    """An API key, without its secret."""


class KeyMade(KeyOut, frozen=True):
    """A new API key. Only this response contains its token."""

    token: str
    """Send it as `Authorization: Bearer …`. Store it: it is not shown again."""


class KeyPage(Struct, frozen=True):
    """Page of API keys, newest first."""

    items: list[KeyOut]
    next_cursor: str | None


class KeyQuery(Query):
    """Filter and page of a list of API keys."""

    tenant: Name | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class TokenRequest(RequestBody):
    """Token to create: the scopes of the API key or fewer, for 15 minutes or up to an hour."""

    scopes: Scopes | None = None
    """Permissions of the token; null for those of the caller."""
    expires_in: TokenLifetime = 900
    """Time until the token expires."""


class TokenOut(Struct, frozen=True):
    """New token; it is valid until it expires or its API key is revoked."""

    token: str
    """Send it as `Authorization: Bearer …`."""
    token_type: Literal["Bearer"]
    """How to send the token."""
    tenant: str
    """Tenant that the token acts for."""
    scopes: list[ScopeName]
    expires_at: Time


class Me(Struct, frozen=True):
    """Caller and its scopes."""

    name: str
    """Name of the API key or token."""
    tenant: str
    """Tenant of the caller."""
    scopes: list[ScopeName]
    until: Time | None
    """Expiry of the token; null for an API key."""
    version: str
    """Version of this node."""
    demo: bool
    """True in demo mode."""


class SignIn(RequestBody):
    """Ticket from the link that `holdfast up` prints."""

    ticket: Annotated[str, Meta(min_length=1, max_length=128)]
    """Ticket of the link, valid once."""


def quotas_of(body: NewTenant) -> Quotas:
    """Return the quotas of a new tenant."""
    return Quotas(**_quotas({name: getattr(body, name) for name in Quotas._fields}))


def changes_of(body: TenantChange) -> dict[str, int | None]:
    """Return the quotas to change."""
    fields = {name: getattr(body, name) for name in Quotas._fields}
    return _quotas({name: value for name, value in fields.items() if value is not UNSET})


def key_lifetime(body: NewKeyRequest) -> Duration | None:
    """Return the lifetime of a new API key; None if `expires_in` is omitted."""
    if body.expires_in is None:
        return None
    if body.expires_at is not None:
        raise Invalid("expires_in: give this or expires_at, not both", pointer="/expires_in")
    return span(body.expires_in, "/expires_in", KEY_LIFETIME)


def token_lifetime(body: TokenRequest) -> Duration:
    """Return the lifetime of a new token."""
    return span(body.expires_in, "/expires_in", TOKEN_LIFETIME) or Duration(0)


def scopes_of(names: list[ScopeName]) -> frozenset[Scope]:
    """Convert names to scopes."""
    return frozenset(Scope(name) for name in names)


def scope_names(scopes: frozenset[Scope]) -> list[ScopeName]:
    """Return the names of scopes, in the order of their definition."""
    return [scope.value for scope in Scope if scope in scopes]


def tenant_out(tenant: Tenant) -> TenantOut:
    """Render a tenant."""
    weight, rate, window, backlog, queue_backlog = tenant.quotas
    window_s = None if window is None else in_seconds(window)
    return TenantOut(tenant.name, weight, rate, window_s, backlog, queue_backlog, rfc3339(tenant.created_at))


def key_out(key: ApiKey) -> KeyOut:
    """Render an API key without its secret."""
    return KeyOut(**_key(key))


def key_made(key: ApiKey, token: str) -> KeyMade:
    """Render a new API key with its token."""
    return KeyMade(**_key(key), token=token)


def key_cursor(last: ApiKey) -> str:
    """Return the cursor after this API key."""
    return urlsafe_b64encode(f"{last.created_at} {last.id}".encode()).decode().rstrip("=")


def read_key_cursor(text: str | None) -> KeyPosition | None:
    """Parse the cursor of a page of API keys."""
    if text is None:
        return None
    at, _, key_id = read_name_cursor(text).partition(" ")
    if not at.isdigit() or len(at) > 18 or not key_id.isalnum():
        raise invalid_cursor()
    return KeyPosition(Instant(int(at)), key_id)


def _key(key: ApiKey) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    rendered = {name: None if getattr(key, name) is None else rfc3339(getattr(key, name)) for name in times}
    return {"id": key.id, "tenant": key.tenant, "name": key.name, "scopes": scope_names(key.scopes), **rendered}


def _quotas(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("rate_window") is not None:
        fields["rate_window"] = span(fields["rate_window"], "/rate_window", RATE_WINDOW)
    return fields
