"""Requests of a remote worker before and after a webhook delivery. No I/O."""

from base64 import b64encode

import msgspec

from holdfast.model.breaker import DeliveryPermit
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.job import Job
from holdfast.model.time import Duration, in_seconds
from holdfast.sdk.responses import Response, read
from holdfast.sdk.worker_requests import Request
from holdfast.wire.deliveries import DeliveryDone, DeliveryOut, DeliveryRequest, permit_of_response

_MAX_ERROR_LENGTH = 1_000


def begin(job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes) -> Request:
    """Request permission and a signature for a delivery."""
    fields = DeliveryRequest(
        worker=worker_name(job.worker or WorkerId(0)),
        id=str(job.id),
        fence=job.fence,
        destination=destination,
        probe_for=in_seconds(probe_for),
        at=at,
        body=b64encode(body).decode(),
    )
    return Request("POST", "/v1/leases/deliveries", msgspec.json.encode(fields), repeatable=True)


def read_permit(response: Response) -> DeliveryPermit:
    """Return the permission."""
    return permit_of_response(read(response, DeliveryOut))


def end(job: Job, destination: str, *, probe: bool, error: str | None) -> Request:
    """Report the outcome of a delivery."""
    fields = DeliveryDone(
        worker=worker_name(job.worker or WorkerId(0)),
        id=str(job.id),
        fence=job.fence,
        destination=destination,
        probe=probe,
        error=None if error is None else error[:_MAX_ERROR_LENGTH],
    )
    return Request("POST", "/v1/leases/deliveries/done", msgspec.json.encode(fields), repeatable=True)
