"""A route that does nothing but read a job and answer: what `bench/service.py` holds the service against."""

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Job(msgspec.Struct):
    """What is submitted."""

    type: str
    payload: dict[str, object]
    queue: str = "default"


class Accepted(msgspec.Struct):
    """What is answered."""

    id: str
    type: str
    queue: str
    payload: dict[str, object]


_READ = msgspec.json.Decoder(Job)
_WRITE = msgspec.json.Encoder()


async def submit(request: Request) -> Response:
    """Read it, answer it."""
    job = _READ.decode(await request.body())
    made = Accepted("01a1e19f-0195-732c-a5c5-57acdc112197", job.type, job.queue, job.payload)
    return Response(_WRITE.encode(made), 201, media_type="application/json")


app = Starlette(routes=[Route("/v1/jobs", submit, methods=["POST"])])
