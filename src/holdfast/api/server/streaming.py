"""Answers that go on: chunks are sent as they come, until they end, or the client does, or they are cut."""

import asyncio
import logging
from typing import Protocol

from holdfast.api.headers import Headers
from holdfast.api.http import Incoming, Stream
from holdfast.api.request_log import log_fault

LAST_WORDS = 2.0
"""Seconds that a client has to read the end of a stream that is cut."""


class Outlet(Protocol):
    """Where an answer that goes on is sent to; each call waits while the client does not read."""

    async def begin(self, headers: Headers) -> None:
        """The head."""

    async def chunk(self, part: bytes) -> None:
        """A part of the body."""

    async def end(self) -> None:
        """There are no more."""


async def pump(answer: Stream, headers: Headers, request: Incoming, outlet: Outlet) -> None:
    """Send chunks until they end or the client is gone, whichever comes first."""

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
            await asyncio.wait((pumping, leaving), timeout=LAST_WORDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        results = await asyncio.gather(pumping, leaving, return_exceptions=True)
        await answer.chunks.aclose()
        for result in results:
            if isinstance(result, Exception):
                log_fault(logging.WARNING, ": the stream ended by", request, result)
