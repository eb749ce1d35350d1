"""Streamed responses."""

import asyncio
import logging
from typing import Protocol

from holdfast.api.headers import Headers
from holdfast.api.http import HttpRequest, Stream
from holdfast.api.request_log import log_fault

CUT_TIMEOUT_S = 2.0
"""Seconds that a client has to read the end of a stream that is being cut."""


class StreamWriter(Protocol):
    """Destination of a streamed response; each call waits while the client does not read."""

    async def begin(self, headers: Headers) -> None:
        """Send the head."""

    async def chunk(self, part: bytes) -> None:
        """Send a part of the body."""

    async def end(self) -> None:
        """End the body."""


async def send_stream(answer: Stream, headers: Headers, request: HttpRequest, outlet: StreamWriter) -> None:
    """Send chunks until they end, the client disconnects, or the stream is cut."""

    async def send_all() -> None:
        await outlet.begin(headers)
        async for part in answer.chunks:
            await outlet.chunk(part)
        await outlet.end()

    pumping = asyncio.ensure_future(send_all())
    leaving = asyncio.ensure_future(request.disconnected())
    ends = (pumping, leaving) if answer.cut is None else (pumping, leaving, answer.cut)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not (pumping.done() or leaving.done()):
            await asyncio.wait((pumping, leaving), timeout=CUT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        results = await asyncio.gather(pumping, leaving, return_exceptions=True)
        await answer.chunks.aclose()
        for result in results:
            if isinstance(result, Exception):
                log_fault(logging.WARNING, ": stream failed:", request, result)
