"""Sends requests to a node and repeats those that are safe to repeat."""

import asyncio
from collections.abc import AsyncGenerator

from holdfast.sdk import waiting
from holdfast.sdk.models import Event
from holdfast.sdk.responses import Response
from holdfast.sdk.retry import RETRY_TIMEOUT_S, NodeAddress, NodeFailure, RetryTimer, headers_of
from holdfast.sdk.sse import EventParser
from holdfast.sdk.transport import RESPONSE_TIMEOUT_S, Transport, TransportError
from holdfast.sdk.worker_requests import Request


class Sender:
    """Sends requests to one node, or to several behind one address. Belongs to one event loop.

    Args:
        url: URL of the node; may contain the API key as its password.
        key: API key.
        transport: Carrier to use instead of HTTP connections.
    """

    def __init__(self, url: str, key: str | None = None, *, transport: Transport | None = None) -> None:
        self._address = NodeAddress(url, key)
        self.url = self._address.url
        self._transport = transport

    async def send(self, request: Request, *, retry_timeout: float = RETRY_TIMEOUT_S) -> Response:
        """Return the response, whatever its status, unless the node or its database is unavailable.

        Raises:
            Unavailable: The request had no effect.
            OutcomeUnknown: The request may have had an effect.
            RateLimited: The node asked to wait for longer than `retry_timeout`.

        A request that is safe to repeat raises only after it was retried for `retry_timeout` seconds.
        """
        timer = RetryTimer(retry_timeout)
        while True:
            outcome = await self._try(request)
            if isinstance(outcome, Response):
                return outcome
            await asyncio.sleep(timer.next_delay(request, outcome))

    async def stream(self, request: Request, parser: EventParser, *, retry_timeout: float) -> AsyncGenerator[Event]:
        """Yield events as they arrive; reconnect after a failure and resume after the last event."""
        timer = RetryTimer(retry_timeout)
        while True:
            headers = {**self._address.headers, "accept": "text/event-stream"}
            if parser.last_id:
                headers["last-event-id"] = parser.last_id
            try:
                async with self._carrier().stream(request.method, request.path, headers=headers) as response:
                    if response.status == 200:
                        timer = RetryTimer(retry_timeout)
                        async for chunk in response.chunks:
                            for event in parser.feed(chunk):
                                yield event
                                if waiting.is_last(event):
                                    return
                        failure = waiting.STREAM_ENDED
                    else:
                        body = b"".join([chunk async for chunk in response.chunks])
                        rejected = Response(response.status, body, response.headers)
                        failure = waiting.stream_failure(self._address, rejected)
            except TransportError as error:
                failure = self._address.connection_failure(error)
            parser.reset()
            await asyncio.sleep(timer.next_delay(request, failure))

    async def aclose(self) -> None:
        """Close all connections."""
        if self._transport is not None:
            await self._transport.aclose()

    async def _try(self, request: Request) -> Response | NodeFailure:
        try:
            response = await self._carrier().request(
                request.method,
                request.path,
                headers={**self._address.headers, **headers_of(request)},
                body=request.body,
                timeout=RESPONSE_TIMEOUT_S + request.wait,
            )
        except TransportError as error:
            return self._address.connection_failure(error)
        return self._address.response_failure(response) or response

    def _carrier(self) -> Transport:
        if self._transport is None:
            from holdfast.sdk.http_transport import HttpTransport  # noqa: PLC0415 - aiohttp is slow to import

            self._transport = HttpTransport(self.url)
        return self._transport
