"""HTTP client for asynchronous code.

`tools/sync_client.py` generates `client.py` from this module.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

from holdfast.model.explanation import Explanation
from holdfast.sdk import calls, waiting
from holdfast.sdk.async_operations import AsyncOperations
from holdfast.sdk.calls import Call, PageCall
from holdfast.sdk.models import (
    Attempt,
    Bulk,
    DeadGroup,
    Event,
    Job,
    JobDetail,
    JobType,
    Key,
    NewKey,
    Queue,
    Receipt,
    Stats,
    Step,
    Summary,
    Tenant,
    Worker,
)
from holdfast.sdk.options import DeadFilter, JobFilter, JobListFilter, JobOptions, NewJob, Span
from holdfast.sdk.retry import RETRY_TIMEOUT_S
from holdfast.sdk.sender import Sender
from holdfast.sdk.sse import EventParser
from holdfast.sdk.transport import Transport

T = TypeVar("T")


class AsyncClient(AsyncOperations):
    """HTTP client of a holdfast service, for asynchronous code. Belongs to one event loop.

    The client retries requests that are safe to repeat while the service is unavailable, with the same idempotency key
    and no sooner than the service asks for. Every method may raise `Unauthorized`, `Forbidden`, `RateLimited`,
    `Unavailable` (nothing was changed) or `OutcomeUnknown` (the request may or may not have taken effect).

    Args:
        url: URL of the service, such as `https://jobs.example.org`; may contain the key as its password.
        key: API key. Create one with `holdfast keys create`.
        retry_timeout: Seconds for which an unavailable service is retried.
        transport: Carrier of the requests, instead of HTTP connections.

    Raises:
        Misconfigured: The URL or the key is missing or malformed.

    Example:
        async with AsyncClient("https://jobs.example.org", "hf_…") as client:
            job = await client.submit("welcome", {"user_id": 42}, queue="mail")
            print(await client.wait(job.id, timeout="10m"))
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retry_timeout: float = RETRY_TIMEOUT_S,
        transport: Transport | None = None,
    ) -> None:
        self._sender = Sender(url, key, transport=transport)
        self._retry_timeout = retry_timeout

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sender.aclose()

    async def execute(self, call: Call[T]) -> T:
        """Execute an operation of `holdfast.sdk.calls` and return its decoded response."""
        return call.read(await self._sender.send(call.request, retry_timeout=self._retry_timeout))

    async def ping(self) -> None:
        """Raise `Unavailable` or `OutcomeUnknown`, without retrying, unless the service responds."""
        await self._sender.send(calls.PING, retry_timeout=0)

    async def pages(self, pages: PageCall[T]) -> AsyncIterator[T]:
        """Yield all items of a list operation, page by page."""
        cursor: str | None = None
        while True:
            page = await self.execute(pages.at(cursor))
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def _all(self, pages: PageCall[T]) -> list[T]:
        """Return all items of a list operation."""
        page = await self.execute(pages.at(None))
        items = page.items
        while page.next_cursor is not None:
            page = await self.execute(pages.at(page.next_cursor))
            items += page.items
        return items

    async def submit(
        self,
        type: str,  # noqa: A002 - the API's name
        payload: Any = None,
        *,
        tenant: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit one job and return it. The job is durable when this returns.

        Args:
            type: Name of the job type.
            payload: Any JSON value.
            tenant: Tenant of the job; only administrators may choose it.
            options: Fields of `POST /v1/jobs`, such as `queue`, `delay`, `priority` or `idempotency_key`. Without an
                idempotency key the client generates one, so that its retries never create a second job.

        Raises:
            Invalid: A field is invalid; `pointer` names it.
            DuplicateJob: A unique job exists.
            IdempotencyMismatch: The key was used for a different job.
            BacklogFull: The tenant has too many unfinished jobs.

        Example:
            job = await client.submit("welcome", {"user_id": 42}, queue="mail", delay="5m")
        """
        return await self.execute(calls.submit(type, payload, options, tenant))

    async def submit_many(self, jobs: Iterable[NewJob], *, tenant: str | None = None) -> Sequence[Receipt]:
        """Submit up to 10,000 jobs atomically and return their receipts, in order.

        Args:
            jobs: Fields of each job: `type`, and any of `payload` and the options of `submit`.
            tenant: Tenant of the jobs; only administrators may choose it.

        Raises:
            InvalidBatch: Nothing was submitted; `faults` has the error of every invalid job by index.
            RateLimited: The quota of the tenant is used up; retry after `retry_after` seconds.

        Example:
            await client.submit_many([{"type": "welcome", "payload": {"user_id": n}} for n in range(1_000)])
        """
        return await self.execute(calls.submit_many(jobs, tenant))

    async def get(self, job_id: str | UUID) -> JobDetail:
        """Return one job with its attempts, steps and lineage; raises `NotFound`."""
        return await self.execute(calls.get(job_id))

    def attempts(self, job_id: str | UUID) -> AsyncIterator[Attempt]:
        """Iterate over the attempts of a job that failed or logged something, newest first."""
        return self.pages(calls.attempts(job_id))

    def steps(self, job_id: str | UUID) -> AsyncIterator[Step]:
        """Iterate over the recorded steps of a job, by key."""
        return self.pages(calls.steps(job_id))

    async def wait(self, job_id: str | UUID, timeout: Span | None = None) -> Any:
        """Wait until the job has finished and return its result.

        Args:
            job_id: Id of the job.
            timeout: Seconds, a text such as `"5m"` or a `timedelta`; None waits without a limit.

        Raises:
            JobFailed: The job is dead.
            JobCancelled: The job was cancelled.
            ResultTooLarge: The job succeeded, but its result was too large to store.
            WaitTimeout: The job did not finish within `timeout`; it continues to run.
            NotFound: The job does not exist.

        Example:
            result = await client.wait(job.id, timeout="10m")
        """
        poller = waiting.JobPoller(timeout)
        while True:
            job = await self.get(job_id)
            if job.status.terminal:
                return waiting.result_of(job)
            await asyncio.sleep(poller.next_interval(job))

    async def explain(self, job_id: str | UUID) -> Explanation:
        """Explain why a job is (not) running; raises `NotFound`.

        Example:
            for reason in (await client.explain(job.id)).reasons:
                print(reason.detail)
        """
        return await self.execute(calls.explain(job_id))

    async def cancel(self, job_id: str | UUID, reason: str = "") -> JobDetail:
        """Cancel a job, even if it is running.

        Args:
            job_id: Id of the job.
            reason: Reason shown with the job.

        Raises:
            Conflict: The job has already finished.
            NotFound: The job does not exist.
        """
        return await self.execute(calls.cancel(job_id, reason))

    async def retry(self, job_id: str | UUID) -> JobDetail:
        """Make a waiting, dead or cancelled job ready now.

        Raises:
            Conflict: The job is running or has succeeded.
            NotFound: The job does not exist.
        """
        return await self.execute(calls.retry(job_id))

    async def delete(self, job_id: str | UUID) -> None:
        """Delete a job and its history.

        Raises:
            Conflict: The job is running.
            NotFound: The job does not exist.
        """
        await self.execute(calls.delete(job_id))

    async def cancel_all(
        self, *, everything: bool = False, dry_run: bool = False, reason: str = "", **where: Unpack[JobFilter]
    ) -> Bulk:
        """Cancel the unfinished jobs that match and return how many.

        Args:
            everything: Required if the filter is empty.
            dry_run: Count the jobs without cancelling them.
            reason: Reason shown on the jobs.
            where: Fields of the filter, such as `queue`, `type` or `status`.

        Raises:
            Invalid: A field is invalid, or the filter is empty and `everything` is not set.

        Example:
            await client.cancel_all(queue="mail", status="scheduled", reason="campaign stopped", dry_run=True)
        """
        return await self._complete(
            partial(calls.cancel_all, where, everything=everything, dry_run=dry_run, reason=reason)
        )

    async def retry_all(self, *, everything: bool = False, dry_run: bool = False, **where: Unpack[JobFilter]) -> Bulk:
        """Make the jobs that match ready now; without a `status`, dead ones only.

        Args:
            everything: Required if the filter is empty.
            dry_run: Count the jobs without changing them.
            where: Fields of the filter, such as `queue`, `type` or `status`.

        Raises:
            Invalid: A field is invalid, or the filter is empty and `everything` is not set.
        """
        return await self._complete(partial(calls.retry_all, where, everything=everything, dry_run=dry_run))

    def dead(self, **where: Unpack[DeadFilter]) -> AsyncIterator[Job]:
        """Iterate over dead letters, newest first, fetching pages on demand.

        Args:
            where: Fields of the filter, such as `queue`, `type` or `error`, the fingerprint of an error.
        """
        return self.pages(calls.dead(where))

    def dead_groups(self, *, tenant: str | None = None) -> AsyncIterator[DeadGroup]:
        """Iterate over dead letters grouped by error.

        Example:
            async for group in client.dead_groups():
                print(group.count, group.fingerprint)  # then: client.replay(error=group.fingerprint)
        """
        return self.pages(calls.dead_groups(tenant))

    async def replay(
        self,
        ids: Sequence[str | UUID] | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        **where: Unpack[DeadFilter],
    ) -> Bulk:
        """Replay dead letters, by id or by filter.

        Args:
            ids: Ids of dead letters; None uses the filter.
            everything: Required if the filter is empty.
            dry_run: Count the jobs without replaying them.
            where: Fields of the filter, such as `queue`, `type` or `error`.

        Raises:
            Invalid: A field is invalid, or the filter is empty and `everything` is not set.

        Example:
            await client.replay(queue="mail", error="c99d1332da0f4a87")
        """
        if ids is not None:
            return await self.execute(calls.replay_ids(ids, dry_run=dry_run))
        return await self._complete(partial(calls.replay, where, everything=everything, dry_run=dry_run))

    async def purge(
        self,
        ids: Sequence[str | UUID] | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        **where: Unpack[DeadFilter],
    ) -> Bulk:
        """Delete dead letters permanently, by id or by filter.

        Args:
            ids: Ids of dead letters; None uses the filter.
            everything: Required if the filter is empty.
            dry_run: Count the jobs without deleting them.
            where: Fields of the filter, such as `queue`, `type` or `error`.

        Raises:
            Invalid: A field is invalid, or the filter is empty and `everything` is not set.
        """
        if ids is not None:
            return await self.execute(calls.purge_ids(ids, dry_run=dry_run))
        return await self._complete(partial(calls.purge, where, everything=everything, dry_run=dry_run))

    async def _complete(self, call: Callable[..., Call[Bulk]]) -> Bulk:
        """Repeat a bulk action from its cursor until it is complete; return the sum."""
        total = waiting.BulkTotal()
        while total.incomplete:
            total.add(await self.execute(call(cursor=total.cursor)))
        return total.bulk

    async def queues(self, *, tenant: str | None = None) -> Sequence[Queue]:
        """List queues by name, with their depth, oldest wait and rates.

        Args:
            tenant: Count the jobs of this tenant only; for administrators.
        """
        return await self._all(calls.queues(tenant))

    async def pause(self, queue: str, *, reason: str = "", until: datetime | None = None) -> Queue:
        """Pause a queue. Running jobs continue.

        Args:
            queue: Name of the queue.
            reason: Reason shown to users who ask why a job is not running.
            until: Time at which the queue resumes by itself; None to wait for `resume`.

        Example:
            await client.pause("mail", reason="provider outage")
        """
        return await self.execute(calls.change_queue(queue, {"paused": True, "reason": reason, "until": until}))

    async def resume(self, queue: str) -> Queue:
        """Resume a paused queue."""
        return await self.execute(calls.change_queue(queue, {"paused": False}))

    async def change_queue(self, queue: str, **limits: Any) -> Queue:
        """Set limits of a queue. A limit that is left out does not change.

        Args:
            queue: Name of the queue.
            limits: `max_running`, the number of jobs that run at once, and `rate`, such as `"10/s"`; None removes a
                limit.

        Example:
            await client.change_queue("mail", max_running=50, rate="10/s")
        """
        return await self.execute(calls.change_queue(queue, limits))

    async def stats(self, *, tenant: str | None = None, cursor: str | None = None) -> Stats:
        """Count jobs by status, and by queue and type.

        Args:
            tenant: Count the jobs of this tenant only; for administrators.
            cursor: `next_cursor` of the previous call, which had the first 1,000 queues and types.
        """
        return await self.execute(calls.stats(tenant, cursor))

    async def analytics(self, window: str = "1h", **where: str) -> Summary:
        """Summarise the jobs of a time window that ends now: totals, rates and durations.

        Args:
            window: Length of the window, such as `"15m"`, `"1h"` or `"7d"`.
            where: `queue`, `type` or `tenant`, to count only these jobs.

        Example:
            summary = await client.analytics("24h", queue="mail")
        """
        return await self.execute(calls.analytics({"window": window, **where}))

    async def workers(self) -> Sequence[Worker]:
        """List workers, oldest first."""
        return await self._all(calls.workers())

    async def drain_worker(self, worker: str) -> Sequence[Worker]:
        """Ask a worker and the other workers of its node to drain; return them, the given one first.

        They see the request at their next lease renewal, finish their running jobs and stop.

        Args:
            worker: Id of the worker, as in `workers()`.

        Raises:
            NotFound: There is no such worker.
        """
        return await self.execute(calls.drain_worker(worker))

    def types(self, *, tenant: str | None = None) -> AsyncIterator[JobType]:
        """Iterate over the job types that workers handle, by name, with payload schemas."""
        return self.pages(calls.job_types(tenant))

    def tenants(self) -> AsyncIterator[Tenant]:
        """Iterate over tenants, by name."""
        return self.pages(calls.tenants())

    async def create_tenant(self, name: str, **quotas: Any) -> Tenant:
        """Create a tenant.

        Args:
            name: Name of the tenant.
            quotas: Any of `weight`, `rate` and `rate_window`, `backlog` and `queue_backlog`; see `POST /v1/tenants`.

        Raises:
            Conflict: The tenant exists.

        Example:
            await client.create_tenant("acme", weight=2, backlog=10_000)
        """
        return await self.execute(calls.create_tenant(name, quotas))

    async def change_tenant(self, name: str, **changes: Any) -> Tenant:
        """Change the quotas of a tenant.

        Args:
            name: Name of the tenant.
            changes: The quotas to change, as in `create_tenant`; None restores the default of the installation.

        Raises:
            NotFound: The tenant does not exist.
        """
        return await self.execute(calls.change_tenant(name, changes))

    def keys(self, *, tenant: str | None = None) -> AsyncIterator[Key]:
        """Iterate over API keys, newest first, including expired and revoked ones."""
        return self.pages(calls.keys(tenant))

    async def create_key(
        self, name: str, scopes: Sequence[str], *, tenant: str | None = None, expires: datetime | Span | None = None
    ) -> NewKey:
        """Create an API key. Its token is returned only here.

        Args:
            name: Name shown in lists.
            scopes: Any of `submit`, `read`, `cancel`, `worker`, `metrics` and `admin`.
            tenant: Tenant that the key acts for.
            expires: Time of expiry, or the time until then.

        Example:
            key = await client.create_key("shop", ["submit", "read"], tenant="acme", expires="90d")
            print(key.token)
        """
        return await self.execute(calls.create_key(name, scopes, tenant, expires))

    async def revoke_key(self, key_id: str) -> Key:
        """Revoke an API key and all tokens created with it; nodes reject them within seconds."""
        return await self.execute(calls.revoke_key(key_id))

    async def events(self, *, last_id: str = "", **where: str) -> AsyncIterator[Event]:
        """Yield changes as they happen, without end; reconnects and resumes after a failure.

        Args:
            last_id: `id` of the last event received, to resume after it; by default, the stream starts now.
            where: `queue`, `type`, `job` or `tenant`, to narrow the stream.

        Example:
            async for event in client.events(queue="mail"):
                print(event.kind, event.data)
        """
        stream = self._sender.stream(calls.events(where), EventParser(last_id), retry_timeout=self._retry_timeout)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    def list(self, **where: Unpack[JobListFilter]) -> AsyncIterator[Job]:
        """Iterate over jobs, newest first, fetching pages on demand.

        Example:
            async for job in client.list(status="dead", queue="mail"):
                print(job.id, job.error)
        """
        return self.pages(calls.jobs(where))
