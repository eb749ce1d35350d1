"""Who calls, and what they may do."""

import enum
from typing import NamedTuple


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

    @property
    def is_admin(self) -> bool:
        """Whether all tenants are theirs."""
        return Scope.ADMIN in self.scopes
