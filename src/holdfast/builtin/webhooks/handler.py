"""The `webhook` job type: one signed HTTP request, delivered at least once."""

import asyncio
import importlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.builtin.webhooks.address_guard import Guard, GuardRules
from holdfast.builtin.webhooks.messages import Answer, Blocked, NoAnswer, Request
from holdfast.builtin.webhooks.ports import Shared
from holdfast.errors import Invalid, Unavailable
from holdfast.model.time import Duration, in_seconds, seconds
from holdfast.policy import webhooks
from holdfast.policy.webhooks import DeliveryVerdict
from holdfast.worker.context.context import Context
from holdfast.worker.handlers.exceptions import Discard, Hold, Retry, duration

if TYPE_CHECKING:
    from holdfast.builtin.webhooks.client import Client

AGENT = "holdfast-webhooks/1"
STEP = "deliver"
"""The step that the idempotency key names: `job_id:deliver`."""

SHORTEST, LONGEST = seconds(0.1), seconds(3_600)
MOST_STATUSES = 50

_DATABASE_AWAY = 5.0
_SPARE = seconds(10)
"""A probe is given up so much later than it can take."""

Method = Literal["POST", "PUT", "PATCH", "GET", "DELETE"]


class DeliveryFailed(Retry):
    """It was not delivered; another attempt may help."""


class DeliveryRefused(Discard):
    """It cannot be delivered, however often it is tried."""


class Delivery(Struct, frozen=True):
    """The record of a delivery: what the job returns."""

    status: int
    destination: str
    attempt: int
    sent_at: str
    seconds: float
    signed: bool
    answer: str
    """Its beginning, as text."""


class WebhookRules(NamedTuple):
    """What an installation chooses."""

    guard: GuardRules = GuardRules()
    timeout: Duration = seconds(30)


class Webhook:
    """Delivers webhooks for one worker."""

    def __init__(self, rules: WebhookRules, shared: Shared, *, client: "Client | None" = None) -> None:
        self._rules = rules
        self._shared = shared
        self._guard = Guard(rules.guard)
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
        ctx: Context,
    ) -> Delivery:
        """Send one request. It is delivered when the answer's status is expected: any 2xx unless `expect` says others.

        A text is sent as it is, anything else as JSON. Each attempt carries the same id and idempotency key.
        """
        target = self._guard.target(url)
        sent = webhooks.check_headers(headers or {})
        expected = _statuses(expect, "expect")
        again = _statuses(retry_on, "retry_on")
        data = _data(method, body)
        within = _within(
            self._rules.timeout if timeout is None else duration(timeout, "payload/timeout"), ctx.time_left()
        )

        destination, stamp = target.destination, int(time.time())
        try:
            probe_for = Duration(seconds(within) + _SPARE)
            permit, signature = await self._shared.before_delivery(
                ctx.job, destination, probe_for=probe_for, at=stamp, body=data or b""
            )
        except Unavailable:
            raise Hold(_DATABASE_AWAY) from None
        if permit.wait is not None:
            raise Hold(in_seconds(permit.wait))

        async def tell(error: str | None) -> None:
            await self._shared.after_delivery(ctx.job, destination, probe=permit.probe, error=error)

        kind = None if data is None else "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        request = Request(method, target, _headers(sent, kind, ctx, at=stamp, signature=signature), data)
        client = await self._connected()
        at, began = datetime.now(UTC), time.monotonic()
        try:
            answer = await client.send(request, timeout=within)
        except Blocked as error:
            raise DeliveryRefused(f"{destination} may not be reached: {error}") from None
        except NoAnswer as error:
            ctx.log(f"{method} {destination}: {error}", seconds=round(time.monotonic() - began, 3))
            await tell(str(error))
            raise DeliveryFailed(f"{destination}: {error}") from error
        took = time.monotonic() - began
        now = datetime.now(UTC)
        verdict = webhooks.classify_response(answer.status, answer.retry_after, expected=expected, again=again, now=now)
        await tell(f"HTTP {answer.status}" if verdict.destination_failed else None)
        if not verdict.delivered:
            raise _not_delivered(f"{method} {destination}", answer, verdict, took, ctx)
        return Delivery(
            status=answer.status,
            destination=destination,
            attempt=ctx.attempt,
            sent_at=f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
            seconds=round(took, 3),
            signed=bool(signature),
            answer=webhooks.excerpt(answer.beginning),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _connected(self) -> "Client":
        if self._client is None:
            # In a thread: it takes long to import, and the event loop is that of other jobs too.
            module = await asyncio.to_thread(importlib.import_module, "holdfast.builtin.webhooks.client")
            if self._client is None:  # another may have been quicker
                self._client = module.Client(self._guard)
        return self._client


def _not_delivered(what: str, answer: Answer, verdict: DeliveryVerdict, took: float, ctx: Context) -> Exception:
    seen: dict[str, Any] = {"seconds": round(took, 3), "answer": webhooks.excerpt(answer.beginning)}
    if answer.retry_after is not None:
        seen["retry_after"] = answer.retry_after[:100]
    ctx.log(f"{what}: HTTP {answer.status}", **seen)
    why = "; redirects are not followed" if 300 <= answer.status <= 399 else ""
    told = f"{what}: HTTP {answer.status}{why}"
    if not verdict.retryable:
        return DeliveryRefused(told)
    return DeliveryFailed(told, in_=None if verdict.wait is None else in_seconds(verdict.wait))


def _headers(given: Mapping[str, str], kind: str | None, ctx: Context, *, at: int, signature: str) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": AGENT}
    if kind is not None:
        headers["Content-Type"] = kind
    for name, value in given.items():  # the caller's own take the place of ours
        headers.pop(next((each for each in headers if each.lower() == name.lower()), ""), None)
        headers[name] = value
    headers |= {
        "Idempotency-Key": ctx.idempotency_key(STEP),
        "webhook-id": str(ctx.job.id),
        "webhook-timestamp": str(at),
    }
    if signature:
        headers["webhook-signature"] = signature
    return headers


def _data(method: str, body: Any) -> bytes | None:
    if body is None:
        return None if method in ("GET", "DELETE") else b""
    if method == "GET":
        raise Invalid("body: a GET has none: leave it out, or use POST", pointer="/payload/body")
    return body.encode() if isinstance(body, str) else msgspec.json.encode(body)


def _statuses(given: int | list[int] | None, field: str) -> list[int]:
    found = [] if given is None else given if isinstance(given, list) else [given]
    if len(found) > MOST_STATUSES or not all(100 <= each <= 599 for each in found):
        raise Invalid(f"{field}: give statuses from 100 to 599, such as [200, 202]", pointer=f"/payload/{field}")
    return found


def _within(span: Duration, left: float | None) -> float:
    """Seconds that the request may take: done before the attempt times out, so that it is known what came of it."""
    if not SHORTEST <= span <= LONGEST:
        raise Invalid("timeout: give 0.1 s to 1 h", pointer="/payload/timeout")
    whole = in_seconds(span)
    return whole if left is None else max(0.05, min(whole, left - min(0.5, left / 10)))
