"""Webhooks: breakers of their destinations, and the secrets they are signed with."""

from typing import Any

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT
from holdfast.api.routes.worker_protocol import tenant_of
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Call, Route
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


async def list_breakers(call: Call[None, BreakerQuery]) -> HttpResponse | Stream:
    """Destinations that gave trouble lately, by tenant and name."""
    asked = call.query
    tenant = visible_tenant(call.caller, asked.tenant)
    after = wire.read_breaker_cursor(asked.cursor)
    found = await call.service.engine.deliveries.breakers(tenant, after, asked.limit)
    following = wire.breaker_cursor(found[-1]) if len(found) == asked.limit else None
    return HttpResponse(BreakerPage([wire.breaker_out(each) for each in found], following))


async def rotate_webhook_secret(call: Call[None, RotateQuery]) -> HttpResponse | Stream:
    """Make a secret, shown this once; the one before it signs beside it for a while."""
    tenant = _tenant(call)
    secret, keys = await call.service.engine.deliveries.rotate_secret(tenant, wire.overlap_of(call.query))
    return HttpResponse(wire.secret_made(tenant, keys, secret), 201)


async def show_webhook_secret(call: Call[None, None]) -> HttpResponse | Stream:
    """Since when there is a secret."""
    tenant = _tenant(call)
    return HttpResponse(wire.secret_out(tenant, await call.service.engine.deliveries.secret(tenant)))


async def drop_webhook_secret(call: Call[None, None]) -> HttpResponse | Stream:
    """Sign no more. That there was no secret is as well."""
    await call.service.engine.deliveries.drop_secret(_tenant(call))
    return HttpResponse(None, 204)


async def begin_delivery(call: Call[DeliveryRequest, None]) -> HttpResponse | Stream:
    """Whether a worker's delivery may go out now, and its signature."""
    asked = call.body
    probe_for, body = wire.probe_span(asked), wire.body_of(asked)
    job = await _held_job(call, asked)
    clearance = await call.service.engine.deliveries.before_delivery(
        job, asked.destination, probe_for=probe_for, at=asked.at, body=body
    )
    return HttpResponse(wire.clearance_out(clearance))


async def end_delivery(call: Call[DeliveryDone, None]) -> HttpResponse | Stream:
    """What came of it, for the breaker."""
    asked = call.body
    job = await _held_job(call, asked)
    await call.service.engine.deliveries.after_delivery(job, asked.destination, probe=asked.probe, error=asked.error)
    return HttpResponse(None, 204)


async def _held_job(call: Call[Any, Any], asked: DeliveryRequest | DeliveryDone) -> Job:
    held = HeldJob(worker_protocol_codec.job_id(asked.id), asked.fence, worker_protocol_codec.worker_id(asked.worker))
    return await call.service.engine.remote_workers.job(held, by=tenant_of(call))


def _tenant(call: Call[None, RotateQuery] | Call[None, None]) -> str:
    name = call.path["name"]
    if not is_tenant(name):
        raise NotFound(f"there is no tenant {name[:40]!r}")
    return name


ROUTES = (
    Route(
        "GET", "/v1/breakers", Scope.READ, list_breakers, "Destinations of webhooks that gave trouble lately",
        {200: BreakerPage}, query=BreakerQuery, tag="webhooks",
    ),
    Route(
        "POST", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, rotate_webhook_secret,
        "Make a secret that webhooks are signed with", {201: WebhookSecretMade}, query=RotateQuery, tag="webhooks",
    ),
    Route(
        "GET", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, show_webhook_secret,
        "Since when webhooks are signed", {200: WebhookSecretOut}, tag="webhooks",
    ),
    Route(
        "DELETE", "/v1/tenants/{name}/webhook-secret", Scope.ADMIN, drop_webhook_secret, "Sign webhooks no more",
        {204: None}, tag="webhooks",
    ),
    Route(
        "POST", "/v1/leases/deliveries", Scope.WORKER, begin_delivery,
        "Ask whether a webhook of a held job may go out, and for its signature", {200: DeliveryOut}, DeliveryRequest,
        body_limit=MAX_BATCH_BODY_BYTES, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/deliveries/done", Scope.WORKER, end_delivery, "Tell what came of it", {204: None},
        DeliveryDone, tag="workers", headers=TENANT, refusals=(409,),
    ),
)  # fmt: skip
