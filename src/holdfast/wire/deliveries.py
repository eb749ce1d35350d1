"""Types and codec of circuit breakers, webhook secrets, deliveries and the demo."""

import binascii
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct

from holdfast.errors import Invalid
from holdfast.model.breaker import Breaker, DeliveryPermit, Permit, SigningKeys
from holdfast.model.time import Duration, in_seconds, rfc3339, seconds
from holdfast.wire.codec import invalid_cursor
from holdfast.wire.durations import OVERLAP, Overlap, Seconds, span
from holdfast.wire.types import Name, Query, RequestBody, Time, TimeT
from holdfast.wire.worker_protocol import Fence, JobText, WorkerText

MAX_PROBE = seconds(3_700)

Destination = Annotated[str, Meta(max_length=300, pattern=r"^https?://[!-~]{1,290}$")]
BreakerStateName = Literal["closed", "open", "half_open"]


class BreakerFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a circuit breaker."""

    tenant: str
    destination: str
    """Scheme, host and port."""
    state: BreakerStateName
    failures: int
    """Consecutive failures."""
    until: TimeT | None
    """If open, time of the next probe; if half-open, time at which the current probe expires."""
    error: str
    """Last error."""
    changed_at: TimeT


class BreakerOut(BreakerFields[Time], frozen=True):
    """Circuit breaker of a webhook destination that failed recently; all others are closed."""


class BreakerPage(Struct, frozen=True):
    """Page of circuit breakers, by tenant and destination."""

    items: list[BreakerOut]
    next_cursor: str | None


class BreakerQuery(Query):
    """Filter and page of a list of circuit breakers."""

    tenant: Name | None = None
    cursor: Annotated[str, Meta(max_length=1_000)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class RotateQuery(Query):
    """Time for which the previous secret stays valid."""

    overlap: Overlap = 86_400
    """Time for which the previous secret stays valid."""


class WebhookSecretFields(Struct, Generic[TimeT], frozen=True):
    """Fields of the metadata of a webhook secret."""

    tenant: str
    created_at: TimeT
    previous_until: TimeT | None
    """End of the validity of the previous secret."""


class WebhookSecretOut(WebhookSecretFields[Time], frozen=True):
    """Metadata of a tenant's webhook secret."""


class WebhookSecretMade(WebhookSecretOut, frozen=True):
    """New webhook secret. Only this response contains it."""

    secret: str
    """Secret for the receivers of webhooks. Store it: it is not shown again."""


class DeliveryRequest(RequestBody):
    """Delivery that a worker is about to make for a job it holds."""

    worker: WorkerText
    """Id of the worker that holds the job."""
    id: JobText
    """Id of the job."""
    fence: Fence
    destination: Destination
    probe_for: Seconds
    """Maximum duration of the delivery."""
    at: Annotated[int, Meta(ge=0, le=10**11)]
    """Timestamp to sign, in seconds since 1970."""
    body: Annotated[str, Meta(max_length=1_000_000)] = ""
    """Body to sign, in base64."""


class DeliveryOut(Struct, frozen=True):
    """Permission for a delivery."""

    wait: float | None
    """Seconds to hold the job while the breaker is open; null if it may be sent."""
    probe: bool
    """True if this delivery probes a destination whose breaker is open."""
    signature: str
    """Value of the header `webhook-signature`; empty if the tenant has no secret."""


class DeliveryDone(RequestBody):
    """Outcome of a delivery."""

    worker: WorkerText
    """Id of the worker that holds the job."""
    id: JobText
    """Id of the job."""
    fence: Fence
    destination: Destination
    probe: bool = False
    """`probe` of the permission."""
    error: Annotated[str, Meta(max_length=1_000)] | None = None
    """Error of the destination; null if it responded."""


class SeedQuery(Query):
    """Number of jobs to submit."""

    jobs: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """Number of jobs to submit."""


class Seeded(Struct, frozen=True):
    """Result of seeding the demo."""

    jobs: int
    """Number of jobs that were submitted."""
    tenants: list[str]
    """Tenants of these jobs."""


class Cleared(Struct, frozen=True):
    """Number of demo jobs that were deleted."""

    jobs: int
    """Number of deleted jobs."""


def breaker_out(breaker: Breaker) -> BreakerOut:
    """Render a circuit breaker."""
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
    """Return the cursor after this breaker."""
    return urlsafe_b64encode(f"{last.tenant} {last.destination}".encode()).decode().rstrip("=")


def read_breaker_cursor(text: str | None) -> tuple[str, str]:
    """Parse the cursor of a page of breakers."""
    if text is None:
        return "", ""
    try:
        tenant, _, destination = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii").partition(" ")
    except (ValueError, binascii.Error):
        tenant = destination = ""
    if not tenant.isprintable() or not destination or not destination.isprintable():
        raise invalid_cursor()
    return tenant, destination


def overlap_of(query: RotateQuery) -> Duration:
    """Return the time for which the previous secret stays valid. Raises `Invalid`."""
    return span(query.overlap, "/overlap", OVERLAP) or Duration(0)


def probe_span(request: DeliveryRequest) -> Duration:
    """Return the time after which a probe counts as lost."""
    return Duration(min(span(request.probe_for, "/probe_for") or Duration(0), MAX_PROBE))


def body_of(request: DeliveryRequest) -> bytes:
    """Return the body to sign. Raises `Invalid`."""
    try:
        return b64decode(request.body, validate=True)
    except (ValueError, binascii.Error):
        raise Invalid("body: give it in base64", pointer="/body") from None


def permit_out(permit: DeliveryPermit) -> DeliveryOut:
    """Render the permission for a delivery."""
    wait = permit.permit.wait
    return DeliveryOut(None if wait is None else in_seconds(wait), permit.permit.probe, permit.signature)


def permit_of_response(response: DeliveryOut) -> DeliveryPermit:
    """Parse the permission for a delivery, on the side of the worker."""
    wait = None if response.wait is None else seconds(response.wait)
    return DeliveryPermit(Permit(probe=response.probe, wait=wait), response.signature)


def secret_out(tenant: str, keys: SigningKeys) -> WebhookSecretOut:
    """Render the metadata of a secret."""
    return WebhookSecretOut(tenant, rfc3339(keys.created_at), _until(keys))


def secret_made(tenant: str, keys: SigningKeys, secret: str) -> WebhookSecretMade:
    """Render a new secret."""
    return WebhookSecretMade(tenant, rfc3339(keys.created_at), _until(keys), secret)


def _until(keys: SigningKeys) -> str | None:
    return None if keys.previous_until is None else rfc3339(keys.previous_until)
