"""Tenants and API keys: create, change and revoke them."""

import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256

from holdfast.engine.api_key_cache import ApiKeyCache, Monotonic
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.model.access import ApiKey, KeyPosition, NewApiKey, Quotas, Scope, Tenant
from holdfast.model.time import Duration, Instant
from holdfast.policy.access import is_valid
from holdfast.store.port.store import Store, Tx

_ID_BYTES = 8
_SECRET_BYTES = 32


class Access:
    """Use cases of tenants and API keys. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        *,
        monotonic: Monotonic = time.monotonic,
        on_quota_changed: Callable[[str], None] = lambda tenant: None,  # noqa: ARG005
    ) -> None:
        self._store = store
        self._on_quota_changed = on_quota_changed
        self.key_cache = ApiKeyCache(store, monotonic)
        """API keys by id, cached for seconds."""

    async def create_tenant(self, name: str, quotas: Quotas) -> Tenant:
        """Create a tenant; raises `Conflict` if it exists."""

        async def work(tx: Tx) -> Tenant:
            if not await tx.add_tenant(name, quotas):
                raise Conflict(f"tenant {name!r} already exists: change it with PATCH /v1/tenants/{name}")
            return await _tenant(tx, name)

        return await self._store.run(work)

    async def change_tenant(self, name: str, changes: Mapping[str, int | None]) -> Tenant:
        """Change the given quotas; None restores the installation's default."""

        async def work(tx: Tx) -> Tenant:
            await tx.change_tenant(name, changes)
            return await _tenant(tx, name)

        changed = await self._store.run(work)
        self._on_quota_changed(name)
        return changed

    async def tenants(self, after: str = "", limit: int = 50) -> list[Tenant]:
        """Return tenants ordered by name."""
        return await self._store.single(lambda tx: tx.tenants(after, limit))

    async def tenant(self, name: str) -> Tenant | None:
        """Return a tenant, or None if it has all the defaults."""
        return await self._store.single(lambda tx: tx.tenant(name))

    async def create_key(
        self,
        tenant: str,
        name: str,
        scopes: frozenset[Scope],
        *,
        expires_at: Instant | None = None,
        lifetime: Duration | None = None,
    ) -> tuple[ApiKey, str]:
        """Create an API key, and its tenant if needed; return it with its token, shown only once."""
        key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES)
        new = NewApiKey(key_id, tenant, name, digest_of(secret), scopes, expires_at, lifetime)

        async def work(tx: Tx) -> ApiKey:
            await tx.add_tenant(tenant, Quotas())
            await tx.add_key(new)
            key = await _key(tx, key_id)
            if not is_valid(key, key.created_at):
                raise Invalid("expires_at is in the past: give a later time", pointer="/expires_at")
            return key

        return await self._store.run(work), f"hf_{key_id}_{secret}"

    async def keys(self, tenant: str | None, before: KeyPosition | None = None, limit: int = 50) -> list[ApiKey]:
        """Return the API keys of a tenant (None: of all), newest first."""
        return await self._store.single(lambda tx: tx.keys(tenant, before, limit))

    async def revoke_key(self, key_id: str, *, tenant: str | None = None) -> ApiKey:
        """Revoke an API key: here at once, on other nodes when their cache expires, within seconds.

        With `tenant`, a key of another tenant raises `NotFound`, like one that does not exist.
        """

        async def work(tx: Tx) -> ApiKey:
            if tenant is not None and (await _key(tx, key_id)).tenant != tenant:
                raise _no_key(key_id)
            await tx.revoke_key(key_id)
            return await _key(tx, key_id)

        try:
            return await self._store.run(work)
        finally:
            self.key_cache.invalidate(key_id)

    async def has_valid_key(self) -> bool:
        """Return True if a valid API key exists."""
        return await self._store.single(lambda tx: tx.has_valid_key())


def digest_of(secret: str) -> bytes:
    """Return the stored digest of a secret; a fast hash suffices for long random secrets."""
    return sha256(secret.encode()).digest()


async def _tenant(tx: Tx, name: str) -> Tenant:
    found = await tx.tenant(name)
    if found is None:
        raise NotFound(f"there is no tenant {name!r}: create it with POST /v1/tenants")
    return found


async def _key(tx: Tx, key_id: str) -> ApiKey:
    found = await tx.key(key_id)
    if found is None:
        raise _no_key(key_id)
    return found[0]


def _no_key(key_id: str) -> NotFound:
    return NotFound(f"there is no API key {key_id!r}")
