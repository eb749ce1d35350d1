"""Everything that can be asked of a node: for each the request, and how its answer is read. No I/O."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

from holdfast.errors import Invalid, InvalidBatch
from holdfast.model.explanation import Explanation
from holdfast.sdk.models import (
    Bulk,
    DeadGroup,
    Groups,
    Job,
    JobDetail,
    JobType,
    Key,
    NewKey,
    Page,
    Queue,
    Receipt,
    Stats,
    Summary,
    Tenant,
    Worker,
)
from holdfast.sdk.options import DeadFilter, JobFilter, JobOptions, NewJob, Span, encoded, header, text
from holdfast.sdk.responses import Response, check, read
from holdfast.sdk.worker_requests import Request
from holdfast.wire.analytics import TypeFigures
from holdfast.wire.types import MAX_BATCH_SIZE

T = TypeVar("T")
LARGEST_PAGE = 200

ALIVE = Request("GET", "/healthz", repeatable=True)
"""Whether a node answers."""


class Call(NamedTuple, Generic[T]):
    """A request, and what its answer means."""

    request: Request
    read: Callable[[Response], T]


class PageCall(NamedTuple, Generic[T]):
    """A list: the call for each page, by the cursor that the page before gave."""

    at: Callable[[str | None], Call[Page[T]]]


# Jobs


def submit(type: str, payload: Any, options: JobOptions, tenant: str | None) -> Call[Job]:  # noqa: A002 - a job's word
    """Submit one job. A key is made where none is given, so that it can be asked again without making two of it."""
    given: dict[str, Any] = {"type": type, "payload": payload, **options}
    key = given.pop("idempotency_key", None) or new_key()
    body = encoded(given)
    headers = {"idempotency-key": header(key, "/idempotency_key"), **_tenant(tenant)}
    return Call(Request("POST", "/v1/jobs", body, headers, repeatable=True), lambda r: read(r, Job))


def submit_many(jobs: Iterable[NewJob], tenant: str | None) -> Call[list[Receipt]]:
    """Submit many: all, or none. Each has a key, its own or one that is made."""
    given = [{"idempotency_key": new_key(), **job} for job in jobs]
    if len(given) > MAX_BATCH_SIZE:
        raise InvalidBatch.too_many(len(given), MAX_BATCH_SIZE)
    request = Request("POST", "/v1/jobs/batch", encoded({"jobs": given}), _tenant(tenant), repeatable=True)
    return Call(request, lambda r: read(r, Page[Receipt]).items)


def get(job_id: str | UUID) -> Call[JobDetail]:
    """One job and all that is known of it."""
    return Call(Request("GET", _job(job_id), repeatable=True), lambda r: read(r, JobDetail))


def explain(job_id: str | UUID) -> Call[Explanation]:
    """Why a job is (not) running."""
    return Call(Request("GET", f"{_job(job_id)}/explain", repeatable=True), lambda r: read(r, Explanation))


def jobs(where: JobFilter, limit: int = LARGEST_PAGE) -> PageCall[Job]:
    """Jobs, newest first."""
    return PageCall(lambda cursor: _page("/v1/jobs", {**where, "limit": limit, "cursor": cursor}, Page[Job]))


def cancel(job_id: str | UUID, reason: str) -> Call[JobDetail]:
    """Cancel a job, also one that runs."""
    request = Request("POST", f"{_job(job_id)}/cancel", encoded({"reason": reason}), repeatable=True)
    return Call(request, lambda r: read(r, JobDetail))


def retry(job_id: str | UUID) -> Call[JobDetail]:
    """Have a job run now."""
    return Call(Request("POST", f"{_job(job_id)}/retry"), lambda r: read(r, JobDetail))


def delete(job_id: str | UUID) -> Call[None]:
    """Delete a job and what it recorded."""
    return Call(Request("DELETE", _job(job_id)), check)


def cancel_all(
    where: JobFilter, *, everything: bool, dry_run: bool, reason: str = "", cursor: str | None = None
) -> Call[Bulk]:
    """Cancel all that match and are not finished, as many as one request may."""
    return _bulk("/v1/jobs/cancel", where, everything=everything, dry_run=dry_run, cursor=cursor, reason=reason)


def retry_all(where: JobFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Run all that match; without a status, the dead ones."""
    return _bulk("/v1/jobs/retry", where, everything=everything, dry_run=dry_run, cursor=cursor)


# Dead letters


def dead(where: DeadFilter, limit: int = LARGEST_PAGE) -> PageCall[Job]:
    """Dead letters, newest first."""
    return PageCall(lambda cursor: _page("/v1/dead", {**where, "limit": limit, "cursor": cursor}, Page[Job]))


def dead_groups(tenant: str | None, limit: int = LARGEST_PAGE) -> PageCall[DeadGroup]:
    """Dead letters by error."""

    def at(cursor: str | None) -> Call[Page[DeadGroup]]:
        asked = {"group": "fingerprint", "tenant": tenant, "limit": limit, "cursor": cursor}

        def groups(response: Response) -> Page[DeadGroup]:
            found = read(response, Groups)
            return Page(found.groups, found.next_cursor)

        return Call(_get("/v1/dead", asked), groups)

    return PageCall(at)


def replay(where: DeadFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Run dead letters again, as many as one request may."""
    return _bulk("/v1/dead/replay", where, everything=everything, dry_run=dry_run, cursor=cursor)


def replay_these(ids: Sequence[str | UUID], *, dry_run: bool) -> Call[Bulk]:
    """Run these dead letters again."""
    body = encoded({"ids": [str(each) for each in ids], "dry_run": dry_run})
    return Call(Request("POST", "/v1/dead/replay", body, repeatable=True), lambda r: read(r, Bulk))


def purge(where: DeadFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Delete dead letters for good, as many as one request may."""
    asked = {**where, "all": everything, "dry_run": dry_run, "cursor": cursor}
    return Call(_get("/v1/dead", asked)._replace(method="DELETE"), lambda r: read(r, Bulk))


def purge_these(ids: Sequence[str | UUID], *, dry_run: bool) -> Call[Bulk]:
    """Delete these dead letters for good."""
    asked = {"ids": ",".join(str(each) for each in ids), "dry_run": dry_run}
    return Call(_get("/v1/dead", asked)._replace(method="DELETE"), lambda r: read(r, Bulk))


# What there is


def queues(tenant: str | None) -> Call[list[Queue]]:
    """All queues in which the caller sees something."""
    return Call(_get("/v1/queues", {"tenant": tenant}), lambda r: read(r, Page[Queue]).items)


def change_queue(name: str, changes: Mapping[str, Any]) -> Call[Queue]:
    """Pause a queue, resume it, set its limits; None takes a limit away."""
    request = Request("PATCH", f"/v1/queues/{_segment(name)}", encoded(changes), repeatable=True)
    return Call(request, lambda r: read(r, Queue))


def stats(tenant: str | None) -> Call[Stats]:
    """How many jobs there are."""
    return Call(_get("/v1/stats", {"tenant": tenant}), lambda r: read(r, Stats))


def analytics(asked: Mapping[str, Any]) -> Call[Summary]:
    """What happened in a window, and how long it took."""
    return Call(_get("/v1/analytics", asked), lambda r: read(r, Summary))


def types(window: str) -> Call[list[TypeFigures]]:
    """What happened to each type of jobs in a window."""
    return Call(_get("/v1/analytics/types", {"window": window}), lambda r: read(r, Page[TypeFigures]).items)


def workers() -> Call[list[Worker]]:
    """Who runs jobs."""
    return Call(_get("/v1/workers", {}), lambda r: read(r, Page[Worker]).items)


def drain_worker(worker: str) -> Call[list[Worker]]:
    """Have a worker and its node finish what they run and end."""
    request = Request("POST", f"/v1/workers/{_segment(worker)}/drain", repeatable=True)
    return Call(request, lambda r: read(r, Page[Worker]).items)


def job_types(tenant: str | None, limit: int = 500) -> PageCall[JobType]:
    """Types of jobs that workers handle, by name."""
    asked = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: _page("/v1/types", {**asked, "cursor": cursor}, Page[JobType]))


def ready() -> Call[dict[str, Any]]:
    """Whether the node and its database work."""
    return Call(Request("GET", "/readyz", repeatable=True), lambda r: read(r, dict[str, Any]))


# Who may call


def tenants(limit: int = LARGEST_PAGE) -> PageCall[Tenant]:
    """Tenants, by name."""
    return PageCall(lambda cursor: _page("/v1/tenants", {"limit": limit, "cursor": cursor}, Page[Tenant]))


def create_tenant(name: str, quotas: Mapping[str, Any]) -> Call[Tenant]:
    """Enter a tenant."""
    return Call(Request("POST", "/v1/tenants", encoded({"name": name, **quotas})), lambda r: read(r, Tenant))


def change_tenant(name: str, changes: Mapping[str, Any]) -> Call[Tenant]:
    """Change what a tenant may have; None goes back to the default."""
    request = Request("PATCH", f"/v1/tenants/{_segment(name)}", encoded(changes), repeatable=True)
    return Call(request, lambda r: read(r, Tenant))


def keys(tenant: str | None, limit: int = LARGEST_PAGE) -> PageCall[Key]:
    """Keys, newest first."""
    asked = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: _page("/v1/keys", {**asked, "cursor": cursor}, Page[Key]))


def create_key(name: str, scopes: Sequence[str], tenant: str | None, expires: datetime | Span | None) -> Call[NewKey]:
    """Make a key."""
    asked: dict[str, Any] = {"name": name, "scopes": list(scopes)}
    if tenant is not None:
        asked["tenant"] = tenant
    if expires is not None:
        asked["expires_at" if isinstance(expires, datetime) else "expires_in"] = expires
    return Call(Request("POST", "/v1/keys", encoded(asked)), lambda r: read(r, NewKey))


def revoke_key(key_id: str) -> Call[Key]:
    """End a key."""
    return Call(Request("DELETE", f"/v1/keys/{_segment(key_id)}", repeatable=True), lambda r: read(r, Key))


def events(asked: Mapping[str, Any]) -> Request:
    """What changes from now on, as a stream."""
    return _get("/v1/events", asked)


# How they are written


def new_key() -> str:
    """A key that nobody else has."""
    return f"auto-{uuid4().hex}"


def _page(path: str, asked: Mapping[str, Any], kind: type[Page[T]]) -> Call[Page[T]]:
    return Call(_get(path, asked), lambda r: read(r, kind))


def _get(path: str, asked: Mapping[str, Any]) -> Request:
    given = {name: text(value) for name, value in asked.items() if value is not None}
    return Request("GET", f"{path}?{urlencode(given)}" if given else path, repeatable=True)


def _bulk(
    path: str, where: Mapping[str, Any], *, everything: bool, dry_run: bool, cursor: str | None, reason: str = ""
) -> Call[Bulk]:
    asked: dict[str, Any] = {"filter": dict(where), "all": everything, "dry_run": dry_run}
    if cursor is not None:
        asked["cursor"] = cursor
    if reason:
        asked["reason"] = reason
    # Asked again it finds what the first time did not change.
    return Call(Request("POST", path, encoded(asked), repeatable=True), lambda r: read(r, Bulk))


def _job(job_id: str | UUID) -> str:
    return f"/v1/jobs/{_segment(str(job_id))}"


def _segment(name: str) -> str:
    if not name or name in (".", ".."):
        raise Invalid(f"{name!r} names nothing: give a name or an id")
    return quote(name, safe="")


def _tenant(tenant: str | None) -> dict[str, str]:
    return {} if tenant is None else {"holdfast-tenant": header(tenant, "/tenant")}
