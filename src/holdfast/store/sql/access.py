"""Tenants and keys on any of the databases."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model.access import ApiKey, KeyPosition, NewKey, Quotas, Scope, Tenant
from holdfast.model.time import Duration, Instant
from holdfast.store.sql.codec import Row

_LAST = KeyPosition(Instant((1 << 63) - 1), "")
_SCOPES = frozenset(Scope)


class SqlAccess(ABC):
    """The part of a transaction that knows who may call. See `holdfast.store.port.store.Access`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    async def add_tenant(self, name: str, quotas: Quotas) -> bool:
        added = await self.count("add_tenant", name=name, **quotas._asdict()) == 1
        if added and quotas.weight is not None:
            await self.count("bump_settings_version")
        return added

    async def change_tenant(self, name: str, changes: Mapping[str, int | None]) -> bool:
        given = {f"set_{field}": int(field in changes) for field in Quotas._fields}
        values = {field: changes.get(field) for field in Quotas._fields}
        changed = await self.count("change_tenant", name=name, **given, **values) == 1
        if changed and "weight" in changes:
            await self.count("bump_settings_version")
        return changed

    async def tenant(self, name: str) -> Tenant | None:
        return next(map(tenant_of, await self.rows("tenant", name=name)), None)

    async def tenants(self, after: str, limit: int) -> list[Tenant]:
        return [tenant_of(row) for row in await self.rows("tenants", after=after, limit=limit)]

    async def add_key(self, key: NewKey) -> None:
        await self.count("add_api_key", **(key._asdict() | {"scopes": " ".join(sorted(key.scopes))}))

    async def key(self, key_id: str) -> tuple[ApiKey, Instant] | None:
        return next(((_key(row), Instant(row[9])) for row in await self.rows("api_key", id=key_id)), None)

    async def keys(self, tenant: str | None, before: KeyPosition | None, limit: int) -> list[ApiKey]:
        at, key_id = before or _LAST
        return [_key(row) for row in await self.rows("api_keys", tenant=tenant, at=at, id=key_id, limit=limit)]

    async def revoke_key(self, key_id: str) -> bool:
        return await self.count("revoke_api_key", id=key_id) == 1

    async def note_key(self, key_id: str, coarse: Duration) -> None:
        await self.count("note_api_key", id=key_id, coarse=coarse)

    async def has_good_key(self) -> bool:
        return bool(await self.rows("good_api_key"))


def tenant_of(row: Row) -> Tenant:
    """A tenant as it is stored."""
    return Tenant(row[0], Quotas(*row[1:6]), Instant(row[6]))


def _key(row: Row) -> ApiKey:
    key_id, tenant, name, digest, scopes, *times = row[:9]
    # A scope that only a newer version knows permits nothing here.
    held = frozenset(Scope(word) for word in scopes.split() if word in _SCOPES)
    return ApiKey(key_id, tenant, name, digest, held, *times)
