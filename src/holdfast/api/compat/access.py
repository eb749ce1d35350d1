"""Authentication of calls to the source systems, as each of them documents it."""

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.api.auth.auth_throttle import ClientAddresses
from holdfast.api.auth.authenticator import Authenticator, unauthorized
from holdfast.api.http import HttpRequest
from holdfast.errors import Unauthorized
from holdfast.model.access import DEFAULT_TENANT, Caller, Scope

ANONYMOUS_SCOPES = frozenset({Scope.SUBMIT, Scope.READ, Scope.CANCEL})

_FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
"""Headers of proxies: behind a proxy on this machine, every client seems to be local."""


async def by_token(auth: Authenticator, request: HttpRequest) -> Caller:
    """Authenticate with a signed token (JWT); API keys are refused."""
    caller = await auth.caller(request)
    if not caller.name.startswith("token:"):
        raise unauthorized()
    return caller


async def by_key(auth: Authenticator, request: HttpRequest) -> Caller:
    """Authenticate with an API key in `X-API-Key`, or with any bearer credential."""
    key = request.headers.get(b"x-api-key")
    if key is not None and b"authorization" not in request.headers:
        request.headers = {**request.headers, b"authorization": b"Bearer " + key}
    return await auth.caller(request)


class AnonymousAccess(NamedTuple):
    """Rule for calls without credentials."""

    tenant: str | None
    """Tenant of such calls from any address; None accepts them from this machine only."""
    addresses: ClientAddresses
    origins: tuple[str, ...] = ()
    """Web origins that may call the API from a browser."""

    async def authenticate(self, auth: Authenticator, request: HttpRequest) -> Caller:
        """Return the caller: by its credentials if it has any."""
        if b"authorization" in request.headers or b"x-api-key" in request.headers:
            return await by_key(auth, request)
        if self.tenant is None and not self._is_local(request):
            raise Unauthorized(
                "calls without credentials are accepted from this machine only: send Authorization: Bearer …, or ask "
                "the operator to set HOLDFAST_COMPAT_TENANT to the tenant of such calls"
            )
        tenant = self.tenant or DEFAULT_TENANT
        return Caller(tenant, ANONYMOUS_SCOPES, "compat:anonymous")

    def _is_local(self, request: HttpRequest) -> bool:
        """Return whether a program on this machine sent the request, and not a page of another site.

        A page can have its host name resolved to this machine (DNS rebinding), so `Host` and `Origin` count too.
        """
        if any(name in request.headers for name in _FORWARDED) or not _is_loopback(self.addresses.of(request)):
            return False
        origin = request.header("origin")
        if origin is not None and origin not in self.origins and not _is_loopback(urlsplit(origin).hostname or ""):
            return False
        return _is_loopback(urlsplit(f"//{request.header('host') or ''}").hostname or "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
