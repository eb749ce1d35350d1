"""The `webhook` job type: one signed HTTP request, delivered at least once."""

import asyncio
import importlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.builtin.webhooks.address_guard import AddressGuard, GuardRules
from holdfast.builtin.webhooks.messages import DestinationBlocked, NoResponse, WebhookRequest, WebhookResponse
from holdfast.builtin.webhooks.ports import DeliveryState
from holdfast.errors import Invalid, Unavailable
from holdfast.model.time import Duration, in_seconds, seconds
from holdfast.policy import webhooks
from holdfast.policy.webhooks import DeliveryVerdict
from holdfast.worker.context.context import Context
from holdfast.worker.handlers.exceptions import Discard, Hold, Retry, duration

if TYPE_CHECKING:
    from holdfast.builtin.webhooks.client import WebhookClient

AGENT = "holdfast-webhooks/1"
STEP = "deliver"
"""Step in the idempotency key `job_id:deliver`."""

MIN_TIMEOUT, MAX_TIMEOUT = seconds(0.1), seconds(3_600)
MAX_STATUSES = 50

_UNAVAILABLE_HOLD_S = 5.0
"""A job is held this long if the database is unavailable."""

_PROBE_MARGIN = seconds(10)
"""A probe of a circuit breaker expires this long after the timeout of its request."""

Method = Literal["POST", "PUT", "PATCH", "GET", "DELETE"]


class DeliveryFailed(Retry):
    """The webhook was not delivered; a later attempt may succeed."""


class DeliveryRefused(Discard):
    """The webhook cannot be delivered; retrying does not help."""


class Delivery(Struct, frozen=True):
    """Result of a delivery, which the job returns."""

    status: int
    destination: str
    attempt: int
    sent_at: str
    seconds: float
    signed: bool
    answer: str
    """Start of the response body, as text."""
    response: Any | UnsetType = UNSET
    """Response body as JSON, if the job asked for it with `keep_response`."""
    not_kept: str | UnsetType = UNSET
    """Why the response that the job asked for could not be kept."""


class WebhookRules(NamedTuple):
    """Settings of webhooks."""

    guard: GuardRules = GuardRules()
    timeout: Duration = seconds(30)


class Webhook:
    """Handler of one worker."""

    def __init__(self, rules: WebhookRules, state: DeliveryState, *, client: "WebhookClient | None" = None) -> None:
        self._rules = rules
        self._state = state
        self._guard = AddressGuard(rules.guard)
        self._client = client

    async def webhook(
        self,
        url: str,
        *,
        method: Method = "POST",
        headers: dict[str, str] | None = None,
        body: Any = None,
        expect: int | list[int] | None = None,
        retry_on: list[int] | None = None,
        timeout: float | str | None = None,
        keep_response: bool = False,
        ctx: Context,
    ) -> Delivery:
        """Send one signed HTTP request.

        The webhook is delivered if the response has an expected status, by default any 2xx. A string body is sent as
        text, any other body as JSON. All attempts have the same id and idempotency key. With `keep_response`, the
        result has the JSON of the response, up to 64 KiB.
        """
        target = self._guard.parse(url)
        own_headers = webhooks.check_headers(headers or {})
        expected = _statuses(expect, "expect")
        retryable = _statuses(retry_on, "retry_on")
        data = _encode(method, body)
        time_limit = _time_limit(
            self._rules.timeout if timeout is None else duration(timeout, "payload/timeout"), ctx.time_left()
        )

        destination, stamp = target.destination, int(time.time())
        try:
            probe_for = Duration(seconds(time_limit) + _PROBE_MARGIN)
            permit, signature = await self._state.before_delivery(
                ctx.stored, destination, probe_for=probe_for, at=stamp, body=data or b""
            )
        except Unavailable:
            raise Hold(_UNAVAILABLE_HOLD_S) from None
        if permit.wait is not None:
            raise Hold(in_seconds(permit.wait))

        async def report(error: str | None) -> None:
            await self._state.after_delivery(ctx.stored, destination, probe=permit.probe, error=error)

        kind = None if data is None else "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        request = WebhookRequest(method, target, _headers(own_headers, kind, ctx, at=stamp, signature=signature), data)
        client = await self._open_client()
        at, began = datetime.now(UTC), time.monotonic()
        try:
            response = await client.send(request, timeout=time_limit)
        except DestinationBlocked as error:
            raise DeliveryRefused(f"{destination} is not allowed: {error}") from None
        except NoResponse as error:
            ctx.log(f"{method} {destination}: {error}", seconds=round(time.monotonic() - began, 3))
            await report(str(error))
            raise DeliveryFailed(f"{destination}: {error}") from error
        took = time.monotonic() - began
        now = datetime.now(UTC)
        verdict = webhooks.classify_response(
            response.status, response.retry_after, expected=expected, retry_on=retryable, now=now
        )
        await report(f"HTTP {response.status}" if verdict.destination_failed else None)
        if not verdict.delivered:
            raise _not_delivered(f"{method} {destination}", response, verdict, took, ctx)
        kept, not_kept = (
            webhooks.decode_response(response.body_start, complete=response.complete)
            if keep_response
            else (UNSET, None)
        )
        return Delivery(
            status=response.status,
            destination=destination,
            attempt=ctx.attempt,
            sent_at=f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
            seconds=round(took, 3),
            signed=bool(signature),
            answer=webhooks.excerpt(response.body_start),
            response=kept,
            not_kept=UNSET if not_kept is None else not_kept,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _open_client(self) -> "WebhookClient":
        if self._client is None:
            # In a thread, because importing aiohttp is slow and other jobs share the event loop.
            module = await asyncio.to_thread(importlib.import_module, "holdfast.builtin.webhooks.client")
            if self._client is None:  # another job may have opened it meanwhile
                self._client = module.WebhookClient(self._guard)
        return self._client


def _not_delivered(
    what: str, response: WebhookResponse, verdict: DeliveryVerdict, took: float, ctx: Context
) -> Exception:
    fields: dict[str, Any] = {"seconds": round(took, 3), "answer": webhooks.excerpt(response.body_start)}
    if response.retry_after is not None:
        fields["retry_after"] = response.retry_after[:100]
    ctx.log(f"{what}: HTTP {response.status}", **fields)
    hint = "; redirects are not followed" if 300 <= response.status <= 399 else ""
    message = f"{what}: HTTP {response.status}{hint}"
    if not verdict.retryable:
        return DeliveryRefused(message)
    return DeliveryFailed(message, in_=None if verdict.wait is None else in_seconds(verdict.wait))


def _headers(given: Mapping[str, str], kind: str | None, ctx: Context, *, at: int, signature: str) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": AGENT}
    if kind is not None:
        headers["Content-Type"] = kind
    for name, value in given.items():  # headers of the caller replace defaults
        headers.pop(next((other for other in headers if other.lower() == name.lower()), ""), None)
        headers[name] = value
    headers |= {
        "Idempotency-Key": ctx.idempotency_key(STEP),
        "webhook-id": str(ctx.stored.id),
        "webhook-timestamp": str(at),
    }
    if signature:
        headers["webhook-signature"] = signature
    return headers


def _encode(method: str, body: Any) -> bytes | None:
    if body is None:
        return None if method in ("GET", "DELETE") else b""
    if method == "GET":
        raise Invalid("body: a GET request has no body: leave it out, or use POST", pointer="/payload/body")
    return body.encode() if isinstance(body, str) else msgspec.json.encode(body)


def _statuses(given: int | list[int] | None, field: str) -> list[int]:
    found = [] if given is None else given if isinstance(given, list) else [given]
    if len(found) > MAX_STATUSES or not all(100 <= status <= 599 for status in found):
        raise Invalid(f"{field}: give statuses from 100 to 599, such as [200, 202]", pointer=f"/payload/{field}")
    return found


def _time_limit(timeout: Duration, left: float | None) -> float:
    """Return the seconds for the request, which must end before the attempt times out."""
    if not MIN_TIMEOUT <= timeout <= MAX_TIMEOUT:
        raise Invalid("timeout: give 0.1 s to 1 h", pointer="/payload/timeout")
    limit = in_seconds(timeout)
    return limit if left is None else max(0.05, min(limit, left - min(0.5, left / 10)))
