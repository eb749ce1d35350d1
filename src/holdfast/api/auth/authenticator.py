"""Who is behind a request: the bearer of a key or of a token."""

import hmac
import re
from collections import OrderedDict
from hashlib import sha256
from typing import NamedTuple, Protocol

from holdfast.api.auth.auth_throttle import ClientAddresses, FailureThrottle, throttle_key
from holdfast.api.auth.tokens import Tokens
from holdfast.api.http import HttpRequest
from holdfast.engine.access import digest_of
from holdfast.engine.api_key_cache import ApiKeyCache
from holdfast.errors import RateLimited, Unauthorized
from holdfast.model.access import DEFAULT_TENANT, ApiKey, Caller, Scope
from holdfast.model.time import Duration, Instant
from holdfast.policy.tokens import MAX_TOKEN_LENGTH, restrict_to_key

_KEY = re.compile(r"hf_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)
_NO_DIGEST = bytes(32)

_MAX_CACHED_CALLERS = 1_000
"""Texts that are remembered as good ones; the longest ago are forgotten when there are more."""


class Authenticator(Protocol):
    """Proves who sent a request."""

    async def caller(self, request: HttpRequest) -> Caller:
        """Whoever sent it; raises `Unauthorized`, in the same words whatever is wrong, or `RateLimited`."""

    async def still_good(self, caller: Caller) -> bool:
        """Whether whatever a caller came with would be accepted now: for streams, which ask every few seconds."""

    async def token(self, caller: Caller, life: Duration) -> tuple[str, Instant] | None:
        """A token for a caller, and when it ends; None when this node has nothing to sign one with."""


def bearer(request: HttpRequest) -> str:
    """The key or token that came with a request."""
    scheme, _, secret = (request.header("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise unauthorized()
    return secret.strip()


def unauthorized() -> Unauthorized:
    """The one answer to whoever cannot be recognised."""
    return Unauthorized("send a good key or token: Authorization: Bearer …")


class AdminKey:
    """The key of the installation's first administrator: any text, from the settings."""

    def __init__(self, key: str) -> None:
        self._digest = sha256(key.encode()).digest()
        # What tokens name that were made with it: another key has another id, and they are good no more.
        self.id = f"admin-{sha256(self._digest).hexdigest()[:16]}"
        self.caller = Caller(DEFAULT_TENANT, frozenset(Scope), "key:admin", self.id)

    def opens(self, text: str) -> bool:
        """Whether this is it."""
        return hmac.compare_digest(sha256(text.encode("latin-1", "replace")).digest(), self._digest)


class CredentialCheck(NamedTuple):
    """What came of what a request carried."""

    caller: Caller | None
    key: str | None = None
    """The id of the key that it claims to be."""
    proof: ApiKey | None = None
    """The key that it is."""


class VerifiedCaller(NamedTuple):
    """What some text was found to be."""

    caller: Caller
    key: ApiKey | None
    """As it was read; None for the administrator's, which is always the same."""


class BearerAuthenticator:
    """Knows the administrator's key, the keys of the database and the keys that tokens are signed with."""

    def __init__(
        self,
        key_cache: ApiKeyCache,
        tokens: Tokens,
        *,
        admin: AdminKey | None,
        addresses: ClientAddresses,
        attempts: FailureThrottle,
    ) -> None:
        self._keyring = key_cache
        self._tokens = tokens
        self._admin = admin
        self._addresses = addresses
        self._attempts = attempts
        self._verified: OrderedDict[bytes, VerifiedCaller] = OrderedDict()

    async def caller(self, request: HttpRequest) -> Caller:
        """See `Authenticator`. Who fails too often is not looked at for a while; a good key elsewhere is not hurt."""
        known = self._recall(request)
        if known is not None and not self._attempts:  # nobody failed lately
            return known
        text = "" if known is not None else bearer(request)
        address = f"address {throttle_key(self._addresses.of(request))}"
        if wait := self._attempts.wait(address):
            raise _too_many(wait)
        if known is not None:
            return known
        found = await self._recognise(text)
        if found.caller is not None:
            self._remember(request, found)
            return found.caller
        self._attempts.failed(address)
        if found.key is not None:
            # Only failures are held back here: whoever has the secret is let in, however many others try.
            if wait := self._attempts.wait(f"key {found.key}"):
                raise _too_many(wait)
            self._attempts.failed(f"key {found.key}")
        raise unauthorized()

    async def still_good(self, caller: Caller) -> bool:
        """See `Authenticator`."""
        if caller.until is not None and await self._keyring.now() >= caller.until:
            return False
        if caller.signed_by is not None and self._tokens.keys.find(caller.signed_by) is None:
            return False
        if caller.key is None or self._is_admins(caller.key):
            return True
        return await self._keyring.good_key(caller.key) is not None

    async def token(self, caller: Caller, life: Duration) -> tuple[str, Instant] | None:
        """See `Authenticator`."""
        return self._tokens.make(caller, await self._keyring.now(), life)

    def _remember(self, request: HttpRequest, found: CredentialCheck) -> None:
        """That these very bytes proved to be a key, so that the next time only the key is looked at."""
        if found.caller is not None and (found.proof is not None or found.caller is self._admins):
            self._verified[request.headers[b"authorization"]] = VerifiedCaller(found.caller, found.proof)
            if len(self._verified) > _MAX_CACHED_CALLERS:
                self._verified.popitem(last=False)

    def _recall(self, request: HttpRequest) -> Caller | None:
        """The caller, if what a request came with was proven before, and if its key is what it was then.

        A key that is read anew from the database, as all are every few seconds, must be proven anew.
        """
        proven = self._verified.get(request.headers.get(b"authorization", b""))
        if proven is None:
            return None
        return proven.caller if proven.key is None or self._keyring.remembers(proven.key) else None

    async def _recognise(self, text: str) -> CredentialCheck:
        if self._admin is not None and self._admin.opens(text):
            return CredentialCheck(self._admin.caller)
        if key := _KEY.fullmatch(text):
            found = await self._by_key(key[1], key[2])
            return CredentialCheck(None, key[1]) if found is None else CredentialCheck(*found)
        if self._tokens.keys and len(text) <= MAX_TOKEN_LENGTH and text.count(".") == 2:
            return CredentialCheck(await self._by_token(text))
        return CredentialCheck(None)

    async def _by_key(self, key_id: str, secret: str) -> tuple[Caller, str, ApiKey] | None:
        key = await self._keyring.good_key(key_id)
        # Compared in any case, so that the time it takes does not tell which ids there are.
        same = hmac.compare_digest(digest_of(secret), _NO_DIGEST if key is None else key.digest)
        if key is None or not same:
            return None
        await self._keyring.note_use(key)
        return Caller(key.tenant, key.scopes, f"key:{key.id}", key.id), key.id, key

    async def _by_token(self, text: str) -> Caller | None:
        caller = self._tokens.read(text, await self._keyring.now())
        if caller is None or caller.key is None or self._is_admins(caller.key):
            return caller
        key = await self._keyring.good_key(caller.key)
        return None if key is None else restrict_to_key(caller, key)

    @property
    def _admins(self) -> Caller | None:
        return None if self._admin is None else self._admin.caller

    def _is_admins(self, key_id: str) -> bool:
        return self._admin is not None and key_id == self._admin.id


def _too_many(wait: float) -> RateLimited:
    return RateLimited("too many attempts failed: wait, then send a good key or token", retry_after=wait)
