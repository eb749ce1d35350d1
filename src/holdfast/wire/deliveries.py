"""The shapes of breakers, secrets of webhooks, and the demo, and how they relate to the model."""

import binascii
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.errors import Invalid
from holdfast.model.breaker import Breaker, DeliveryPermit, Permit, SigningKeys
from holdfast.model.time import Duration, in_seconds, rfc3339, seconds
from holdfast.wire.codec import span
from holdfast.wire.types import Name, Query, RequestBody, Seconds
from holdfast.wire.worker_protocol import Fence, JobText, WorkerText

MAX_PROBE = seconds(3_700)
OVERLAPS = (Duration(0), seconds(30 * 86_400))

Destination = Annotated[str, Meta(max_length=300, pattern=r"^https?://[!-~]{1,290}$")]
BreakerStateName = Literal["closed", "open", "half_open"]


class BreakerOut(Struct, frozen=True):
    """A destination of webhooks that gave trouble lately. All others are closed."""

    tenant: str
    destination: str
    """Scheme, host and port."""
    state: BreakerStateName
    failures: int
    """In a row."""
    until: str | None
    """Open: when it is tried again. Half-open: when the probe that is under way is given up."""
    error: str
    """What went wrong last."""
    changed_at: str


class BreakerPage(Struct, frozen=True):
    """A page of breakers, by tenant and destination."""

    items: list[BreakerOut]
    next_cursor: str | None


class BreakerQuery(Query):
    """Whose breakers, and where to go on."""

    tenant: Name | None = None
    cursor: Annotated[str, Meta(max_length=1_000)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class RotateQuery(Query):
    """How long the secret before this one still signs beside it."""

    overlap: Seconds = 86_400


class WebhookSecretOut(Struct, frozen=True):
    """What is known of a tenant's secret for webhooks; not the secret."""

    tenant: str
    created_at: str
    previous_until: str | None
    """Until when the secret before it signs as well."""


class WebhookSecretMade(WebhookSecretOut, frozen=True):
    """A secret that was made: the only time that it is shown."""

    secret: str
    """For the receivers of webhooks. Keep it: nobody can tell it a second time."""


class DeliveryRequest(RequestBody):
    """A delivery that a worker is about to make for a job it holds."""

    worker: WorkerText
    id: JobText
    fence: Fence
    destination: Destination
    probe_for: Seconds
    """How long it can take at the most."""
    at: Annotated[int, Meta(ge=0, le=10**11)]
    """When it goes out, in seconds since 1970: what is signed."""
    body: Annotated[str, Meta(max_length=1_000_000)] = ""
    """What is sent, in base64."""


class DeliveryOut(Struct, frozen=True):
    """Whether a delivery may go out."""

    wait: float | None
    """It may not: hold the job for so many seconds."""
    probe: bool
    signature: str
    """For the header `webhook-signature`; empty when the tenant has no secret."""


class DeliveryDone(RequestBody):
    """What came of a delivery."""

    worker: WorkerText
    id: JobText
    fence: Fence
    destination: Destination
    probe: bool = False
    error: Annotated[str, Meta(max_length=1_000)] | None = None
    """What was wrong with the destination; null when it answered."""


class SeedQuery(Query):
    """How many jobs to submit."""

    jobs: Annotated[int, Meta(ge=1, le=10_000)] = 200


class Seeded(Struct, frozen=True):
    """What the demo submitted."""

    jobs: int
    tenants: list[str]


class Cleared(Struct, frozen=True):
    """How many jobs of the demo were removed."""

    jobs: int


def breaker_out(breaker: Breaker) -> BreakerOut:
    """A breaker as it is shown."""
    return BreakerOut(
        tenant=breaker.tenant,
        destination=breaker.destination,
        state=breaker.state.value,
        failures=breaker.failures,
        until=None if breaker.until is None else rfc3339(breaker.until),
        error=breaker.error,
        changed_at=rfc3339(breaker.changed_at),
    )


def breaker_cursor(last: Breaker) -> str:
    """Where the next page begins."""
    return urlsafe_b64encode(f"{last.tenant} {last.destination}".encode()).decode().rstrip("=")


def read_breaker_cursor(text: str | None) -> tuple[str, str]:
    """A cursor as a page gave it."""
    if text is None:
        return "", ""
    try:
        tenant, _, destination = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii").partition(" ")
    except (ValueError, binascii.Error):
        tenant = destination = ""
    if not tenant.isprintable() or not destination or not destination.isprintable():
        raise Invalid("cursor: give the `next_cursor` of the page before, as it is", pointer="/cursor")
    return tenant, destination


def overlap_of(asked: RotateQuery) -> Duration:
    """How long two secrets sign together."""
    found = span(asked.overlap, "/overlap") or Duration(0)
    if not OVERLAPS[0] <= found <= OVERLAPS[1]:
        raise Invalid(f"overlap: give 0 to {in_seconds(OVERLAPS[1]):,.0f} seconds, or '30d'", pointer="/overlap")
    return found


def probe_span(asked: DeliveryRequest) -> Duration:
    """How long a probe may be out."""
    return Duration(min(span(asked.probe_for, "/probe_for") or Duration(0), MAX_PROBE))


def body_of(asked: DeliveryRequest) -> bytes:
    """What is to be signed."""
    try:
        return b64decode(asked.body, validate=True)
    except (ValueError, binascii.Error):
        raise Invalid("body: give it in base64", pointer="/body") from None


def clearance_out(clearance: DeliveryPermit) -> DeliveryOut:
    """Whether a delivery may go out, as it is told."""
    wait = clearance.permit.wait
    return DeliveryOut(None if wait is None else in_seconds(wait), clearance.permit.probe, clearance.signature)


def permit_of_response(told: DeliveryOut) -> DeliveryPermit:
    """The same, as it was told."""
    wait = None if told.wait is None else seconds(told.wait)
    return DeliveryPermit(Permit(probe=told.probe, wait=wait), told.signature)


def secret_out(tenant: str, keys: SigningKeys) -> WebhookSecretOut:
    """What is known of a secret, as it is shown."""
    return WebhookSecretOut(tenant, rfc3339(keys.created_at), _until(keys))


def secret_made(tenant: str, keys: SigningKeys, secret: str) -> WebhookSecretMade:
    """A secret as it is shown once."""
    return WebhookSecretMade(tenant, rfc3339(keys.created_at), _until(keys), secret)


def _until(keys: SigningKeys) -> str | None:
    return None if keys.previous_until is None else rfc3339(keys.previous_until)
