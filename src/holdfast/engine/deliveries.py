"""What workers share about deliveries: breakers of destinations, and the keys that webhooks are signed with."""

import base64
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError, NotFound
from holdfast.model.access import Quotas
from holdfast.model.breaker import Breaker, BreakerState, DeliveryPermit, Permit, SigningKeys
from holdfast.model.job import Job
from holdfast.model.time import Duration, Instant, days, seconds
from holdfast.policy import breaker as policy
from holdfast.policy.breaker import BreakerRules
from holdfast.policy.webhooks import signature
from holdfast.store.port.store import Store, Tx
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import BreakerChanged

LOOK_EVERY = 1.0
"""Seconds for which a worker goes by what it last knew of destinations in trouble."""

KEYS_KNOWN_FOR = 5.0
"""Seconds for which it goes by what it last knew of a tenant's keys."""

KEPT = days(1)
"""How long a breaker that closed can still be seen."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with, by the standard

_MOST = 10_000
_SECRET_BYTES = 32

Decide = Callable[[Breaker, Instant], Breaker | None]


class _Known(NamedTuple):
    """What was known of destinations in trouble at a time, by both clocks. `all`: there are no others."""

    troubled: dict[tuple[str, str], Breaker]
    all: bool
    now: Instant
    at: float


class Deliveries:
    """One worker's view of what all share. Belongs to one event loop.

    A delivery to a destination that gives no trouble costs no statement but a look, once a second for all of them.
    """

    def __init__(
        self,
        store: Store,
        rules: BreakerRules,
        *,
        rng: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        emit: Emit = log_event,
    ) -> None:
        self._emit = emit
        self._store = store
        self._rules = rules
        self._rng = rng
        self._monotonic = monotonic
        self._known: _Known | None = None
        self._asked = float("-inf")
        self._keys: dict[str, tuple[float, list[bytes]]] = {}

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Whether a delivery of this job may go out now, and its signature. See `holdfast.builtin.webhooks.ports`."""
        permit = await self.request_permit(job.tenant, destination, probe_for=probe_for)
        if permit.wait is not None:
            return DeliveryPermit(permit)
        keys = await self.signing_keys(job.tenant)
        return DeliveryPermit(permit, signature(str(job.id), at, body, keys) if keys else "")

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """What came of it."""
        if error is None:
            await self.record_success(job.tenant, destination, probe=probe)
        else:
            await self.record_failure(job.tenant, destination, error, probe=probe)

    async def request_permit(self, tenant: str, destination: str, *, probe_for: Duration) -> Permit:
        """Whether a delivery may go out now: as it is, as a probe, or not.

        One probe at a time, whoever asks. While the database cannot tell, nothing is held back.
        """
        try:
            known = await self._look()
            seen = known.troubled.get((tenant, destination))
            if seen is None and not known.all:
                seen = await self._store.single(lambda tx: tx.breaker(tenant, destination))
            if seen is None or seen.state is BreakerState.CLOSED:
                return Permit()
            about = Instant(known.now + seconds(self._monotonic() - known.at))
            if seen.until is not None and about < seen.until:
                return policy.request_permit(seen, now=about, probe_for=probe_for, rules=self._rules, rand=self._rng())[
                    0
                ]
            permit = Permit()

            def decide(breaker: Breaker, now: Instant) -> Breaker | None:
                nonlocal permit
                permit, change = policy.request_permit(
                    breaker, now=now, probe_for=probe_for, rules=self._rules, rand=self._rng()
                )
                return change

            await self._change(tenant, destination, decide)
        except HoldfastError:
            return Permit()
        return permit

    async def record_success(self, tenant: str, destination: str, *, probe: bool) -> None:
        """The destination answered."""
        if probe or (self._known is not None and (tenant, destination) in self._known.troubled):
            await self._tell(self._change(tenant, destination, lambda breaker, _: policy.on_success(breaker)))

    async def record_failure(self, tenant: str, destination: str, error: str, *, probe: bool) -> None:
        """The destination did not answer, or not as it should."""
        await self._tell(
            self._change(
                tenant,
                destination,
                lambda breaker, now: policy.on_failure(breaker, error, probe=probe, now=now, rules=self._rules),
            )
        )

    async def signing_keys(self, tenant: str) -> Sequence[bytes]:
        """What a tenant's webhooks are signed with; none when it has no secret."""
        now = self._monotonic()
        known = self._keys.get(tenant)
        if known is None or now - known[0] >= KEYS_KNOWN_FOR:
            found = await self._store.single(lambda tx: tx.signing_keys(tenant))
            if len(self._keys) >= _MOST:
                self._keys.clear()
            keys = [] if found is None else [key for key in (found.current, found.previous) if key is not None]
            known = self._keys[tenant] = now, keys
        return known[1]

    async def breakers(self, tenant: str | None, after: tuple[str, str] = ("", ""), limit: int = 200) -> list[Breaker]:
        """Breakers of a tenant, or of all, that gave trouble lately."""
        return await self._store.single(lambda tx: tx.breakers(tenant, after, limit))

    async def rotate_secret(self, tenant: str, overlap: Duration) -> tuple[str, SigningKeys]:
        """A new secret, which nobody can tell a second time; the one before it still signs for `overlap`.

        The tenant is entered with it.
        """
        secret = secrets.token_bytes(_SECRET_BYTES)

        async def work(tx: Tx) -> SigningKeys:
            await tx.add_tenant(tenant, Quotas())
            await tx.rotate_signing_key(tenant, secret, overlap)
            return await _keys(tx, tenant)

        keys = await self._store.run(work)
        self._keys.pop(tenant, None)
        return SECRET_PREFIX + base64.b64encode(secret).decode(), keys

    async def secret(self, tenant: str) -> SigningKeys:
        """What is known of a tenant's secret; `NotFound` when it has none."""
        return await self._store.single(lambda tx: _keys(tx, tenant))

    async def drop_secret(self, tenant: str) -> bool:
        """Sign no more of a tenant's webhooks; False when none were. `NotFound` when there is no such tenant."""

        async def work(tx: Tx) -> bool:
            dropped = await tx.drop_signing_keys(tenant)
            if not dropped and await tx.tenant(tenant) is None:
                raise NotFound(f"there is no tenant {tenant!r}")
            return dropped

        self._keys.pop(tenant, None)
        return await self._store.run(work)

    async def _look(self) -> _Known:
        known = self._known
        now = self._monotonic()
        if known is not None and now - self._asked < LOOK_EVERY:
            return known
        self._asked = now  # others that ask meanwhile go by what is known
        try:
            at, found = await self._store.read(_trouble)
        except BaseException:
            self._asked = float("-inf")
            raise
        troubled = {(each.tenant, each.destination): each for each in found[:_MOST]}
        self._known = _Known(troubled, len(found) <= _MOST, at, now)
        return self._known

    async def _change(self, tenant: str, destination: str, decide: Decide) -> None:
        async def work(tx: Tx) -> tuple[Breaker, Breaker]:
            breaker = await tx.lock_breaker(tenant, destination)
            # Asked under the lock: others may have been waited for.
            change = decide(breaker, await tx.now())
            if change is not None:
                await tx.save_breaker(change)
            return breaker, change or breaker

        before, now = await self._store.run(work)
        # A probe that fails is no news.
        if (before.state is BreakerState.CLOSED) is not (now.state is BreakerState.CLOSED):
            self._emit(BreakerChanged(tenant, destination, now.state is not BreakerState.CLOSED, now.error))
        if self._known is None:
            return
        if now.state is BreakerState.CLOSED and not now.failures:
            self._known.troubled.pop((tenant, destination), None)
        else:
            self._known.troubled[tenant, destination] = now

    @staticmethod
    async def _tell(change: Awaitable[None]) -> None:
        try:
            await change
        except HoldfastError:
            return  # what came of the delivery is worth more than what the breaker hears of it


async def prune(store: Store, limit: int) -> int:
    """Forget breakers that closed long ago."""
    return await store.single(lambda tx: tx.prune_breakers(KEPT, limit))


async def _trouble(tx: Tx) -> tuple[Instant, list[Breaker]]:
    return await tx.now(), await tx.troubled_breakers(_MOST + 1)


async def _keys(tx: Tx, tenant: str) -> SigningKeys:
    found = await tx.signing_keys(tenant)
    if found is None:
        raise NotFound(
            f"tenant {tenant!r} has no secret for webhooks: make one with POST /v1/tenants/{tenant}/webhook-secret"
        )
    return found
