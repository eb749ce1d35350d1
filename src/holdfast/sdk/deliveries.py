"""What a worker asks its node about webhooks, and what it tells it: requests and answers, no I/O."""

from base64 import b64encode

import msgspec

from holdfast.model.breaker import DeliveryPermit
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.job import Job
from holdfast.model.time import Duration, in_seconds
from holdfast.sdk.responses import Response, read
from holdfast.sdk.worker_requests import Request
from holdfast.wire.deliveries import DeliveryDone, DeliveryOut, DeliveryRequest, permit_of_response

_LONGEST_ERROR = 1_000


def begin(job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes) -> Request:
    """Ask whether a webhook may go out, and for its signature."""
    asked = DeliveryRequest(
        worker=worker_name(job.worker or WorkerId(0)),
        id=str(job.id),
        fence=job.fence,
        destination=destination,
        probe_for=in_seconds(probe_for),
        at=at,
        body=b64encode(body).decode(),
    )
    return Request("POST", "/v1/leases/deliveries", msgspec.json.encode(asked), repeatable=True)


def cleared(response: Response) -> DeliveryPermit:
    """Whether it may."""
    return permit_of_response(read(response, DeliveryOut))


def end(job: Job, destination: str, *, probe: bool, error: str | None) -> Request:
    """Tell what came of it."""
    asked = DeliveryDone(
        worker=worker_name(job.worker or WorkerId(0)),
        id=str(job.id),
        fence=job.fence,
        destination=destination,
        probe=probe,
        error=None if error is None else error[:_LONGEST_ERROR],
    )
    return Request("POST", "/v1/leases/deliveries/done", msgspec.json.encode(asked), repeatable=True)
