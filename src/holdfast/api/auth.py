"""Who is behind a request: the bearer of a key or of a token."""

import hmac
from hashlib import sha256
from typing import Protocol

from holdfast.api.http import Incoming
from holdfast.errors import Unauthorized
from holdfast.model.access import Caller, Scope


class Authenticator(Protocol):
    """Proves who sent a request."""

    async def caller(self, request: Incoming) -> Caller:
        """Whoever sent it; raises `Unauthorized`, in the same words whatever is wrong."""


def bearer(request: Incoming) -> str:
    """The key or token that came with a request."""
    scheme, _, secret = (request.header("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise unauthorized()
    return secret.strip()


def unauthorized() -> Unauthorized:
    """The one answer to whoever cannot be recognised."""
    return Unauthorized("send a good key or token: Authorization: Bearer …")


class AdminKey:
    """Knows one key, that of the installation's first administrator."""

    def __init__(self, key: str) -> None:
        self._digest = sha256(key.encode()).digest()
        self._admin = Caller("default", frozenset(Scope), "key:admin")

    async def caller(self, request: Incoming) -> Caller:
        """See `Authenticator`."""
        if not hmac.compare_digest(sha256(bearer(request).encode("latin-1", "replace")).digest(), self._digest):
            raise unauthorized()
        return self._admin
