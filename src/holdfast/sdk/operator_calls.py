"""Operations of the HTTP API for operators, such as limits and pauses. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.sdk.calls import MAX_PAGE_SIZE, Call, PageCall, get_request, page_call, path_segment
from holdfast.sdk.models import (
    Breaker,
    Limit,
    ListPage,
    NewWebhookSecret,
    Pause,
    Token,
    WebhookSecret,
)
from holdfast.sdk.options import Rate, Span, encode_body, rate_fields
from holdfast.sdk.responses import Response, check, read
from holdfast.sdk.worker_requests import Request
from holdfast.wire.analytics import FairnessOut, Series


class LimitTarget(NamedTuple):
    """Target of a limit: a queue, a tenant, or a concurrency key of a tenant."""

    queue: str | None = None
    tenant: str | None = None
    concurrency_key: str | None = None


def limits(kind: str | None, tenant: str | None) -> Call[list[Limit]]:
    """List the limits that were set, with their current use."""
    return Call(get_request("/v1/limits", {"kind": kind, "tenant": tenant}), lambda r: read(r, ListPage[Limit]).items)


def set_limit(target: LimitTarget, max_running: int | None, rate: Rate | None) -> Call[Limit]:
    """Set a limit; None is unlimited."""
    fields = {**target._asdict(), "max_running": max_running, "rate": rate_fields(rate)}
    return Call(Request("PUT", "/v1/limits", encode_body(fields), repeatable=True), lambda r: read(r, Limit))


def pauses() -> Call[list[Pause]]:
    """List paused types and tenants."""
    return Call(get_request("/v1/pauses", {}), lambda r: read(r, ListPage[Pause]).items)


def pause(fields: Mapping[str, Any]) -> Call[Pause]:
    """Pause a type or a tenant."""
    return Call(Request("PUT", "/v1/pauses", encode_body(fields), repeatable=True), lambda r: read(r, Pause))


def end_pause(type: str | None, tenant: str | None) -> Call[None]:  # noqa: A002 - the API's name
    """Resume a type or a tenant."""
    return Call(get_request("/v1/pauses", {"type": type, "tenant": tenant})._replace(method="DELETE"), check)


def breakers(tenant: str | None, limit: int = MAX_PAGE_SIZE) -> PageCall[Breaker]:
    """List circuit breakers of webhook destinations that failed recently."""
    fields = {"tenant": tenant, "limit": limit}
    return PageCall(lambda cursor: page_call("/v1/breakers", {**fields, "cursor": cursor}, ListPage[Breaker]))


def rotate_webhook_secret(tenant: str, overlap: Span | None) -> Call[NewWebhookSecret]:
    """Create a webhook secret; the previous one stays valid during the overlap."""
    request = get_request(_secret_path(tenant), {"overlap": overlap})._replace(method="POST", repeatable=False)
    return Call(request, lambda r: read(r, NewWebhookSecret))


def webhook_secret(tenant: str) -> Call[WebhookSecret]:
    """Get the metadata of a webhook secret."""
    return Call(get_request(_secret_path(tenant), {}), lambda r: read(r, WebhookSecret))


def delete_webhook_secret(tenant: str) -> Call[None]:
    """Delete a webhook secret."""
    return Call(Request("DELETE", _secret_path(tenant), repeatable=True), check)


def create_token(scopes: Sequence[str] | None, expires_in: Span | None) -> Call[Token]:
    """Create a short-lived token."""
    fields = {"scopes": None if scopes is None else list(scopes), "expires_in": expires_in}
    body = encode_body({name: value for name, value in fields.items() if value is not None})
    return Call(Request("POST", "/v1/tokens", body, repeatable=True), lambda r: read(r, Token))


def throughput(fields: Mapping[str, Any]) -> Call[Series]:
    """Return the totals, rates and durations of a window, step by step."""
    return Call(get_request("/v1/analytics/throughput", fields), lambda r: read(r, Series))


def fairness(window: str | None) -> Call[FairnessOut]:
    """Return the service that tenants received."""

    def decode(response: Response) -> FairnessOut:
        return read(response, FairnessOut)

    return Call(get_request("/v1/analytics/fairness", {"window": window}), decode)


def _secret_path(tenant: str) -> str:
    return f"/v1/tenants/{path_segment(tenant)}/webhook-secret"
