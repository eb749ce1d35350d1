"""Operations of the HTTP API: requests, and the decoders of their responses. No I/O."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

from holdfast.errors import Invalid, InvalidBatch
from holdfast.model.bounds import MAX_BATCH_SIZE
from holdfast.model.explanation import Explanation
from holdfast.sdk.models import (
    Attempt,
    Bulk,
    DeadGroup,
    DeadGroupPage,
    Job,
    JobDetail,
    JobType,
    Key,
    ListPage,
    NewKey,
    Queue,
    Receipt,
    Stats,
    Step,
    Summary,
    Tenant,
    Worker,
)
from holdfast.sdk.options import (
    DeadFilter,
    JobFilter,
    JobListFilter,
    JobOptions,
    NewJob,
    Span,
    encode_body,
    header,
    query_text,
    rate_fields,
)
from holdfast.sdk.responses import Response, check, read
from holdfast.sdk.worker_requests import Request
from holdfast.wire.analytics import TypeStats

T = TypeVar("T")
MAX_PAGE_SIZE = 200
MAX_NAMES = 1_000
"""Maximum number of queues, types or workers on a page."""

PING = Request("GET", "/healthz", repeatable=True)
"""Succeeds if the node responds."""


class Call(NamedTuple, Generic[T]):
    """Request and the decoder of its response."""

    request: Request
    read: Callable[[Response], T]


class PageCall(NamedTuple, Generic[T]):
    """List operation: returns the call for a page by the cursor of the previous page."""

    at: Callable[[str | None], Call[ListPage[T]]]


# Jobs


def submit(type: str, payload: Any, options: JobOptions, tenant: str | None) -> Call[Job]:  # noqa: A002 - a job's word
    """Submit one job; without an idempotency key, generate one to make retries safe."""
    fields: dict[str, Any] = {"type": type, "payload": payload, **options}
    key = fields.pop("idempotency_key", None) or new_idempotency_key()
    body = encode_body(fields)
    headers = {"idempotency-key": header(key, "/idempotency_key"), **_tenant(tenant)}
    return Call(Request("POST", "/v1/jobs", body, headers, repeatable=True), lambda r: read(r, Job))


def submit_many(jobs: Iterable[NewJob], tenant: str | None) -> Call[list[Receipt]]:
    """Submit many jobs atomically, each with its idempotency key or a generated one."""
    batch = [{"idempotency_key": new_idempotency_key(), **job} for job in jobs]
    if len(batch) > MAX_BATCH_SIZE:
        raise InvalidBatch.too_many(len(batch), MAX_BATCH_SIZE)
    request = Request("POST", "/v1/jobs/batch", encode_body({"jobs": batch}), _tenant(tenant), repeatable=True)
    return Call(request, lambda r: read(r, ListPage[Receipt]).items)


def get(job_id: str | UUID) -> Call[JobDetail]:
    """Get one job with its attempts, steps and lineage."""
    return Call(Request("GET", _job(job_id), repeatable=True), lambda r: read(r, JobDetail))


def attempts(job_id: str | UUID) -> PageCall[Attempt]:
    """List the attempts of a job that failed or logged something, newest first."""
    return PageCall(lambda cursor: page_call(f"{_job(job_id)}/attempts", {"cursor": cursor}, ListPage[Attempt]))


def steps(job_id: str | UUID) -> PageCall[Step]:
    """List the recorded steps of a job, by key."""
    return PageCall(lambda cursor: page_call(f"{_job(job_id)}/steps", {"cursor": cursor}, ListPage[Step]))


def explain(job_id: str | UUID) -> Call[Explanation]:
    """Explain why a job is (not) running."""
    return Call(Request("GET", f"{_job(job_id)}/explain", repeatable=True), lambda r: read(r, Explanation))


def jobs(where: JobListFilter, limit: int = MAX_PAGE_SIZE) -> PageCall[Job]:
    """List jobs, newest first."""
    return PageCall(lambda cursor: page_call("/v1/jobs", {**where, "limit": limit, "cursor": cursor}, ListPage[Job]))


def cancel(job_id: str | UUID, reason: str) -> Call[JobDetail]:
    """Cancel a job, even if it is running."""
    request = Request("POST", f"{_job(job_id)}/cancel", encode_body({"reason": reason}), repeatable=True)
    return Call(request, lambda r: read(r, JobDetail))


def retry(job_id: str | UUID) -> Call[JobDetail]:
    """Make a job ready now."""
    return Call(Request("POST", f"{_job(job_id)}/retry"), lambda r: read(r, JobDetail))


def delete(job_id: str | UUID) -> Call[None]:
    """Delete a job and its history."""
    return Call(Request("DELETE", _job(job_id)), check)


def cancel_all(
    where: JobFilter, *, everything: bool, dry_run: bool, reason: str = "", cursor: str | None = None
) -> Call[Bulk]:
    """Cancel the unfinished jobs that match, up to the limit of one request."""
    return _bulk("/v1/jobs/cancel", where, everything=everything, dry_run=dry_run, cursor=cursor, reason=reason)


def retry_all(where: JobFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Make the jobs that match ready; without a status, dead ones only."""
    return _bulk("/v1/jobs/retry", where, everything=everything, dry_run=dry_run, cursor=cursor)


# Dead letters


def dead(where: DeadFilter, limit: int = MAX_PAGE_SIZE) -> PageCall[Job]:
    """List dead letters, newest first."""
    return PageCall(lambda cursor: page_call("/v1/dead", {**where, "limit": limit, "cursor": cursor}, ListPage[Job]))


def dead_groups(tenant: str | None, limit: int = MAX_PAGE_SIZE) -> PageCall[DeadGroup]:
    """List dead letters grouped by error."""

    def at(cursor: str | None) -> Call[ListPage[DeadGroup]]:
        fields = {"group": "fingerprint", "tenant": tenant, "limit": limit, "cursor": cursor}

        def groups(response: Response) -> ListPage[DeadGroup]:
            page = read(response, DeadGroupPage)
            return ListPage(page.groups, page.next_cursor)

        return Call(get_request("/v1/dead", fields), groups)

    return PageCall(at)


def replay(where: DeadFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Replay the dead letters that match, up to the limit of one request."""
    return _bulk("/v1/dead/replay", where, everything=everything, dry_run=dry_run, cursor=cursor)


def replay_ids(ids: Sequence[str | UUID], *, dry_run: bool) -> Call[Bulk]:
    """Replay these dead letters."""
    body = encode_body({"ids": [str(job_id) for job_id in ids], "dry_run": dry_run})
    return Call(Request("POST", "/v1/dead/replay", body, repeatable=True), lambda r: read(r, Bulk))


def purge(where: DeadFilter, *, everything: bool, dry_run: bool, cursor: str | None = None) -> Call[Bulk]:
    """Delete the dead letters that match, up to the limit of one request."""
    fields = {**where, "all": everything, "dry_run": dry_run, "cursor": cursor}
    return Call(get_request("/v1/dead", fields)._replace(method="DELETE"), lambda r: read(r, Bulk))


def purge_ids(ids: Sequence[str | UUID], *, dry_run: bool) -> Call[Bulk]:
    """Delete these dead letters."""
    fields = {"ids": ",".join(str(job_id) for job_id in ids), "dry_run": dry_run}
    return Call(get_request("/v1/dead", fields)._replace(method="DELETE"), lambda r: read(r, Bulk))


# Operations


def queues(tenant: str | None, limit: int = MAX_NAMES) -> PageCall[Queue]:
    """List the queues that the caller can see, by name."""
    fields = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: page_call("/v1/queues", {**fields, "cursor": cursor}, ListPage[Queue]))


def change_queue(name: str, changes: Mapping[str, Any]) -> Call[Queue]:
    """Pause or resume a queue, or set its limits; None removes a limit."""
    if "rate" in changes:
        changes = {**changes, "rate": rate_fields(changes["rate"])}
    request = Request("PATCH", f"/v1/queues/{path_segment(name)}", encode_body(changes), repeatable=True)
    return Call(request, lambda r: read(r, Queue))


def stats(tenant: str | None, cursor: str | None = None) -> Call[Stats]:
    """Count jobs by status, queue and type; the next names follow `cursor`."""
    return Call(
        get_request("/v1/stats", {"tenant": tenant, "limit": MAX_NAMES, "cursor": cursor}), lambda r: read(r, Stats)
    )


def analytics(fields: Mapping[str, Any]) -> Call[Summary]:
    """Summarise a window: totals, rates and durations."""
    return Call(get_request("/v1/analytics", fields), lambda r: read(r, Summary))


def type_stats(fields: Mapping[str, Any]) -> Call[list[TypeStats]]:
    """Summarise a window per job type."""
    return Call(get_request("/v1/analytics/types", fields), lambda r: read(r, ListPage[TypeStats]).items)


def workers(limit: int = MAX_NAMES) -> PageCall[Worker]:
    """List workers, oldest first."""
    return PageCall(lambda cursor: page_call("/v1/workers", {"limit": limit, "cursor": cursor}, ListPage[Worker]))


def drain_worker(worker: str) -> Call[list[Worker]]:
    """Drain a worker and the other processes of its node."""
    request = Request("POST", f"/v1/workers/{path_segment(worker)}/drain", repeatable=True)
    return Call(request, lambda r: read(r, ListPage[Worker]).items)


def job_types(tenant: str | None, limit: int = 500) -> PageCall[JobType]:
    """List the job types that workers handle, by name."""
    fields = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: page_call("/v1/types", {**fields, "cursor": cursor}, ListPage[JobType]))


def ready() -> Call[dict[str, Any]]:
    """Check that the node and its database work."""
    return Call(Request("GET", "/readyz", repeatable=True), lambda r: read(r, dict[str, Any]))


# Access


def tenants(limit: int = MAX_PAGE_SIZE) -> PageCall[Tenant]:
    """List tenants, by name."""
    return PageCall(lambda cursor: page_call("/v1/tenants", {"limit": limit, "cursor": cursor}, ListPage[Tenant]))


def create_tenant(name: str, quotas: Mapping[str, Any]) -> Call[Tenant]:
    """Create a tenant."""
    return Call(Request("POST", "/v1/tenants", encode_body({"name": name, **quotas})), lambda r: read(r, Tenant))


def change_tenant(name: str, changes: Mapping[str, Any]) -> Call[Tenant]:
    """Change the quotas of a tenant; None restores the default."""
    request = Request("PATCH", f"/v1/tenants/{path_segment(name)}", encode_body(changes), repeatable=True)
    return Call(request, lambda r: read(r, Tenant))


def keys(tenant: str | None, limit: int = MAX_PAGE_SIZE) -> PageCall[Key]:
    """List API keys, newest first."""
    fields = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: page_call("/v1/keys", {**fields, "cursor": cursor}, ListPage[Key]))


def create_key(name: str, scopes: Sequence[str], tenant: str | None, expires: datetime | Span | None) -> Call[NewKey]:
    """Create an API key."""
    fields: dict[str, Any] = {"name": name, "scopes": list(scopes)}
    if tenant is not None:
        fields["tenant"] = tenant
    if expires is not None:
        fields["expires_at" if isinstance(expires, datetime) else "expires_in"] = expires
    return Call(Request("POST", "/v1/keys", encode_body(fields)), lambda r: read(r, NewKey))


def revoke_key(key_id: str) -> Call[Key]:
    """Revoke an API key."""
    return Call(Request("DELETE", f"/v1/keys/{path_segment(key_id)}", repeatable=True), lambda r: read(r, Key))


def events(fields: Mapping[str, Any]) -> Request:
    """Stream changes of jobs and workers."""
    return get_request("/v1/events", fields)


# Helpers


def new_idempotency_key() -> str:
    """Return a random idempotency key."""
    return f"auto-{uuid4().hex}"


def page_call(path: str, fields: Mapping[str, Any], kind: type[ListPage[T]]) -> Call[ListPage[T]]:
    """Return the call for a page of a list."""
    return Call(get_request(path, fields), lambda r: read(r, kind))


def get_request(path: str, fields: Mapping[str, Any]) -> Request:
    """Return a GET request with these fields as its query; None leaves a field out."""
    query = {name: query_text(value) for name, value in fields.items() if value is not None}
    return Request("GET", f"{path}?{urlencode(query)}" if query else path, repeatable=True)


def _bulk(
    path: str, where: Mapping[str, Any], *, everything: bool, dry_run: bool, cursor: str | None, reason: str = ""
) -> Call[Bulk]:
    fields: dict[str, Any] = {"filter": dict(where), "all": everything, "dry_run": dry_run}
    if cursor is not None:
        fields["cursor"] = cursor
    if reason:
        fields["reason"] = reason
    # Safe to retry: a repeated request changes only the jobs that the first one did not.
    return Call(Request("POST", path, encode_body(fields), repeatable=True), lambda r: read(r, Bulk))


def _job(job_id: str | UUID) -> str:
    return f"/v1/jobs/{path_segment(str(job_id))}"


def path_segment(name: str) -> str:
    """Return a name or an id as a path segment; raises `Invalid` if it cannot be one."""
    if not name or name in (".", ".."):
        raise Invalid(f"{name!r} is not a name or an id")
    return quote(name, safe="")


def _tenant(tenant: str | None) -> dict[str, str]:
    return {} if tenant is None else {"holdfast-tenant": header(tenant, "/tenant")}
