"""Circuit breakers and webhook signing keys, for all dialects."""

from holdfast.errors import Contention
from holdfast.model.breaker import Breaker, BreakerState, SigningKeys
from holdfast.model.time import Duration
from holdfast.store.port.breakers import BreakerRepository, WebhookSecretRepository
from holdfast.store.sql.codec import Row
from holdfast.store.sql.runner import StatementRunner

_MAX_LOCK_ATTEMPTS = 5


class SqlBreakers(StatementRunner, BreakerRepository, WebhookSecretRepository):
    """Circuit breakers and webhook signing keys within a transaction."""

    async def breakers(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[Breaker]:
        found = await self.rows("breakers", tenant=tenant, after_tenant=after[0], after=after[1], limit=limit)
        return [breaker_of(row) for row in found]

    async def failing_breakers(self, limit: int) -> list[Breaker]:
        return [breaker_of(row) for row in await self.rows("failing_breakers", limit=limit)]

    async def breaker(self, tenant: str, destination: str) -> Breaker | None:
        return next(map(breaker_of, await self.rows("breaker", tenant=tenant, destination=destination)), None)

    async def lock_breaker(self, tenant: str, destination: str) -> Breaker:
        for _ in range(_MAX_LOCK_ATTEMPTS):
            if found := await self.rows("lock_breaker", tenant=tenant, destination=destination):
                return breaker_of(found[0])
            # Inserted by its own statement, so that a concurrent insert of the same row is waited for.
            await self.count("begin_breaker", tenant=tenant, destination=destination)
        raise Contention(f"the breaker of {destination} is created and deleted concurrently; try again")

    async def save_breaker(self, breaker: Breaker) -> None:
        await self.count(
            "save_breaker",
            tenant=breaker.tenant,
            destination=breaker.destination,
            state=breaker.state.code,
            failures=breaker.failures,
            openings=breaker.openings,
            until=breaker.until,
            error=breaker.error,
        )

    async def prune_breakers(self, keep: Duration, limit: int) -> int:
        return await self.count("prune_breakers", keep=keep, limit=limit)

    async def signing_keys(self, tenant: str) -> SigningKeys | None:
        return next((SigningKeys(*row[1:]) for row in await self.rows("signing_keys", tenant=tenant)), None)

    async def rotate_signing_key(self, tenant: str, secret: bytes, overlap: Duration) -> None:
        await self.count("rotate_signing_key", tenant=tenant, secret=secret, overlap=overlap)

    async def drop_signing_keys(self, tenant: str) -> bool:
        return await self.count("drop_signing_keys", tenant=tenant) == 1


def breaker_of(row: Row) -> Breaker:
    """Decode a row of the columns `breaker`."""
    tenant, destination, state, *rest = row
    return Breaker(tenant, destination, BreakerState.of_code(state), *rest)
