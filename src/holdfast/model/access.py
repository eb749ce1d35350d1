"""Callers, scopes, tenants and API keys."""

import enum
from typing import NamedTuple

from holdfast.model.time import Duration, Instant

DEFAULT_TENANT = "default"


class Scope(enum.StrEnum):
    """Permission of an API key or token.

    `admin` permits everything: within its tenant, or for the whole installation if that is the default tenant.
    """

    SUBMIT = "submit"
    READ = "read"
    CANCEL = "cancel"
    WORKER = "worker"
    METRICS = "metrics"
    ADMIN = "admin"


class Caller(NamedTuple):
    """Authenticated caller of a request."""

    tenant: str
    scopes: frozenset[Scope]
    name: str
    """Name for logs and `by` fields: `key:…` or `token:…`, never the secret."""
    key: str | None = None
    """Id of the API key, or of the key that issued the token; revoking it revokes the token."""
    until: Instant | None = None
    """Expiry of the token."""
    signed_by: tuple[str | None, str] | None = None
    """Key id and algorithm that signed the token."""

    @property
    def is_admin(self) -> bool:
        """True if the caller administers the installation and may act for all tenants."""
        return administers_installation(self.tenant, self.scopes)

    @property
    def is_tenant_admin(self) -> bool:
        """True if the caller administers at least its own tenant."""
        return Scope.ADMIN in self.scopes


def administers_installation(tenant: str, scopes: frozenset[Scope]) -> bool:
    """Return True if credentials of this tenant with these scopes may act for all tenants."""
    return Scope.ADMIN in scopes and tenant == DEFAULT_TENANT


class Quotas(NamedTuple):
    """Quotas of a tenant. None means the default of the installation, which may be unlimited."""

    weight: int | None = None
    """Weight in fair scheduling, relative to other tenants."""
    rate: int | None = None
    """Maximum cost submitted per `rate_window`."""
    rate_window: Duration | None = None
    backlog: int | None = None
    """Maximum number of unfinished jobs."""
    queue_backlog: int | None = None
    """Maximum number of unfinished jobs per queue."""


class Tenant(NamedTuple):
    """Stored tenant. A tenant without a row has the default quotas."""

    name: str
    quotas: Quotas
    created_at: Instant


class NewApiKey(NamedTuple):
    """API key to insert; only the digest of its secret is stored."""

    id: str
    tenant: str
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    expires_at: Instant | None = None
    lifetime: Duration | None = None
    """Lifetime from insertion; `expires_at` takes precedence."""


class ApiKey(NamedTuple):
    """Stored API key."""

    id: str
    tenant: str
    name: str
    """Display name."""
    digest: bytes
    """SHA-256 of the secret."""
    scopes: frozenset[Scope]
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None
    """Approximate: the actual last use may be a few minutes later."""


class KeyPosition(NamedTuple):
    """Position of the last API key on a page."""

    created_at: Instant
    id: str
