"""One request on a connection and its response, written at once or in chunks."""

import asyncio
from typing import Protocol

from holdfast.api.app import Api, EncodedResponse, unavailable_response
from holdfast.api.headers import STATUS_LINES, Headers, date_line, lines, opening
from holdfast.api.http import ClientGone, HttpRequest, Stream
from holdfast.api.server.streaming import send_stream

_MAX_BUFFERED_BYTES = 65_536
"""Unread body bytes above which reading from the client pauses."""

_MAX_JOINED_BYTES = 65_536
"""Body size up to which head and body are joined into one write."""

_NO_BODY = frozenset({204, 304})


class ConnectionPort(Protocol):
    """The part of a connection that an exchange needs."""

    transport: asyncio.Transport

    def answered(self, *, keep: bool) -> None:
        """Report the end of the response; `keep`: another request may follow."""

    def read_on(self, *, go: bool) -> None:
        """Resume or pause reading from the client."""

    async def drain(self) -> None:
        """Wait until the write buffer has room."""


class Exchange:
    """Request body source and response writer of one request."""

    __slots__ = (
        "_changed", "_connection", "_expects", "_parts", "_size", "bare", "complete", "done", "keep", "left", "started",
    )  # fmt: skip

    def __init__(self, line: ConnectionPort, *, keep: bool, bare: bool, expects: bool) -> None:
        self._connection = line
        self.keep = keep
        """Whether the connection stays open for another request."""
        self.bare = bare
        """Whether the client is HTTP/1.0 and does not support chunked encoding."""
        self._expects = expects
        self.complete = False
        """Whether the request is complete."""
        self.started = False
        """Whether part of the response was sent."""
        self.done = False
        """Whether the whole response was sent."""
        self.left = False
        """Whether the client disconnected or was already refused."""
        self._parts: list[bytes] = []
        self._size = 0
        self._changed: asyncio.Event | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether a later request with the same head may be served from the cache."""
        return self.keep and not self._expects

    # Calls from the connection

    def feed(self, part: bytes) -> None:
        """Buffer a part of the body."""
        if self.done:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > _MAX_BUFFERED_BYTES:
            self._connection.read_on(go=False)
        self._notify()

    def finish(self) -> None:
        """Mark the request as complete."""
        self.complete = True
        self._notify()

    def leave(self) -> None:
        """Stop: the client disconnected or was already refused."""
        self.left = True
        self._notify()

    # Request body

    async def more(self) -> bytes:
        """See `Source`."""
        while not self._parts:
            if self.left:
                raise ClientGone
            if self.complete:
                return b""
            if self._expects:
                self._expects = False
                self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._change()
        body = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._connection.read_on(go=True)
        return body

    async def gone(self) -> None:
        """See `Source`."""
        while not (self.left or self.done):
            await self._change()

    # Response

    async def run(self, request: HttpRequest, api: Api, *, crowded: bool) -> None:
        """Handle the request and send its response."""
        try:
            if self.complete and request.whole is None:
                request.whole = b"".join(self._parts)
            if crowded:
                self.keep = False
                reply: EncodedResponse | Stream | None = unavailable_response(
                    503, "crowded", "this node has too many open connections: retry in a second"
                )
            else:
                reply = await api.respond(request)
            if isinstance(reply, EncodedResponse):
                self._write(reply, request, api)
                api.note(request, reply.answer.status)
            elif reply is not None:
                api.note(request, 200)
                await send_stream(reply, api.headers(reply, request), request, self)
        finally:
            if not self.done and not self.left:
                self._connection.transport.abort()

    def _write(self, reply: EncodedResponse, request: HttpRequest, api: Api) -> None:
        if self.left:
            return
        answer, body = reply
        if not self.complete:
            self.keep = False  # the rest of the request is not read
        more = api.cors.headers(request.method, request.headers.get(b"origin"))
        head = b"%bx-request-id: %b\r\n%b%b%b" % (
            opening(answer.status, answer.media_type, answer.headers),
            request.id,
            lines(more) if more else b"",
            b"" if self.keep else b"connection: close\r\n",
            b"\r\n" if answer.status in _NO_BODY else b"content-length: %d\r\n\r\n" % len(body),
        )
        self.started = True
        if request.method == "HEAD":
            body = b""
        if len(body) <= _MAX_JOINED_BYTES:
            self._connection.transport.write(head + body)
        else:
            self._connection.transport.writelines((head, body))
        self._finish()

    async def begin(self, headers: Headers) -> None:
        """See `Outlet`."""
        self.keep = self.keep and self.complete and not self.bare
        coding = b"" if self.bare else b"transfer-encoding: chunked\r\n"
        ending = b"" if self.keep else b"connection: close\r\n"
        self.started = True
        await self._send(b"".join([STATUS_LINES[200], date_line(), lines(headers), coding, ending, b"\r\n"]))

    async def chunk(self, part: bytes) -> None:
        """See `Outlet`."""
        if part:
            await self._send(part if self.bare else b"%x\r\n%b\r\n" % (len(part), part))

    async def end(self) -> None:
        """See `Outlet`."""
        if not self.bare:
            await self._send(b"0\r\n\r\n")
        if not self.left:
            self._finish()

    async def _send(self, data: bytes) -> None:
        await self._connection.drain()
        if not self.left:
            self._connection.transport.write(data)

    def _finish(self) -> None:
        self.done = True
        self._notify()
        self._connection.answered(keep=self.keep)

    # Waiting

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()

    async def _change(self) -> None:
        """Wait for the next change."""
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()
