"""Sending of streamed responses, on our server and under ASGI."""

import asyncio
import logging
from typing import Protocol

from holdfast import tasks
from holdfast.api.headers import Headers
from holdfast.api.http import HttpRequest, Stream
from holdfast.api.request_log import log_error

CUT_TIMEOUT_S = 2.0
"""Time that a client has to read the end of a stream that is being cut."""


class StreamWriter(Protocol):
    """Writer of a streamed response; each call waits while the client does not read."""

    __slots__ = ()

    async def begin(self, headers: Headers) -> None:
        """Send the head."""

    async def chunk(self, part: bytes) -> None:
        """Send a part of the body."""

    async def end(self) -> None:
        """End the body."""


async def send_stream(stream: Stream, headers: Headers, request: HttpRequest, writer: StreamWriter) -> None:
    """Send chunks until they end, the client disconnects, or the stream is cut."""

    async def send_all() -> None:
        await writer.begin(headers)
        async for part in stream.chunks:
            await writer.chunk(part)
        await writer.end()

    sending = tasks.start(send_all(), name="holdfast stream", awaited=True)
    disconnect = tasks.start(request.wait_disconnected(), name="holdfast stream disconnect", awaited=True)
    ends = (sending, disconnect) if stream.cut is None else (sending, disconnect, stream.cut)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not (sending.done() or disconnect.done()):
            await asyncio.wait((sending, disconnect), timeout=CUT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, disconnect):
            task.cancel()
        results = await asyncio.gather(sending, disconnect, return_exceptions=True)
        await stream.chunks.aclose()
        for result in results:
            if isinstance(result, Exception):
                log_error(logging.WARNING, ": stream failed:", request, result)
