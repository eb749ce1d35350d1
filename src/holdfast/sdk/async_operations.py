"""Operator methods of the client for asynchronous code.

`tools/sync_client.py` generates `operations.py` from this module.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TypeVar

from holdfast.sdk import calls, operator_calls
from holdfast.sdk.calls import Call, PageCall
from holdfast.sdk.models import Breaker, Limit, NewWebhookSecret, Pause, Token, WebhookSecret
from holdfast.sdk.operator_calls import LimitTarget
from holdfast.sdk.options import Rate, Span
from holdfast.wire.analytics import FairnessOut, Series, TypeStats

T = TypeVar("T")


class AsyncOperations(ABC):
    """Limits, pauses, webhooks, tokens and statistics of a service."""

    @abstractmethod
    async def execute(self, call: Call[T]) -> T:
        """Execute an operation and return its decoded response."""

    @abstractmethod
    def pages(self, pages: PageCall[T]) -> AsyncIterator[T]:
        """Yield all items of a list operation, page by page."""

    async def limits(self, *, kind: str | None = None, tenant: str | None = None) -> Sequence[Limit]:
        """List the limits that were set, with their current use.

        Args:
            kind: `queue`, `tenant` or `key`, to list only these.
            tenant: Tenant whose concurrency keys to list.

        Example:
            for limit in await client.limits(kind="tenant"):
                print(limit.tenant, limit.used, limit.max_running)
        """
        return await self.execute(operator_calls.limits(kind, tenant))

    async def set_limit(
        self,
        *,
        queue: str | None = None,
        tenant: str | None = None,
        concurrency_key: str | None = None,
        max_running: int | None = None,
        rate: Rate | None = None,
    ) -> Limit:
        """Set the limit of a queue, of a tenant, or of a concurrency key of a tenant.

        Args:
            queue: Queue to limit.
            tenant: Tenant to limit, or the tenant of the concurrency key.
            concurrency_key: Concurrency key to limit; by default one of its jobs runs at a time.
            max_running: Jobs that run at once; None is unlimited.
            rate: Jobs that start per time, such as `"10/s"`; None is unlimited.

        Raises:
            Invalid: A value is out of range, or the target is not one queue, one tenant or one key.

        Example:
            await client.set_limit(tenant="acme", max_running=20, rate="100/m")
        """
        return await self.execute(
            operator_calls.set_limit(LimitTarget(queue, tenant, concurrency_key), max_running, rate)
        )

    async def pauses(self) -> Sequence[Pause]:
        """List paused types and tenants; `queues()` has the paused queues."""
        return await self.execute(operator_calls.pauses())

    async def pause_type(self, type: str, *, reason: str = "", until: datetime | None = None) -> Pause:  # noqa: A002
        """Pause a job type in all queues. Running jobs continue.

        Args:
            type: Name of the job type.
            reason: Reason shown to users who ask why a job is not running.
            until: Time at which the type resumes by itself; None to wait for `resume_type`.
        """
        return await self.execute(operator_calls.pause({"type": type, "reason": reason, "until": until}))

    async def resume_type(self, type: str) -> None:  # noqa: A002 - the API's name
        """Resume a paused type; nothing happens if it is not paused."""
        await self.execute(operator_calls.end_pause(type, None))

    async def pause_tenant(self, tenant: str, *, reason: str = "", until: datetime | None = None) -> Pause:
        """Pause a tenant in all queues. Running jobs continue.

        Args:
            tenant: Name of the tenant.
            reason: Reason shown to users who ask why a job is not running.
            until: Time at which the tenant resumes by itself; None to wait for `resume_tenant`.
        """
        return await self.execute(operator_calls.pause({"tenant": tenant, "reason": reason, "until": until}))

    async def resume_tenant(self, tenant: str) -> None:
        """Resume a paused tenant; nothing happens if it is not paused."""
        await self.execute(operator_calls.end_pause(None, tenant))

    def breakers(self, *, tenant: str | None = None) -> AsyncIterator[Breaker]:
        """Iterate over circuit breakers of webhook destinations that failed recently."""
        return self.pages(operator_calls.breakers(tenant))

    async def webhook_secret(self, tenant: str) -> WebhookSecret:
        """Return when a tenant's webhook secret was created; raises `NotFound`."""
        return await self.execute(operator_calls.webhook_secret(tenant))

    async def rotate_webhook_secret(self, tenant: str, *, overlap: Span | None = None) -> NewWebhookSecret:
        """Create a webhook secret, which is returned only here.

        Args:
            tenant: Tenant whose webhooks are signed with it.
            overlap: Time for which the previous secret stays valid; by default a day.
        """
        return await self.execute(operator_calls.rotate_webhook_secret(tenant, overlap))

    async def delete_webhook_secret(self, tenant: str) -> None:
        """Delete a tenant's webhook secret; its webhooks are no longer signed."""
        await self.execute(operator_calls.delete_webhook_secret(tenant))

    async def create_token(self, scopes: Sequence[str] | None = None, *, expires_in: Span | None = None) -> Token:
        """Create a short-lived token, such as for a browser.

        Args:
            scopes: Scopes of the client's API key, or fewer; None for all of them.
            expires_in: Lifetime up to an hour; by default 15 minutes.
        """
        return await self.execute(operator_calls.create_token(scopes, expires_in))

    async def throughput(self, window: str = "1h", **where: str) -> Series:
        """Return the totals, rates and durations of a time window, step by step.

        Args:
            window: Length of the window, which ends now, such as `"15m"`, `"1h"` or `"7d"`.
            where: `queue`, `type` or `tenant`, to count only these jobs.
        """
        return await self.execute(operator_calls.throughput({"window": window, **where}))

    async def type_stats(self, window: str = "1h", **where: str) -> Sequence[TypeStats]:
        """Return totals, rates and durations of each job type, busiest first.

        Args:
            window: Length of the window, which ends now, such as `"15m"`, `"1h"` or `"7d"`.
            where: `queue` or `tenant`, to count only these jobs.
        """
        return await self.execute(calls.type_stats({"window": window, **where}))

    async def fairness(self, window: str = "15m") -> FairnessOut:
        """Return the service that each tenant received, compared with its fair share.

        Args:
            window: Length of the window, which ends now, such as `"15m"` or `"1h"`.
        """
        return await self.execute(operator_calls.fairness(window))
