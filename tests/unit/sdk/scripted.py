"""Transport that returns scripted responses and failures in turn, and records the requests."""

from collections import deque
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from holdfast.sdk.responses import Response
from holdfast.sdk.transport import StreamedResponse, TransportError

REFUSED = TransportError("refused", sent=False)
RESET = TransportError("reset", sent=True)


class Recorded(NamedTuple):
    method: str
    path: str
    headers: dict
    body: bytes | None


class ScriptedTransport:
    def __init__(self, *steps):
        self._steps = deque(steps)
        self.requests = []

    async def request(self, method, path, *, headers, body, timeout):
        return self._next(Recorded(method, path, dict(headers), body))

    @asynccontextmanager
    async def stream(self, method, path, *, headers):
        response = self._next(Recorded(method, path, dict(headers), None))

        async def chunks():
            yield response.body

        yield StreamedResponse(response.status, response.headers, chunks())

    async def aclose(self):
        pass

    def _next(self, request):
        self.requests.append(request)
        step = self._steps.popleft()
        if isinstance(step, Exception):
            raise step
        return step


def ok(value, status=200):
    return Response(status, msgspec.json.encode(value))


def problem(status, code, **headers):
    body = {"title": "t", "status": status, "code": code, "detail": "what to do"}
    return Response(status, msgspec.json.encode(body), {name.replace("_", "-"): text for name, text in headers.items()})
