"""The client for code without an event loop: thin, over what is asked (`calls`) and when to ask again (`sending`)."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

import httpx2

from holdfast.model.explanation import Explanation
from holdfast.sdk import calls, retry, waiting
from holdfast.sdk.calls import Call, PageCall
from holdfast.sdk.models import (
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
    Summary,
    Tenant,
    Worker,
)
from holdfast.sdk.options import DeadFilter, JobFilter, JobOptions, NewJob, Span
from holdfast.sdk.responses import Response
from holdfast.sdk.sse import Events
from holdfast.sdk.worker_requests import Request

T = TypeVar("T")


class Sender:
    """Sends requests to one node, or several behind one address. Safe to use by many threads."""

    def __init__(self, url: str, key: str | None = None, *, transport: Any = None) -> None:
        self._address = retry.Address(url, key)
        self.url = self._address.url
        self._http = httpx2.Client(
            base_url=self.url,
            headers=self._address.headers,
            limits=retry.LIMITS,
            transport=transport,
            verify=self._address.encrypted,
        )

    def send(self, request: Request, *, patience: float = retry.PATIENCE) -> Response:
        """The answer, whatever its status but those that mean that the node or its database is away.

        Those raise `Unavailable` when nothing was done, `OutcomeUnknown` when nobody knows: at once, or after
        `patience` seconds if the request may be repeated.
        """
        waits = retry.Patience(patience)
        while True:
            found = self._once(request)
            if isinstance(found, Response):
                return found
            time.sleep(waits.pause(request, found))

    def stream(self, request: Request, events: Events, *, patience: float) -> Generator[Event]:
        """Events as they come; when the stream breaks, it is resumed after the last one that came."""
        waits = retry.Patience(patience)
        timeout = httpx2.Timeout(retry.SILENT_FOR, connect=retry.CONNECT_WITHIN)
        while True:
            headers = {"accept": "text/event-stream", **({"last-event-id": events.last_id} if events.last_id else {})}
            try:
                with self._http.stream(request.method, request.path, headers=headers, timeout=timeout) as answer:
                    if answer.status_code != 200:
                        body = answer.read()
                        found = waiting.refused(self._address, Response(answer.status_code, body, answer.headers))
                    else:
                        waits = retry.Patience(patience)
                        for chunk in answer.iter_bytes():
                            for event in events.feed(chunk):
                                yield event
                                if waiting.is_last(event):
                                    return
                        found = waiting.ENDED
            except httpx2.TransportError as error:
                found = self._address.silent(error)
            events.broke()
            time.sleep(waits.pause(request, found))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _once(self, request: Request) -> Response | retry.Away:
        try:
            answer = self._http.request(
                request.method,
                request.path,
                content=request.body,
                headers=retry.headers_of(request),
                timeout=retry.timeout_of(request),
            )
        except httpx2.TransportError as error:
            return self._address.silent(error)
        return self._address.judged(Response(answer.status_code, answer.content, answer.headers))


class Client:
    """Talks to a holdfast service over HTTP.

    What can be repeated without harm is asked again while the service is away, for up to `patience` seconds, with
    the same idempotency key and no sooner than the service asks for. `with` closes it.
    """

    def __init__(
        self, url: str, key: str | None = None, *, patience: float = retry.PATIENCE, transport: Any = None
    ) -> None:
        self._sender = Sender(url, key, transport=transport)
        self._patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._sender.close()

    def ask(self, call: Call[T]) -> T:
        """What a call of `holdfast.sdk.calls` is answered with."""
        return call.read(self._sender.send(call.request, patience=self._patience))

    def alive(self) -> None:
        """Raise `Unavailable` at once unless the service answers."""
        self._sender.send(calls.ALIVE, patience=0)

    def pages(self, pages: PageCall[T]) -> Iterator[T]:
        """All items of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.ask(pages.at(cursor))
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def submit(
        self,
        type: str,  # noqa: A002 - a job's own word
        payload: Any = None,
        *,
        tenant: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Submit one job; durable when this returns. `tenant`: for administrators, whose job it is."""
        return self.ask(calls.submit(type, payload, options, tenant))

    def submit_many(self, jobs: Iterable[NewJob], *, tenant: str | None = None) -> Sequence[Receipt]:
        """Submit up to 10,000 jobs: all, or none and `InvalidBatch` naming every one at fault."""
        return self.ask(calls.submit_many(jobs, tenant))

    def get(self, job_id: str | UUID) -> JobDetail:
        """One job and all that is known of it; raises `NotFound`."""
        return self.ask(calls.get(job_id))

    def wait(self, job_id: str | UUID, timeout: Span | None = None) -> Any:
        """The result, when there is one.

        Raises `JobFailed` when the job is dead, `JobCancelled` when it was cancelled, and `WaitTimeout` when it is not
        finished in time.
        """
        waits = waiting.Waiting(timeout)
        while True:
            job = self.get(job_id)
            if job.status.terminal:
                return waiting.verdict(job)
            time.sleep(waits.pause(job))

    def explain(self, job_id: str | UUID) -> Explanation:
        """Why a job is (not) running."""
        return self.ask(calls.explain(job_id))

    def cancel(self, job_id: str | UUID, reason: str = "") -> JobDetail:
        """Cancel a job, also one that runs; raises `Conflict` when it is finished."""
        return self.ask(calls.cancel(job_id, reason))

    def retry(self, job_id: str | UUID) -> JobDetail:
        """Have a job run now; raises `Conflict` when it runs, or has succeeded."""
        return self.ask(calls.retry(job_id))

    def delete(self, job_id: str | UUID) -> None:
        """Delete a job that does not run, and what it recorded."""
        self.ask(calls.delete(job_id))

    def cancel_all(
        self, *, everything: bool = False, dry_run: bool = False, reason: str = "", **where: Unpack[JobFilter]
    ) -> Bulk:
        """Cancel all that match and are not finished. `everything` must be said when nothing else is."""
        return self._to_the_end(partial(calls.cancel_all, where, everything=everything, dry_run=dry_run, reason=reason))

    def retry_all(self, *, everything: bool = False, dry_run: bool = False, **where: Unpack[JobFilter]) -> Bulk:
        """Run all that match; without a status, the dead ones. `everything` must be said when nothing else is."""
        return self._to_the_end(partial(calls.retry_all, where, everything=everything, dry_run=dry_run))

    def dead(self, **where: Unpack[DeadFilter]) -> Iterator[Job]:
        """Dead letters, newest first; pages are fetched as they are wanted."""
        return self.pages(calls.dead(where))

    def dead_groups(self, *, tenant: str | None = None) -> Iterator[DeadGroup]:
        """Dead letters by error."""
        return self.pages(calls.dead_groups(tenant))

    def replay(
        self,
        ids: Sequence[str | UUID] | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        **where: Unpack[DeadFilter],
    ) -> Bulk:
        """Run dead letters again: these, or all that match."""
        if ids is not None:
            return self.ask(calls.replay_these(ids, dry_run=dry_run))
        return self._to_the_end(partial(calls.replay, where, everything=everything, dry_run=dry_run))

    def purge(
        self,
        ids: Sequence[str | UUID] | None = None,
        *,
        everything: bool = False,
        dry_run: bool = False,
        **where: Unpack[DeadFilter],
    ) -> Bulk:
        """Delete dead letters for good: these, or all that match."""
        if ids is not None:
            return self.ask(calls.purge_these(ids, dry_run=dry_run))
        return self._to_the_end(partial(calls.purge, where, everything=everything, dry_run=dry_run))

    def _to_the_end(self, call: Callable[..., Call[Bulk]]) -> Bulk:
        """The sum of what comes of a call that goes on from a cursor."""
        total = waiting.Total()
        while total.goes_on:
            total.add(self.ask(call(cursor=total.cursor)))
        return total.bulk

    def queues(self, *, tenant: str | None = None) -> Sequence[Queue]:
        """Queues: depth, oldest wait, rates."""
        return self.ask(calls.queues(tenant))

    def pause(self, queue: str, *, reason: str = "", until: datetime | None = None) -> Queue:
        """Have nothing of a queue run until it is resumed, or `until`."""
        return self.ask(calls.change_queue(queue, {"paused": True, "reason": reason, "until": until}))

    def resume(self, queue: str) -> Queue:
        """Have the jobs of a queue run again."""
        return self.ask(calls.change_queue(queue, {"paused": False}))

    def change_queue(self, queue: str, **limits: Any) -> Queue:
        """Set limits of a queue; None takes one away."""
        return self.ask(calls.change_queue(queue, limits))

    def stats(self, *, tenant: str | None = None) -> Stats:
        """How many jobs there are, by state, queue and type."""
        return self.ask(calls.stats(tenant))

    def analytics(self, window: str = "1h", **of: str) -> Summary:
        """What happened in a window, and how long it took; `queue`, `type` and `tenant` narrow it."""
        return self.ask(calls.analytics({"window": window, **of}))

    def workers(self) -> Sequence[Worker]:
        """Who runs jobs."""
        return self.ask(calls.workers())

    def drain_worker(self, worker: str) -> Sequence[Worker]:
        """Have a worker, and the other processes of its node, finish what they run and end: who was asked."""
        return self.ask(calls.drain_worker(worker))

    def types(self, *, tenant: str | None = None) -> Iterator[JobType]:
        """Types of jobs that workers handle, by name, with the schema of their payload."""
        return self.pages(calls.job_types(tenant))

    def tenants(self) -> Iterator[Tenant]:
        """Tenants, by name."""
        return self.pages(calls.tenants())

    def create_tenant(self, name: str, **quotas: Any) -> Tenant:
        """Enter a tenant; `Conflict` when it is there already."""
        return self.ask(calls.create_tenant(name, quotas))

    def change_tenant(self, name: str, **changes: Any) -> Tenant:
        """Change what a tenant may have; None goes back to the default."""
        return self.ask(calls.change_tenant(name, changes))

    def keys(self, *, tenant: str | None = None) -> Iterator[Key]:
        """Keys, newest first, also those that are good no more."""
        return self.pages(calls.keys(tenant))

    def create_key(
        self, name: str, scopes: Sequence[str], *, tenant: str | None = None, expires: datetime | Span | None = None
    ) -> NewKey:
        """Make a key; its token is shown this once."""
        return self.ask(calls.create_key(name, scopes, tenant, expires))

    def revoke_key(self, key_id: str) -> Key:
        """End a key, and all tokens that were made with it."""
        return self.ask(calls.revoke_key(key_id))

    def events(self, *, last_id: str = "", **of: str) -> Iterator[Event]:
        """What changes from now on, or after `last_id`, without end; `queue`, `type`, `job`, `tenant` narrow it."""
        found = self._sender.stream(calls.events(of), Events(last_id), patience=self._patience)
        with closing(found) as stream:
            yield from stream

    def list(self, **where: Unpack[JobFilter]) -> Iterator[Job]:
        """Jobs, newest first; pages are fetched as they are wanted."""
        return self.pages(calls.jobs(where))
