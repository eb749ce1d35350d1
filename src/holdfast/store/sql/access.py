"""Tenants and API keys, for all dialects."""

from collections.abc import Mapping

from holdfast.model.access import ApiKey, KeyPosition, NewApiKey, Quotas, Scope, Tenant
from holdfast.model.time import Duration, Instant
from holdfast.store.port.store import AccessRepository
from holdfast.store.sql.codec import Row
from holdfast.store.sql.runner import StatementRunner

_NEWEST_POSITION = KeyPosition(Instant((1 << 63) - 1), "")
_SCOPES = frozenset(Scope)


class SqlAccess(StatementRunner, AccessRepository):
    """Tenants and API keys within a transaction."""

    async def add_tenant(self, name: str, quotas: Quotas) -> bool:
        added = await self.count("add_tenant", name=name, **quotas._asdict()) == 1
        if added and quotas.weight is not None:
            await self.count("bump_settings_version")
        return added

    async def change_tenant(self, name: str, changes: Mapping[str, int | None]) -> bool:
        changed_fields = {f"set_{field}": int(field in changes) for field in Quotas._fields}
        values = {field: changes.get(field) for field in Quotas._fields}
        changed = await self.count("change_tenant", name=name, **changed_fields, **values) == 1
        if changed and "weight" in changes:
            await self.count("bump_settings_version")
        return changed

    async def tenant(self, name: str) -> Tenant | None:
        return next(map(tenant_of, await self.rows("tenant", name=name)), None)

    async def tenants(self, after: str, limit: int) -> list[Tenant]:
        return [tenant_of(row) for row in await self.rows("tenants", after=after, limit=limit)]

    async def add_key(self, key: NewApiKey) -> None:
        await self.count("add_api_key", **(key._asdict() | {"scopes": " ".join(sorted(key.scopes))}))

    async def key(self, key_id: str) -> tuple[ApiKey, Instant] | None:
        return next(((_key(row), Instant(row[9])) for row in await self.rows("api_key", id=key_id)), None)

    async def keys(self, tenant: str | None, before: KeyPosition | None, limit: int) -> list[ApiKey]:
        at, key_id = before or _NEWEST_POSITION
        return [_key(row) for row in await self.rows("api_keys", tenant=tenant, at=at, id=key_id, limit=limit)]

    async def revoke_key(self, key_id: str) -> bool:
        return await self.count("revoke_api_key", id=key_id) == 1

    async def record_key_use(self, key_id: str, precision: Duration) -> None:
        await self.count("record_api_key_use", id=key_id, precision=precision)

    async def has_valid_key(self) -> bool:
        return bool(await self.rows("valid_api_key"))


def tenant_of(row: Row) -> Tenant:
    """Decode a row of the columns `tenant`."""
    return Tenant(row[0], Quotas(*row[1:6]), Instant(row[6]))


def _key(row: Row) -> ApiKey:
    key_id, tenant, name, digest, scopes, *times = row[:9]
    # Ignore scopes that only a newer version knows.
    known = frozenset(Scope(word) for word in scopes.split() if word in _SCOPES)
    return ApiKey(key_id, tenant, name, digest, known, *times)
