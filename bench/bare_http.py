"""Baseline of `bench/service.py`: a route that decodes a job and responds."""

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Job(msgspec.Struct):
    """Request body."""

    type: str
    payload: dict[str, object]
    queue: str = "default"


class Accepted(msgspec.Struct):
    """Response body."""

    id: str
    type: str
    queue: str
    payload: dict[str, object]


_READ = msgspec.json.Decoder(Job)
_WRITE = msgspec.json.Encoder()


async def submit(request: Request) -> Response:
    """Decode the job and respond."""
    job = _READ.decode(await request.body())
    response = Accepted("01a1e19f-0195-732c-a5c5-57acdc112197", job.type, job.queue, job.payload)
    return Response(_WRITE.encode(response), 201, media_type="application/json")


app = Starlette(routes=[Route("/v1/jobs", submit, methods=["POST"])])
