"""The shapes of tenants, keys and tokens, and how they relate to the model."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any, Generic, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid
from holdfast.model.access import DEFAULT_TENANT, ApiKey, KeyPosition, Quotas, Scope, Tenant
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.wire.codec import span
from holdfast.wire.types import Name, Query, RequestBody, Seconds, TimeT, When

ScopeName = Literal["submit", "read", "cancel", "worker", "admin"]
Scopes = Annotated[list[ScopeName], Meta(min_length=1, max_length=5)]
Weight = Annotated[int, Meta(ge=1, le=1_000, description="Its share of the turns, against the weights of others.")]
Rate = Annotated[int, Meta(ge=1, le=10**12, description="What may be submitted in each `rate_window`, in cost.")]
MaxBacklog = Annotated[int, Meta(ge=0, le=10**12, description="How many unfinished jobs there may be.")]
Cursor = Annotated[str, Meta(max_length=256)]
Limit = Annotated[int, Meta(ge=1, le=200)]

_WINDOWS = (seconds(1), seconds(86_400))
_LIVES = (seconds(1), seconds(3_600))
_KEY_LIVES = (seconds(1), seconds(3_650 * 86_400))


class NewTenant(RequestBody):
    """A tenant to enter. What is left out or null is the installation's default."""

    name: Name
    weight: Weight | None = None
    rate: Rate | None = None
    rate_window: Seconds | None = None
    backlog: MaxBacklog | None = None
    queue_backlog: MaxBacklog | None = None


class TenantChange(RequestBody):
    """What to change. Null goes back to the installation's default.

    These bound what is submitted and waits; what runs is bounded by `PUT /v1/limits`, with its `tenant`.
    """

    weight: Weight | UnsetType | None = UNSET
    rate: Rate | UnsetType | None = UNSET
    rate_window: Seconds | UnsetType | None = UNSET
    backlog: MaxBacklog | UnsetType | None = UNSET
    queue_backlog: MaxBacklog | UnsetType | None = UNSET


class TenantFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a tenant."""

    name: str
    weight: int | None
    rate: int | None
    rate_window: float | None
    """Seconds."""
    backlog: int | None
    queue_backlog: int | None
    created_at: TimeT


class TenantOut(TenantFields[str], frozen=True):
    """A tenant. Null means the installation's default."""


class TenantPage(Struct, frozen=True):
    """A page of tenants, by name."""

    items: list[TenantOut]
    next_cursor: str | None


class TenantQuery(Query):
    """Where to go on."""

    cursor: Cursor | None = None
    limit: Limit = 50


class NewKeyRequest(RequestBody):
    """A key to make."""

    scopes: Scopes
    name: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
    tenant: Name = DEFAULT_TENANT
    expires_at: When | None = None
    expires_in: Seconds | None = None


class KeyFields(Struct, Generic[TimeT], frozen=True):
    """Fields of an API key."""

    id: str
    tenant: str
    name: str
    scopes: list[ScopeName]
    created_at: TimeT
    expires_at: TimeT | None
    revoked_at: TimeT | None
    last_used_at: TimeT | None
    """To within minutes."""


class KeyOut(KeyFields[str], frozen=True):
    """An API key, without its secret."""


class KeyMade(KeyOut, frozen=True):
    """A new API key. Only this response contains its token."""

    token: str
    """Send it as `Authorization: Bearer …`. Store it: it is not shown again."""


class KeyPage(Struct, frozen=True):
    """A page of keys, newest first."""

    items: list[KeyOut]
    next_cursor: str | None


class KeyQuery(Query):
    """Whose keys, and where to go on."""

    tenant: Name | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class TokenRequest(RequestBody):
    """A token to make: with the scopes of the key, or fewer; for 15 minutes, or at most an hour."""

    scopes: Scopes | None = None
    expires_in: Seconds = 900


class TokenOut(Struct, frozen=True):
    """A token that was made. It ends with the key it was made with, at the latest when it expires."""

    token: str
    token_type: Literal["Bearer"]
    tenant: str
    scopes: list[ScopeName]
    expires_at: str


class Me(Struct, frozen=True):
    """Who a caller is, and what they may do here."""

    name: str
    tenant: str
    scopes: list[ScopeName]
    until: str | None
    """When the token ends; null for a key."""
    version: str
    """Of this node."""
    demo: bool
    """Whether this node gives itself something to do."""


class SignIn(RequestBody):
    """A ticket, as `holdfast up` prints it in its link."""

    ticket: Annotated[str, Meta(min_length=1, max_length=128)]


def quotas_of(asked: NewTenant) -> Quotas:
    """What a new tenant may have."""
    return Quotas(**_quotas({name: getattr(asked, name) for name in Quotas._fields}))


def changes_of(asked: TenantChange) -> dict[str, int | None]:
    """What is to be changed."""
    given = {name: getattr(asked, name) for name in Quotas._fields}
    return _quotas({name: value for name, value in given.items() if value is not UNSET})


def key_life(asked: NewKeyRequest) -> Duration | None:
    """For how long a key is to be good, where that is how it was said."""
    if asked.expires_in is None:
        return None
    if asked.expires_at is not None:
        raise Invalid("expires_in: give this or expires_at, not both", pointer="/expires_in")
    return _span(asked.expires_in, "expires_in", *_KEY_LIVES)


def token_life(asked: TokenRequest) -> Duration:
    """For how long a token is to be good."""
    return _span(asked.expires_in, "expires_in", *_LIVES)


def scopes_of(names: list[ScopeName]) -> frozenset[Scope]:
    """Scopes by their names."""
    return frozenset(Scope(name) for name in names)


def scope_names(scopes: frozenset[Scope]) -> list[ScopeName]:
    """Scopes as they are shown, in the order of their meaning."""
    return [scope.value for scope in Scope if scope in scopes]


def tenant_out(tenant: Tenant) -> TenantOut:
    """A tenant as it is shown."""
    weight, rate, window, backlog, queue_backlog = tenant.quotas
    shown = None if window is None else in_seconds(window)
    return TenantOut(tenant.name, weight, rate, shown, backlog, queue_backlog, rfc3339(tenant.created_at))


def key_out(key: ApiKey) -> KeyOut:
    """A key as it is shown."""
    return KeyOut(**_key(key))


def key_made(key: ApiKey, token: str) -> KeyMade:
    """A key as it is shown once."""
    return KeyMade(**_key(key), token=token)


def tenant_cursor(last: str) -> str:
    """Where the next page of tenants begins."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def read_tenant_cursor(text: str | None) -> str:
    """A cursor as a page of tenants gave it."""
    return "" if text is None else _decoded(text)


def key_cursor(last: ApiKey) -> str:
    """Where the next page of keys begins."""
    return urlsafe_b64encode(f"{last.created_at} {last.id}".encode()).decode().rstrip("=")


def read_key_cursor(text: str | None) -> KeyPosition | None:
    """A cursor as a page of keys gave it."""
    if text is None:
        return None
    at, _, key_id = _decoded(text).partition(" ")
    if not at.isdigit() or len(at) > 18 or not key_id.isalnum():
        raise _no_cursor()
    return KeyPosition(Instant(int(at)), key_id)


def _key(key: ApiKey) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    shown = {name: None if getattr(key, name) is None else rfc3339(getattr(key, name)) for name in times}
    return {"id": key.id, "tenant": key.tenant, "name": key.name, "scopes": scope_names(key.scopes), **shown}


def _quotas(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("rate_window") is not None:
        given["rate_window"] = _span(given["rate_window"], "rate_window", *_WINDOWS)
    return given


def _span(value: float | str, name: str, least: Duration, most: Duration) -> Duration:
    found = span(value, f"/{name}") or Duration(0)
    if not least <= found <= most:
        bounds = f"from {in_seconds(least):,.0f} to {in_seconds(most):,.0f} seconds"
        raise Invalid(f"{name}: give a time {bounds}", pointer=f"/{name}")
    return found


def _decoded(text: str) -> str:
    try:
        found = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except (ValueError, binascii.Error):
        raise _no_cursor() from None
    if not found.isprintable():
        raise _no_cursor()
    return found


def _no_cursor() -> Invalid:
    return Invalid("the cursor is none that a page gave: begin without one", pointer="/cursor")
