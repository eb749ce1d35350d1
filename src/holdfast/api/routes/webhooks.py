"""Routes for webhook circuit breakers, signing secrets and deliveries."""

from typing import Any

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT
from holdfast.api.routes.worker_protocol import tenant_of
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Route, RouteCall
from holdfast.errors import NotFound
from holdfast.model.access import Scope
from holdfast.model.job import HeldJob, Job
from holdfast.policy.access import is_tenant, visible_tenant
from holdfast.wire import deliveries as wire
from holdfast.wire import worker_protocol_codec
from holdfast.wire.deliveries import (
    BreakerPage,
    BreakerQuery,
    DeliveryDone,
    DeliveryOut,
    DeliveryRequest,
    RotateQuery,
    WebhookSecretMade,
    WebhookSecretOut,
)


async def list_breakers(call: RouteCall[None, BreakerQuery]) -> HttpResponse | Stream:
    """List circuit breakers of destinations that failed recently, by tenant and destination."""
    query = call.query
    tenant, after = visible_tenant(call.caller, query.tenant), wire.read_breaker_cursor(query.cursor)
    breakers = await call.service.engine.deliveries.breakers(tenant, after, query.limit)
    next_cursor = wire.breaker_cursor(breakers[-1]) if len(breakers) == query.limit else None
    return HttpResponse(BreakerPage([wire.breaker_out(breaker) for breaker in breakers], next_cursor))


async def rotate_webhook_secret(call: RouteCall[None, RotateQuery]) -> HttpResponse | Stream:
    """Create a signing secret; the previous one stays valid during the overlap."""
    tenant = _tenant(call)
    secret, keys = await call.service.engine.deliveries.rotate_secret(tenant, wire.overlap_of(call.query))
    return HttpResponse(wire.secret_made(tenant, keys, secret), 201)


async def show_webhook_secret(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return when the signing secret was created."""
    tenant = _tenant(call)
    return HttpResponse(wire.secret_out(tenant, await call.service.engine.deliveries.secret(tenant)))


async def drop_webhook_secret(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Delete the signing secret; idempotent."""
    await call.service.engine.deliveries.drop_secret(_tenant(call))
    return HttpResponse(None, 204)


async def begin_delivery(call: RouteCall[DeliveryRequest, None]) -> HttpResponse | Stream:
    """Return whether a delivery may be sent now, and its signature."""
    request = call.body
    probe_for, body = wire.probe_span(request), wire.body_of(request)
    job = await _held_job(call, request)
    permit = await call.service.engine.deliveries.before_delivery(
        job, request.destination, probe_for=probe_for, at=request.at, body=body
    )
    return HttpResponse(wire.permit_out(permit))


async def end_delivery(call: RouteCall[DeliveryDone, None]) -> HttpResponse | Stream:
    """Report the outcome of a delivery to the circuit breaker."""
    report = call.body
    job = await _held_job(call, report)
    await call.service.engine.deliveries.after_delivery(job, report.destination, probe=report.probe, error=report.error)
    return HttpResponse(None, 204)


async def _held_job(call: RouteCall[Any, Any], body: DeliveryRequest | DeliveryDone) -> Job:
    held = HeldJob(worker_protocol_codec.job_id(body.id), body.fence, worker_protocol_codec.worker_id(body.worker))
    return await call.service.engine.remote_workers.job(held, by=tenant_of(call))


def _tenant(call: RouteCall[None, RotateQuery] | RouteCall[None, None]) -> str:
    name = call.path["name"]
    if not is_tenant(name):
        raise NotFound(f"there is no tenant {name[:40]!r}: GET /v1/tenants lists them")
    visible_tenant(call.caller, name)
    return name


ROUTES = (
    Route(
        "GET", "/v1/breakers", Scope.READ, list_breakers, "List webhook destinations that failed recently",
        {200: BreakerPage}, query=BreakerQuery, tag="webhooks",
    ),
    Route(
        "POST", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, rotate_webhook_secret,
        "Create a secret that signs webhooks", {201: WebhookSecretMade}, query=RotateQuery, tag="webhooks",
        tenant_admin=True,
    ),
    Route(
        "GET", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, show_webhook_secret,
        "Get when the webhook secret was created", {200: WebhookSecretOut}, tag="webhooks", tenant_admin=True,
    ),
    Route(
        "DELETE", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, drop_webhook_secret, "Delete the webhook secret",
        {204: None}, tag="webhooks", tenant_admin=True,
    ),
    Route(
        "POST", "/v1/leases/deliveries", Scope.WORKER, begin_delivery,
        "Ask whether a webhook of a held job may be sent, and for its signature", {200: DeliveryOut}, DeliveryRequest,
        body_limit=MAX_BATCH_BODY_BYTES, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/deliveries/done", Scope.WORKER, end_delivery, "Report the outcome of a webhook delivery",
        {204: None}, DeliveryDone, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
)  # fmt: skip
