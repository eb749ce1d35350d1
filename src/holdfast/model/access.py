"""Who calls, what they may do, and what is kept of tenants and keys."""

import enum
from typing import NamedTuple

from holdfast.model.time import Duration, Instant

DEFAULT_TENANT = "default"


class Scope(enum.StrEnum):
    """What a key or token permits. `admin` permits everything, for all tenants."""

    SUBMIT = "submit"
    READ = "read"
    CANCEL = "cancel"
    WORKER = "worker"
    ADMIN = "admin"


class Caller(NamedTuple):
    """Whoever is behind a request, proven by a key or a token."""

    tenant: str
    scopes: frozenset[Scope]
    name: str
    """For logs and for `by` fields: `key:…` or `token:…`, never the secret."""
    key: str | None = None
    """The id of the key behind it, also behind a token that was made with one: it dies with the key."""
    until: Instant | None = None
    """When the token ends."""
    signed_by: tuple[str | None, str] | None = None
    """The key that a token was signed with, by its name and algorithm."""

    @property
    def is_admin(self) -> bool:
        """Whether all tenants are theirs."""
        return Scope.ADMIN in self.scopes


class Quotas(NamedTuple):
    """What a tenant may have. None is the installation's default, which may be no limit at all."""

    weight: int | None = None
    """Its share of the turns, against the weights of others."""
    rate: int | None = None
    """How much may be submitted in each `rate_window`, counted in cost."""
    rate_window: Duration | None = None
    backlog: int | None = None
    """How many unfinished jobs it may have."""
    queue_backlog: int | None = None
    """How many of them in any one queue."""


class Tenant(NamedTuple):
    """A tenant that is known. One that is not has all the defaults."""

    name: str
    quotas: Quotas
    created_at: Instant


class NewKey(NamedTuple):
    """A key to be kept: of its secret only the digest."""

    id: str
    tenant: str
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    expires_at: Instant | None = None
    lifetime: Duration | None = None
    """Counted from when it is kept; `expires_at` has precedence."""


class ApiKey(NamedTuple):
    """A key as it is kept."""

    id: str
    tenant: str
    name: str
    """What people call it."""
    digest: bytes
    """SHA-256 of the secret."""
    scopes: frozenset[Scope]
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None
    """Coarse: it may be a few minutes later than this."""


class KeyPosition(NamedTuple):
    """Where a page of keys ended."""

    created_at: Instant
    id: str
