"""Authentication of requests by API key or signed token."""

import asyncio
import hmac
import re
from collections import OrderedDict
from contextlib import nullcontext
from hashlib import sha256
from typing import NamedTuple, Protocol

from holdfast.api.auth.auth_throttle import ClientAddresses, FailureThrottle, throttle_key
from holdfast.api.auth.tokens import Tokens
from holdfast.api.http import HttpRequest
from holdfast.api.request_log import log_failed_authentication
from holdfast.engine.access import digest_of
from holdfast.engine.api_key_cache import ApiKeyCache
from holdfast.errors import RateLimited, Unauthorized
from holdfast.model.access import DEFAULT_TENANT, ApiKey, Caller, Scope
from holdfast.model.time import Duration, Instant
from holdfast.policy.tokens import MAX_TOKEN_LENGTH, restrict_to_key

_KEY = re.compile(r"hf_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)
_NO_DIGEST = bytes(32)

_MAX_THROTTLED_CHECKS = 2
"""Concurrent checks for throttled addresses, so that guesses use few database connections."""

_MAX_CACHED_CALLERS = 1_000
"""Maximum number of verified credentials in the cache; the oldest is evicted first."""


class Authenticator(Protocol):
    """Authenticates the caller of a request."""

    async def caller(self, request: HttpRequest) -> Caller:
        """Return the caller.

        Raises:
            Unauthorized: With the same message for every cause.
            RateLimited: After too many failures.
        """

    async def is_still_valid(self, caller: Caller) -> bool:
        """Return whether the caller's credentials would be accepted now; streams check it often."""

    def record_failure(self, request: HttpRequest) -> None:
        """Count and log a failed sign-in; raises `RateLimited` after too many failures."""

    async def token(self, caller: Caller, lifetime: Duration) -> tuple[str, Instant] | None:
        """Return a token for a caller and its expiry; None if this node has no signing key."""


def bearer(request: HttpRequest) -> str:
    """Return the bearer credential of a request. Raises `Unauthorized` if there is none."""
    scheme, _, secret = (request.header("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise unauthorized()
    return secret.strip()


def unauthorized() -> Unauthorized:
    """Return the error for every kind of failed authentication."""
    return Unauthorized("the API key or token is missing or not valid: send Authorization: Bearer …")


class AdminKey:
    """API key of the first administrator, from the settings."""

    def __init__(self, key: str) -> None:
        self._digest = sha256(key.encode()).digest()
        # Tokens name the id of the key that issued them, so changing the admin key invalidates its tokens.
        self.id = f"admin-{sha256(self._digest).hexdigest()[:16]}"
        self.caller = Caller(DEFAULT_TENANT, frozenset(Scope), "key:admin", self.id)

    def matches(self, text: str) -> bool:
        """Return whether this text is the key, in constant time."""
        return hmac.compare_digest(sha256(text.encode("latin-1", "replace")).digest(), self._digest)


class CredentialCheck(NamedTuple):
    """Result of checking a credential."""

    caller: Caller | None
    key: str | None = None
    """Id of the API key that the credential claims to be."""
    proof: ApiKey | None = None
    """API key that the credential proved to be."""


class VerifiedCaller(NamedTuple):
    """Cached result of a successful check."""

    caller: Caller
    key: ApiKey | None
    """API key as it was read from the database; None for the admin key, which never changes."""


class BearerAuthenticator(Authenticator):
    """Authenticator for the admin key, API keys in the database, and signed tokens."""

    def __init__(
        self,
        key_cache: ApiKeyCache,
        tokens: Tokens,
        *,
        admin: AdminKey | None,
        addresses: ClientAddresses,
        throttle: FailureThrottle,
    ) -> None:
        self._key_cache = key_cache
        self._tokens = tokens
        self._admin = admin
        self._addresses = addresses
        self._throttle = throttle
        self._throttled_checks = asyncio.Semaphore(_MAX_THROTTLED_CHECKS)
        self._verified: OrderedDict[bytes, VerifiedCaller] = OrderedDict()

    async def caller(self, request: HttpRequest) -> Caller:
        """Authenticate; after too many failures, further failures are throttled for up to a minute.

        Only failures are throttled: a caller with a valid credential is never locked out by others behind the same
        address, as behind a proxy.
        """
        cached = self._cached_caller(request)
        if cached is not None:
            return cached
        text = bearer(request)
        throttled = self._throttle.wait(f"address {throttle_key(self._addresses.of(request))}")
        async with self._throttled_checks if throttled else nullcontext():
            check = await self._check(text)
        if check.caller is not None:
            self._cache_caller(request, check)
            return check.caller
        self.record_failure(request, check.key)
        if check.key is not None:
            if wait := self._throttle.wait(f"key {check.key}"):
                raise _too_many(wait)
            self._throttle.record_failure(f"key {check.key}")
        raise unauthorized()

    def record_failure(self, request: HttpRequest, key_id: str | None = None) -> None:
        source = throttle_key(self._addresses.of(request))
        address = f"address {source}"
        if wait := self._throttle.wait(address):
            raise _too_many(wait)
        self._throttle.record_failure(address)
        log_failed_authentication(request, source, key_id, throttled=self._throttle.wait(address) > 0)

    async def is_still_valid(self, caller: Caller) -> bool:
        if caller.until is not None and await self._key_cache.now() >= caller.until:
            return False
        if caller.signed_by is not None and self._tokens.keys.find(caller.signed_by) is None:
            return False
        if caller.key is None or self._is_admin_key(caller.key):
            return True
        return await self._key_cache.valid_key(caller.key) is not None

    async def token(self, caller: Caller, lifetime: Duration) -> tuple[str, Instant] | None:
        return self._tokens.make(caller, await self._key_cache.now(), lifetime)

    def _cache_caller(self, request: HttpRequest, check: CredentialCheck) -> None:
        """Cache a verified key by its header, so that later requests need no hashing."""
        if check.caller is not None and (check.proof is not None or check.caller is self._admin_caller):
            self._verified[request.headers[b"authorization"]] = VerifiedCaller(check.caller, check.proof)
            if len(self._verified) > _MAX_CACHED_CALLERS:
                self._verified.popitem(last=False)

    def _cached_caller(self, request: HttpRequest) -> Caller | None:
        """Return the caller of a credential that was verified since its key was last reloaded.

        Keys are reloaded from the database every few seconds, so a revoked key is soon rejected.
        """
        verified = self._verified.get(request.headers.get(b"authorization", b""))
        if verified is None:
            return None
        return verified.caller if verified.key is None or self._key_cache.is_current(verified.key) else None

    async def _check(self, text: str) -> CredentialCheck:
        if self._admin is not None and self._admin.matches(text):
            return CredentialCheck(self._admin.caller)
        if key := _KEY.fullmatch(text):
            verified = await self._by_key(key[1], key[2])
            return CredentialCheck(None, key[1]) if verified is None else CredentialCheck(*verified)
        if self._tokens.keys and len(text) <= MAX_TOKEN_LENGTH and text.count(".") == 2:
            return CredentialCheck(await self._by_token(text))
        return CredentialCheck(None)

    async def _by_key(self, key_id: str, secret: str) -> tuple[Caller, str, ApiKey] | None:
        key = await self._key_cache.valid_key(key_id)
        # Compare even if there is no such key, so that timing does not reveal which ids exist.
        same = hmac.compare_digest(digest_of(secret), _NO_DIGEST if key is None else key.digest)
        if key is None or not same:
            return None
        await self._key_cache.record_use(key)
        return Caller(key.tenant, key.scopes, f"key:{key.id}", key.id), key.id, key

    async def _by_token(self, text: str) -> Caller | None:
        caller = self._tokens.read(text, await self._key_cache.now())
        if caller is None or caller.key is None or self._is_admin_key(caller.key):
            return caller
        key = await self._key_cache.valid_key(caller.key)
        return None if key is None else restrict_to_key(caller, key)

    @property
    def _admin_caller(self) -> Caller | None:
        return None if self._admin is None else self._admin.caller

    def _is_admin_key(self, key_id: str) -> bool:
        return self._admin is not None and key_id == self._admin.id


def _too_many(wait: float) -> RateLimited:
    return RateLimited("too many failed attempts: wait, then send a valid API key or token", retry_after=wait)
