"""Delivery state that workers share: circuit breakers and signing keys of webhooks."""

import base64
import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import HoldfastError, NotFound
from holdfast.model.access import Quotas
from holdfast.model.breaker import Breaker, BreakerState, DeliveryPermit, Permit, SigningKeys
from holdfast.model.job import Job
from holdfast.model.time import Duration, Instant, days, seconds
from holdfast.policy.breaker import BreakerRules, on_failure, on_success, request_permit
from holdfast.policy.webhooks import signature
from holdfast.store.port.store import Store, Tx
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import BreakerChanged

BREAKER_CACHE_S = 1.0
"""Time for which a worker caches the breakers of failing destinations."""

SIGNING_KEY_CACHE_S = 5.0
"""Time for which a worker caches the signing keys of a tenant."""

CLOSED_BREAKER_RETENTION = days(1)
"""Time for which a closed breaker stays visible."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of secrets in the Standard Webhooks specification

_MAX_CACHE_ENTRIES = 10_000
_SECRET_BYTES = 32

Decide = Callable[[Breaker, Instant], Breaker | None]
"""Returns the changed breaker; None if it does not change."""


class _Snapshot(NamedTuple):
    """Breakers of failing destinations at one time, by the database's clock and this node's."""

    failing: dict[tuple[str, str], Breaker]
    complete: bool
    """All failing destinations are included; if False, there were too many."""
    now: Instant
    at: float


class Deliveries:
    """Circuit breakers and signing keys, cached by one worker. Belongs to one event loop.

    Deliveries to healthy destinations share one query per second.
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
        self._snapshot: _Snapshot | None = None
        self._refreshed_at = float("-inf")
        self._keys: dict[str, tuple[float, list[bytes]]] = {}

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Return the permit and signature of a delivery.

        Implements `holdfast.builtin.webhooks.ports`.
        """
        permit = await self.request_permit(job.tenant, destination, probe_for=probe_for)
        if permit.wait is not None:
            return DeliveryPermit(permit)
        keys = await self.signing_keys(job.tenant)
        return DeliveryPermit(permit, signature(str(job.id), at, body, keys) if keys else "")

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """Record the result of a delivery; `error` is None if it succeeded."""
        if error is None:
            await self.record_success(job.tenant, destination, probe=probe)
        else:
            await self.record_failure(job.tenant, destination, error, probe=probe)

    async def request_permit(self, tenant: str, destination: str, *, probe_for: Duration) -> Permit:
        """Return whether a delivery may be sent now: normally, as a probe, or not.

        At most one probe is in flight across all workers. While the database is unavailable, deliveries are permitted.
        """
        try:
            snapshot = await self._refresh()
            cached = snapshot.failing.get((tenant, destination))
            if cached is None and not snapshot.complete:
                cached = await self._store.single(lambda tx: tx.breaker(tenant, destination))
            if cached is None or cached.state is BreakerState.CLOSED:
                return Permit()
            estimated_now = Instant(snapshot.now + seconds(self._monotonic() - snapshot.at))
            if cached.until is not None and estimated_now < cached.until:
                return self._decide(cached, estimated_now, probe_for)[0]
            permit = Permit()

            def decide(breaker: Breaker, now: Instant) -> Breaker | None:
                nonlocal permit
                permit, changed = self._decide(breaker, now, probe_for)
                return changed

            await self._change(tenant, destination, decide)
        except HoldfastError:
            return Permit()
        return permit

    def _decide(self, breaker: Breaker, now: Instant, probe_for: Duration) -> tuple[Permit, Breaker | None]:
        return request_permit(breaker, now=now, probe_for=probe_for, rules=self._rules, rand=self._rng())

    async def record_success(self, tenant: str, destination: str, *, probe: bool) -> None:
        """Record a successful delivery; needs no database access if the destination is healthy."""
        if probe or (self._snapshot is not None and (tenant, destination) in self._snapshot.failing):
            await self._change_if_available(tenant, destination, lambda breaker, _: on_success(breaker))

    async def record_failure(self, tenant: str, destination: str, error: str, *, probe: bool) -> None:
        """Record a delivery that failed because of its destination."""
        await self._change_if_available(
            tenant,
            destination,
            lambda breaker, now: on_failure(breaker, error, probe=probe, now=now, rules=self._rules),
        )

    async def signing_keys(self, tenant: str) -> Sequence[bytes]:
        """Return the signing keys of a tenant's webhooks, newest first; empty if it has no secret."""
        now = self._monotonic()
        cached = self._keys.get(tenant)
        if cached is None or now - cached[0] >= SIGNING_KEY_CACHE_S:
            found = await self._store.single(lambda tx: tx.signing_keys(tenant))
            if len(self._keys) >= _MAX_CACHE_ENTRIES:
                self._keys.clear()
            keys = [] if found is None else [key for key in (found.current, found.previous) if key is not None]
            cached = self._keys[tenant] = now, keys
        return cached[1]

    async def breakers(self, tenant: str | None, after: tuple[str, str] = ("", ""), limit: int = 200) -> list[Breaker]:
        """Return the stored breakers of a tenant (None: of all); closed ones are kept for a day."""
        return await self._store.single(lambda tx: tx.breakers(tenant, after, limit))

    async def rotate_secret(self, tenant: str, overlap: Duration) -> tuple[str, SigningKeys]:
        """Create a new signing secret, and the tenant if needed; return it with the keys in use.

        The secret cannot be read again. During `overlap`, deliveries are signed with the previous key too.
        """
        secret = secrets.token_bytes(_SECRET_BYTES)

        async def work(tx: Tx) -> SigningKeys:
            await tx.add_tenant(tenant, Quotas())
            await tx.rotate_signing_key(tenant, secret, overlap)
            return await _require_keys(tx, tenant)

        keys = await self._store.run(work)
        self._keys.pop(tenant, None)
        return SECRET_PREFIX + base64.b64encode(secret).decode(), keys

    async def secret(self, tenant: str) -> SigningKeys:
        """Return the signing keys of a tenant; raises `NotFound` if it has none."""
        return await self._store.single(lambda tx: _require_keys(tx, tenant))

    async def drop_secret(self, tenant: str) -> bool:
        """Delete a tenant's signing keys; False if it has none.

        Raises `NotFound` for an unknown tenant.
        """

        async def work(tx: Tx) -> bool:
            dropped = await tx.drop_signing_keys(tenant)
            if not dropped and await tx.tenant(tenant) is None:
                raise NotFound(f"there is no tenant {tenant!r}")
            return dropped

        self._keys.pop(tenant, None)
        return await self._store.run(work)

    async def _refresh(self) -> _Snapshot:
        """Return the cached breakers of failing destinations, read again if they are too old."""
        now = self._monotonic()
        if self._snapshot is not None and now - self._refreshed_at < BREAKER_CACHE_S:
            return self._snapshot
        self._refreshed_at = now  # concurrent deliveries use the old snapshot instead of reading too
        try:
            at, found = await self._store.read(_read_failing)
        except BaseException:
            self._refreshed_at = float("-inf")
            raise
        failing = {(breaker.tenant, breaker.destination): breaker for breaker in found[:_MAX_CACHE_ENTRIES]}
        self._snapshot = _Snapshot(failing, len(found) <= _MAX_CACHE_ENTRIES, at, now)
        return self._snapshot

    async def _change_if_available(self, tenant: str, destination: str, decide: Decide) -> None:
        # An error of the breaker must not replace the result of the delivery.
        with suppress(HoldfastError):
            await self._change(tenant, destination, decide)

    async def _change(self, tenant: str, destination: str, decide: Decide) -> None:
        async def work(tx: Tx) -> tuple[Breaker, Breaker]:
            breaker = await tx.lock_breaker(tenant, destination)
            # The time is read under the lock, because acquiring it may have taken long.
            change = decide(breaker, await tx.now())
            if change is not None:
                await tx.save_breaker(change)
            return breaker, change or breaker

        before, now = await self._store.run(work)
        # Only opening and closing are events; a failed probe leaves the breaker open.
        if (before.state is BreakerState.CLOSED) is not (now.state is BreakerState.CLOSED):
            self._emit(BreakerChanged(tenant, destination, now.state is not BreakerState.CLOSED, now.error))
        if self._snapshot is None:
            return
        if now.state is BreakerState.CLOSED and not now.failures:
            self._snapshot.failing.pop((tenant, destination), None)
        else:
            self._snapshot.failing[tenant, destination] = now


async def prune(store: Store, limit: int) -> int:
    """Delete breakers that closed longer ago than their retention; return their number."""
    return await store.single(lambda tx: tx.prune_breakers(CLOSED_BREAKER_RETENTION, limit))


async def _read_failing(tx: Tx) -> tuple[Instant, list[Breaker]]:
    return await tx.now(), await tx.failing_breakers(_MAX_CACHE_ENTRIES + 1)


async def _require_keys(tx: Tx, tenant: str) -> SigningKeys:
    found = await tx.signing_keys(tenant)
    if found is None:
        raise NotFound(
            f"tenant {tenant!r} has no webhook secret: create one with POST /v1/tenants/{tenant}/webhook-secret"
        )
    return found
