"""Request on a connection and its response, sent whole or in chunks."""

import asyncio
from typing import Protocol

from holdfast.api.app import Api, EncodedResponse, unavailable_response
from holdfast.api.headers import STATUS_LINES, Headers, date_line, encode_head, encode_headers
from holdfast.api.http import BodySource, ClientGone, HttpRequest, Stream
from holdfast.api.server.streaming import StreamWriter, send_stream

_MAX_BUFFERED_BYTES = 65_536
"""Body bytes buffered for the handler above which reading from the client pauses."""

_MAX_JOINED_BYTES = 65_536
"""Body size up to which head and body are joined into one write."""

_NO_BODY = frozenset({204, 304})


class ConnectionPort(Protocol):
    """The part of a connection that an exchange needs."""

    transport: asyncio.Transport

    def response_sent(self, *, keep_alive: bool) -> None:
        """Handle the end of the response."""

    def set_reading(self, *, enabled: bool) -> None:
        """Resume or pause reading from the client."""

    async def drain(self) -> None:
        """Wait until the write buffer has room."""


class Exchange(BodySource, StreamWriter):
    """Request body and response of one request."""

    __slots__ = (
        "_changed", "_connection", "_expects_continue", "_parts", "_size",
        "abandoned", "caller", "complete", "done", "http_1_0", "keep_alive", "started",
    )  # fmt: skip

    def __init__(self, connection: ConnectionPort, *, keep_alive: bool, http_1_0: bool, expects_continue: bool) -> None:
        self._connection = connection
        self.keep_alive = keep_alive
        """True if the connection stays open for another request."""
        self.http_1_0 = http_1_0
        """True if the client speaks HTTP/1.0, which has no chunked encoding."""
        self._expects_continue = expects_continue
        self.caller = ""
        """Name of the caller, as soon as it is known."""
        self.complete = False
        """True once the whole request has arrived."""
        self.started = False
        """True once part of the response was sent."""
        self.done = False
        """True once the whole response was sent."""
        self.abandoned = False
        """True if the client disconnected, or the connection already rejected the request."""
        self._parts: list[bytes] = []
        self._size = 0
        self._changed: asyncio.Event | None = None

    @property
    def is_cacheable(self) -> bool:
        """True if the head of this request may be cached."""
        return self.keep_alive and not self._expects_continue

    # Calls from the connection

    def feed(self, part: bytes) -> None:
        """Buffer a part of the body."""
        if self.done:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > _MAX_BUFFERED_BYTES:
            self._connection.set_reading(enabled=False)
        self._notify()

    def finish(self) -> None:
        """Mark the request as complete."""
        self.complete = True
        self._notify()

    def abandon(self) -> None:
        """Stop waiting for the body and send no response."""
        self.abandoned = True
        self._notify()

    # Request body

    async def more(self) -> bytes:
        while not self._parts:
            if self.abandoned:
                raise ClientGone
            if self.complete:
                return b""
            if self._expects_continue:
                self._expects_continue = False
                self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._wait_for_change()
        body = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._connection.set_reading(enabled=True)
        return body

    async def wait_disconnected(self) -> None:
        while not (self.abandoned or self.done):
            await self._wait_for_change()

    # Response

    async def run(self, request: HttpRequest, api: Api, *, overloaded: bool) -> None:
        """Handle the request and send its response."""
        try:
            if self.complete and request.body is None:
                request.body = b"".join(self._parts)
            if overloaded:
                self.keep_alive = False
                response: EncodedResponse | Stream | None = unavailable_response(
                    503, "crowded", "this node has too many open connections: retry in a second"
                )
            else:
                response = await api.respond(request)
                self.caller = request.caller
            if isinstance(response, EncodedResponse):
                self._write(response, request, api)
                api.record(request, response.head.status)
            elif response is not None:
                api.record(request, 200)
                await send_stream(response, api.headers(response, request), request, self)
        finally:
            if not self.done and not self.abandoned:
                self._connection.transport.abort()

    def _write(self, response: EncodedResponse, request: HttpRequest, api: Api) -> None:
        if self.abandoned:
            return
        head, body = response
        if not self.complete:
            self.keep_alive = False  # the rest of the request is not read
        cors = api.cors.headers(request.method, request.headers.get(b"origin"))
        head_bytes = b"%bx-request-id: %b\r\n%b%b%b" % (
            encode_head(head.status, head.media_type, head.headers),
            request.id,
            encode_headers(cors) if cors else b"",
            b"" if self.keep_alive else b"connection: close\r\n",
            b"\r\n" if head.status in _NO_BODY else b"content-length: %d\r\n\r\n" % len(body),
        )
        self.started = True
        if request.method == "HEAD":
            body = b""
        if len(body) <= _MAX_JOINED_BYTES:
            self._connection.transport.write(head_bytes + body)
        else:
            self._connection.transport.writelines((head_bytes, body))
        self._finish()

    async def begin(self, headers: Headers) -> None:
        self.keep_alive = self.keep_alive and self.complete and not self.http_1_0
        coding = b"" if self.http_1_0 else b"transfer-encoding: chunked\r\n"
        ending = b"" if self.keep_alive else b"connection: close\r\n"
        self.started = True
        await self._send(b"".join([STATUS_LINES[200], date_line(), encode_headers(headers), coding, ending, b"\r\n"]))

    async def chunk(self, part: bytes) -> None:
        if part:
            await self._send(part if self.http_1_0 else b"%x\r\n%b\r\n" % (len(part), part))

    async def end(self) -> None:
        if not self.http_1_0:
            await self._send(b"0\r\n\r\n")
        if not self.abandoned:
            self._finish()

    async def _send(self, data: bytes) -> None:
        await self._connection.drain()
        if not self.abandoned:
            self._connection.transport.write(data)

    def _finish(self) -> None:
        self.done = True
        self._notify()
        self._connection.response_sent(keep_alive=self.keep_alive)

    # Waiting

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()

    async def _wait_for_change(self) -> None:
        """Wait for the next change."""
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()
