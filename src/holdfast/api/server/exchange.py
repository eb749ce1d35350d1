"""One request on a connection and its answer: the body as it comes, the answer in one write or chunk by chunk."""

import asyncio
from typing import Protocol

from holdfast.api.app import Api, Reply, refusal
from holdfast.api.headers import STATUS_LINES, Headers, date_line, lines, opening
from holdfast.api.http import ClientGone, Incoming, Stream
from holdfast.api.server.streaming import pump

_MOST_WAITING = 65_536
"""Bytes of a body that nobody asked for yet, after which no more are read."""

_JOINED = 65_536
"""Up to how many bytes a body is copied behind its head, to be one write."""

_NO_BODY = frozenset({204, 304})


class Line(Protocol):
    """The connection, as far as an exchange needs it."""

    transport: asyncio.Transport

    def answered(self, *, keep: bool) -> None:
        """The answer is on its way; `keep`: and another request may follow."""

    def read_on(self, *, go: bool) -> None:
        """Read more of what the client sends, or wait with it."""

    async def drain(self) -> None:
        """Until the client reads what it was sent."""


class Exchange:
    """What arrives is told by the connection; what leaves is written to it, as long as there is somebody to read it."""

    __slots__ = (
        "_changed", "_expects", "_line", "_parts", "_size", "bare", "complete", "done", "keep", "left", "started",
    )  # fmt: skip

    def __init__(self, line: Line, *, keep: bool, bare: bool, expects: bool) -> None:
        self._line = line
        self.keep = keep
        """Whether the connection stays open for another request."""
        self.bare = bare
        """Whether the client knows no chunks, as in HTTP/1.0."""
        self._expects = expects
        self.complete = False
        """Whether the request is there whole."""
        self.started = False
        """Whether something of the answer was sent."""
        self.done = False
        """Whether all of it was."""
        self.left = False
        """Whether there is nobody to answer any more."""
        self._parts: list[bytes] = []
        self._size = 0
        self._changed: asyncio.Event | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether another like it may follow."""
        return self.keep and not self._expects

    # Told by the connection

    def feed(self, part: bytes) -> None:
        """A part of the body."""
        if self.done:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > _MOST_WAITING:
            self._line.read_on(go=False)
        self._notify()

    def finish(self) -> None:
        """The request is there whole."""
        self.complete = True
        self._notify()

    def leave(self) -> None:
        """The client is gone, or was told already what there is to tell."""
        self.left = True
        self._notify()

    # Asked by whoever handles the request

    async def more(self) -> bytes:
        """See `Source`."""
        while not self._parts:
            if self.left:
                raise ClientGone
            if self.complete:
                return b""
            if self._expects:
                self._expects = False
                self._line.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._change()
        body = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._line.read_on(go=True)
        return body

    async def gone(self) -> None:
        """See `Source`."""
        while not (self.left or self.done):
            await self._change()

    # The answer

    async def run(self, request: Incoming, api: Api, *, crowded: bool) -> None:
        """Answer the request."""
        try:
            if self.complete and request.whole is None:
                request.whole = b"".join(self._parts)
            if crowded:
                self.keep = False
                reply: Reply | Stream | None = refusal(
                    503, "crowded", "this node has too many connections: try again in a moment"
                )
            else:
                reply = await api.respond(request)
            if isinstance(reply, Reply):
                self._write(reply, request, api)
                api.note(request, reply.answer.status)
            elif reply is not None:
                api.note(request, 200)
                await pump(reply, api.headers(reply, request), request, self)
        finally:
            if not self.done and not self.left:
                self._line.transport.abort()

    def _write(self, reply: Reply, request: Incoming, api: Api) -> None:
        if self.left:
            return
        answer, body = reply
        if not self.complete:
            self.keep = False  # the rest will not be read
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
        if len(body) <= _JOINED:
            self._line.transport.write(head + body)
        else:
            self._line.transport.writelines((head, body))
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
        await self._line.drain()
        if not self.left:
            self._line.transport.write(data)

    def _finish(self) -> None:
        self.done = True
        self._notify()
        self._line.answered(keep=self.keep)

    # Waiting

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()

    async def _change(self) -> None:
        """Until something is told."""
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()
