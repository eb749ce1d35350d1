"""One HTTP/1.1 connection: time limits, size limits, and rejection of malformed requests.

Head, body and the reading of the response each have a timeout. Pipelining is not supported: if a second request arrives
before the first response is complete, the connection closes after that response. This prevents request smuggling.
"""

import asyncio
from enum import Enum

import httptools

from holdfast.api.app import Api
from holdfast.api.http import HttpRequest
from holdfast.api.server.exchange import Exchange
from holdfast.api.server.request_head import (
    END,
    HeadCache,
    fault,
    has_bare_line_feed,
    is_ambiguous,
    render_problem,
    target,
)
from holdfast.api.server.timeouts import Deadline, ReadWatchdog, ServerLimits

_LINGER_TIMEOUT_S = 2.0
"""Seconds to discard further input before closing, so that the client can read the response."""


class ConnectionSet:
    """Open connections of a node and the state they share."""

    def __init__(self, api: Api, limits: ServerLimits) -> None:
        self.api = api
        self.limits = limits
        self.open: set[Connection] = set()
        self.heads = HeadCache()
        self.none = asyncio.Event()
        """Set when the last connection has closed."""
        self.abandoned: set[asyncio.Task[None]] = set()
        """Request tasks whose client disconnected."""

    def connect(self) -> "Connection":
        """Create the protocol object for a new connection."""
        return Connection(self)


class _State(Enum):
    HEAD = 0
    BODY = 1
    WHOLE = 2
    """The request is complete, its response is not."""
    DEAF = 3
    """Further input is discarded."""


class Connection(asyncio.Protocol):
    """asyncio protocol of one HTTP/1.1 connection."""

    def __init__(self, all_of_them: ConnectionSet) -> None:
        self._all = all_of_them
        self._limits = all_of_them.limits
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # Respond to the first of two pipelined requests even if it says `Connection: close`.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.transport: asyncio.Transport
        self.exchange: Exchange | None = None
        """The latest request, whether or not its response is complete."""
        self.task: asyncio.Task[None] | None = None
        """Task that handles it."""
        self._address = ""
        self._state = _State.HEAD
        self._head = b""
        self._heard = True
        """Whether the head timeout is running."""
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._count = 0
        self._request: HttpRequest | None = None
        """A parsed request whose handling has not started."""
        self._deadline = Deadline(self._loop, self._time_is_up)
        self._reading: ReadWatchdog
        self._paused = False
        self._writable: asyncio.Event | None = None
        self._last = False
        self._left = False

    # Transport callbacks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of a stream's socket
        """Register the connection and start the head timeout."""
        self.transport = transport
        self._reading = ReadWatchdog(self._loop, transport, self._limits.answer)
        self._all.open.add(self)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        if len(self._all.open) > 2 * self._limits.connections:
            transport.abort()
            return
        self._deadline.set(self._limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the client disconnected."""
        del exc
        self._all.open.discard(self)
        if not self._all.open:
            self._all.none.set()
        self._deadline.close()
        if self.exchange is not None:
            self.exchange.leave()
        if self.task is not None and not self.task.done():
            self._all.abandoned.add(self.task)
            self.task.add_done_callback(self._all.abandoned.discard)
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Process input. The parser gets a head only when it is complete and unambiguous."""
        state = self._state
        if state is _State.DEAF or self.transport.is_closing():
            return
        if state is _State.WHOLE:
            self._hear_no_more()
            return
        if state is _State.HEAD:
            if not self._head and self._took(data):
                return
            whole = self._whole_head(data)
            if whole is None:
                return
            data = whole
            self._deadline.lift()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # upgrades are not supported: respond as if none was requested
            self._hear_no_more()
        except httptools.HttpParserError:
            self._refuse(
                400,
                "malformed_request",
                "this is not a valid, unambiguous HTTP/1.1 request: check the request line, headers and body framing",
            )
            return
        if self._state is _State.WHOLE:
            self._deadline.lift()
        elif self._state is _State.BODY and state is _State.HEAD:
            self._deadline.set(self._limits.body)
        if self._request is not None and self.exchange is not None:
            request, self._request = self._request, None
            if state is _State.HEAD and self._state is _State.WHOLE and self.exchange.may_repeat:
                self._all.heads.remember(data, request)
            self._begin(request, self.exchange)

    def pause_writing(self) -> None:
        """Pause writing: the client does not read the response."""
        self._paused = True
        self._reading.watch()

    def resume_writing(self) -> None:
        """Resume writing, or wake writers after a disconnect."""
        self._paused = False
        if self._writable is not None:
            self._writable.set()
        self._reading.stop()

    # Parser callbacks

    def on_message_begin(self) -> None:
        """Start a request; ignore a pipelined second one."""
        if self._state is not _State.HEAD:
            self._hear_no_more()
            return
        self._url = b""
        self._headers = {}
        self._count = 0

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        if self._state is _State.HEAD:
            self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header. Trailers are ignored because they were not there at authorisation."""
        if self._state is _State.HEAD:
            name = name.lower()
            headers = self._headers
            # Join repeated headers so that no value is ignored.
            headers[name] = headers[name] + b", " + value if name in headers else value
            self._count += 1

    def on_headers_complete(self) -> None:
        """Create the request, unless its head is ambiguous."""
        if self._state is not _State.HEAD:
            return
        self._state = _State.BODY
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        if self._count > self._limits.headers:
            self._refuse(431, "head_too_large", f"more than {self._limits.headers} headers: send fewer")
            return
        if found := fault(headers, version):
            self._refuse(*found)
            return
        path, query = target(self._url)
        keep = version == "1.1" and not self._last and parser.should_keep_alive()
        expects = headers.get(b"expect", b"").lower() == b"100-continue"
        self.exchange = exchange = Exchange(self, keep=keep, bare=version == "1.0", expects=expects)
        method = parser.get_method().decode("ascii")
        self._request = HttpRequest(method, path, query, headers, self._address, exchange)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        if self._state is _State.BODY and self.exchange is not None:
            self.exchange.feed(body)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        if self._state is _State.BODY and self.exchange is not None:
            self._state = _State.WHOLE
            self.exchange.finish()

    # Calls from the exchange and the server

    def answered(self, *, keep: bool) -> None:
        """Handle the end of a response: wait for the next request, or close."""
        if not keep:
            self.leave()
        elif not self.transport.is_closing():
            self._state = _State.HEAD
            self._heard = False
            self.transport.resume_reading()
            self._deadline.set(self._limits.idle)

    def read_on(self, *, go: bool) -> None:
        """Resume or pause reading from the client."""
        if not go:
            self.transport.pause_reading()
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    async def drain(self) -> None:
        """Wait until the write buffer has room."""
        while self._paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            self._writable.clear()
            await self._writable.wait()

    def last(self) -> None:
        """Mark the current or next response as the last one."""
        self._last = True
        if self._unanswered is not None:
            self._unanswered.keep = False

    def shutdown(self) -> None:
        """Close an idle connection; one whose head is arriving stays open for its response."""
        self.last()
        if self._state is _State.HEAD and not self._head:
            self._end()

    def leave(self) -> None:
        """Close after a linger period, because unread input would reset the connection."""
        if self._left:
            return
        self._left = True
        if self._state in (_State.HEAD, _State.WHOLE) or not self.transport.can_write_eof():
            self._end()
            return
        self._state = _State.DEAF
        if not self.transport.is_closing():
            self.transport.write_eof()
            self.transport.resume_reading()
        self._deadline.set(_LINGER_TIMEOUT_S)

    # Internals

    @property
    def _unanswered(self) -> Exchange | None:
        """The request whose response is incomplete, if any."""
        return None if self.exchange is None or self.exchange.done else self.exchange

    def _whole_head(self, data: bytes) -> bytes | None:
        """Return the input for the parser; None while the head is incomplete, or if it is invalid."""
        data = self._head + data if self._head else data
        if data.startswith(b"\r\n"):  # tolerated before a request
            data = data.lstrip(b"\r\n")
        end = data.find(b"\r\n\r\n")
        if end > self._limits.head_size or (end < 0 and len(data) > self._limits.head_size):
            self._refuse(
                431,
                "head_too_large",
                f"the request head is larger than {self._limits.head_size:,} bytes: shorten the path or the headers",
            )
            return None
        if end < 0:
            if has_bare_line_feed(data):
                self._refuse(400, "malformed_request", "a line does not end with CR LF: use CR LF line endings")
                return None
            if not self._heard:  # empty lines do not start a request, but start the timeout
                self._heard = True
                self._deadline.set(self._limits.head)
            self._head = data
            return None
        if is_ambiguous(data, end):
            self._refuse(
                400,
                "malformed_request",
                "a header is folded or a line does not end with CR LF: send one header per line",
            )
            return None
        self._head = b""
        return data

    def _took(self, data: bytes) -> bool:
        """Start a complete request whose head is cached; return whether it was one."""
        size = data.find(END) + len(END)
        head = self._all.heads.get(data[:size])
        if head is None or len(data) - size != head.length:
            return False
        self._deadline.lift()
        self._state = _State.WHOLE
        self.exchange = exchange = Exchange(self, keep=not self._last, bare=False, expects=False)
        exchange.complete = True
        request = HttpRequest(head.method, head.path, head.query, head.headers, self._address, exchange)
        request.whole = data[size:]
        self._begin(request, exchange)
        return True

    def _begin(self, request: HttpRequest, exchange: Exchange) -> None:
        crowded = len(self._all.open) > self._limits.connections and request.path != "/healthz"
        self.task = self._loop.create_task(exchange.run(request, self._all.api, crowded=crowded))

    def _hear_no_more(self) -> None:
        """Discard further input; the current response is the last one."""
        self._state = _State.DEAF
        if self._unanswered is not None:
            self._unanswered.keep = False
            self._deadline.lift()
        else:
            self.leave()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Send a problem response unless one has started, then close."""
        if (unanswered := self._unanswered) is not None:
            if unanswered.started:
                self.transport.abort()
                return
            unanswered.leave()
        self._request = None
        self._state = _State.DEAF
        self._head = b""
        if not self.transport.is_closing():
            self.transport.write(render_problem(status, code, detail))
            self.leave()

    def _time_is_up(self) -> None:
        if self._state is _State.DEAF or (not self._head and self._unanswered is None):
            self._end()
        else:
            self._refuse(408, "too_slow", "the request did not arrive within the time limit: send it again")

    def _end(self) -> None:
        """Close; abort if the client does not read the remaining output."""
        self._reading.watch()
        self.transport.close()
