"""HTTP/1.1 connection: timeouts, size limits, and rejection of malformed requests.

Receiving the head, receiving the body and sending the response each have a timeout. Pipelining is not supported: if a
second request arrives before the first response is complete, the connection closes after that response. This prevents
request smuggling.
"""

import asyncio
from enum import Enum

import httptools

from holdfast.api.http import HttpRequest
from holdfast.api.server.chunked import SLICE_BYTES, TOO_MUCH_FRAMING, ChunkFraming
from holdfast.api.server.connection_set import ConnectionSet
from holdfast.api.server.exchange import Exchange
from holdfast.api.server.request_head import (
    END,
    framing_error,
    head_error,
    render_problem,
    split_target,
    without_upgrade,
)
from holdfast.api.server.timeouts import Deadline, ReadWatchdog

_LINGER_TIMEOUT_S = 2.0
"""Time to discard further input before closing, so that the client can read the response."""

_TLS_WRITE_BUFFER_BYTES = 65_536
"""Unread output above which writers wait; the default of connections without TLS."""


class _State(Enum):
    HEAD = 0
    BODY = 1
    RESPONDING = 2
    """The request is complete, its response is not."""
    DISCARDING = 3
    """Further input is discarded."""


class Connection(asyncio.Protocol):
    """asyncio protocol of one HTTP/1.1 connection."""

    def __init__(self, connections: ConnectionSet) -> None:
        self._connections = connections
        self._limits = connections.limits
        self._loop = asyncio.get_running_loop()
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        # Respond to the first of two pipelined requests even if it says `Connection: close`.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.transport: asyncio.Transport
        self.exchange: Exchange | None = None
        """Latest request, whether or not its response is complete."""
        self.task: asyncio.Task[None] | None = None
        """Task that handles the latest request."""
        self.address = ""
        self._state = _State.HEAD
        self._head = b""
        self._head_timeout_set = True
        """False on an idle keep-alive connection, where the idle timeout runs instead."""
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = 0
        self._framing: ChunkFraming | None = None
        """Framing of a chunked body; None for other bodies."""
        self._request: HttpRequest | None = None
        """Parsed request whose handling has not started."""
        self._deadline = Deadline(self._loop, self._on_timeout)
        self._watchdog: ReadWatchdog
        self._paused = False
        self._writable: asyncio.Event | None = None
        self._last_response = False
        self._closing = False

    # Transport callbacks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # always a stream
        """Register the connection and start the head timeout."""
        self.transport = transport
        if transport.get_extra_info("sslcontext") is not None:  # asyncio buffers eight times as much under TLS
            transport.set_write_buffer_limits(_TLS_WRITE_BUFFER_BYTES)
        self._watchdog = ReadWatchdog(self._loop, transport, self._limits.stalled_read_timeout_s)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._connections.add(self):
            transport.abort()
            return
        self._deadline.set(self._limits.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection; a request in progress continues without its client.

        Parser, timer and exchange refer to the connection. The references are dropped here, so that buffered input is
        freed at once instead of at the next run of the garbage collector.
        """
        del exc
        self._connections.remove(self)
        self._deadline.close()
        if self.exchange is not None:
            self.exchange.abandon()
        if self.task is not None and not self.task.done():
            self._connections.abandoned.add(self.task)
            self.task.add_done_callback(self._connections.abandoned.discard)
        self.resume_writing()
        self.exchange = self.task = self._parser = self._request = None
        self._head, self._headers = b"", {}

    def data_received(self, data: bytes) -> None:
        """Handle input; pass a head to the parser only when it is complete and unambiguous."""
        state = self._state
        if state is _State.DISCARDING or self.transport.is_closing():
            return
        if state is _State.RESPONDING:
            self._discard_input()
            return
        if state is _State.HEAD:
            if not self._head and self._start_cached(data):
                return
            complete = self._complete_head(data)
            if complete is None:
                return
            data = complete
            self._deadline.cancel()
        try:
            self._feed(data, head_size=data.find(END) + len(END) if state is _State.HEAD else 0)
        except httptools.HttpParserUpgrade:  # CONNECT: respond as to any other method that no route has
            self._discard_input()
        except httptools.HttpParserError:
            self._reject(
                400,
                "malformed_request",
                "this is not a valid, unambiguous HTTP/1.1 request: check the request line, headers and body framing",
            )
            return
        if self._state is _State.RESPONDING:
            self._deadline.cancel()
        elif self._state is _State.BODY and state is _State.HEAD:
            self._deadline.set(self._limits.body_timeout_s)
        if self._request is not None and self.exchange is not None:
            request, self._request = self._request, None
            if state is _State.HEAD and self._state is _State.RESPONDING and self.exchange.is_cacheable:
                self._connections.heads.add(data, request)
            self._start(request, self.exchange)

    def pause_writing(self) -> None:
        """Make writers wait, because the client does not read the response."""
        self._paused = True
        self._watchdog.watch()
        self._connections.mark_stalled(self, "" if self.exchange is None else self.exchange.caller)

    def resume_writing(self) -> None:
        """Wake writers: the client reads again, or has disconnected."""
        self._paused = False
        if self._writable is not None:
            self._writable.set()
        self._watchdog.stop()
        self._connections.mark_reading(self)

    # Parser callbacks

    def on_message_begin(self) -> None:
        """Start a request; ignore a pipelined second one."""
        if self._state is not _State.HEAD:
            self._discard_input()
            return
        self._url = b""
        self._headers = {}
        self._header_count = 0
        self._framing = None

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        if self._state is _State.HEAD:
            self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; ignore trailers, because they arrive after authorisation."""
        if self._state is _State.HEAD:
            name = name.lower()
            headers = self._headers
            # Repeated headers are joined so that no value is ignored.
            headers[name] = headers[name] + b", " + value if name in headers else value
            self._header_count += 1

    def on_headers_complete(self) -> None:
        """Create the request, unless its head is ambiguous."""
        if self._state is not _State.HEAD:
            return
        self._state = _State.BODY
        parser, headers = self._parser, self._headers
        if parser is None:
            return
        version = parser.get_http_version()
        if self._header_count > self._limits.max_headers:
            self._reject(431, "head_too_large", f"more than {self._limits.max_headers} headers: send fewer")
            return
        if error := framing_error(headers, version):
            self._reject(*error)
            return
        if b"transfer-encoding" in headers:
            self._framing = ChunkFraming()
        path, query = split_target(self._url)
        keep_alive = version == "1.1" and not self._last_response and parser.should_keep_alive()
        expects = headers.get(b"expect", b"").lower() == b"100-continue"
        self.exchange = exchange = Exchange(
            self, keep_alive=keep_alive, http_1_0=version == "1.0", expects_continue=expects
        )
        method = parser.get_method().decode("ascii")
        self._request = HttpRequest(method, path, query, headers, self.address, exchange)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        if self._state is _State.BODY and self.exchange is not None:
            if self._framing is not None:
                self._framing.data(len(body))
            self.exchange.feed(body)

    def on_chunk_complete(self) -> None:
        """Count a chunk."""
        if self._framing is not None:
            self._framing.chunk()

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        if self._state is _State.BODY and self.exchange is not None:
            self._state = _State.RESPONDING
            self.exchange.finish()

    # Calls from the exchange and the server

    def response_sent(self, *, keep_alive: bool) -> None:
        """Handle the end of a response: wait for the next request, or close."""
        if not keep_alive:
            self.close_gracefully()
        elif not self.transport.is_closing():
            self._state = _State.HEAD
            self._head_timeout_set = False
            self._connections.mark_idle(self)
            self.transport.resume_reading()
            self._deadline.set(self._limits.idle_timeout_s)

    def set_reading(self, *, enabled: bool) -> None:
        """Resume or pause reading from the client."""
        if not enabled:
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

    def announce_close(self) -> None:
        """Mark the current or next response as the last one, so that it says `Connection: close`."""
        self._last_response = True
        if self._pending is not None:
            self._pending.keep_alive = False

    def shutdown(self) -> None:
        """Close an idle connection; one whose head is arriving stays open for its response."""
        self.announce_close()
        if self._state is _State.HEAD and not self._head:
            self._close()
            if self.transport.get_extra_info("sslcontext") is not None:
                # A pooled client does not read while idle, so it never answers the TLS close notification.
                self._loop.call_later(_LINGER_TIMEOUT_S, self.transport.abort)

    def evict(self) -> None:
        """Close an idle connection to make room for another one."""
        self._state = _State.DISCARDING
        self.transport.abort()

    def close_gracefully(self) -> None:
        """Close; if input is unread, discard it first, because closing would reset the connection."""
        if self._closing:
            return
        self._closing = True
        if self._state in (_State.HEAD, _State.RESPONDING):
            self._close()
            return
        self._state = _State.DISCARDING
        if not self.transport.is_closing():
            if self.transport.can_write_eof():  # not under TLS
                self.transport.write_eof()
            self.transport.resume_reading()
        self._deadline.set(_LINGER_TIMEOUT_S)

    # Internals

    @property
    def _pending(self) -> Exchange | None:
        """Request whose response is incomplete, if any."""
        return None if self.exchange is None or self.exchange.done else self.exchange

    def _feed(self, data: bytes, head_size: int) -> None:
        """Parse a head and a body; a chunked body in slices, because the parser buffers trailers."""
        if self._parser is None:
            return
        if head_size:
            self._parser.feed_data(data[:head_size])
        framing = self._framing
        step = len(data) if framing is None else SLICE_BYTES
        for start in range(head_size, len(data), step):
            if self._state is _State.RESPONDING:  # pipelined
                self._discard_input()
            if self._state is _State.DISCARDING:
                return
            part = data[start : start + step]
            self._parser.feed_data(part)
            if framing is not None and framing.is_too_large_after(len(part)) and self._state is _State.BODY:
                self._reject(431, "framing_too_large", TOO_MUCH_FRAMING)
                return

    def _complete_head(self, data: bytes) -> bytes | None:
        """Return the input for the parser; None if the head is incomplete or was rejected."""
        data = self._head + data if self._head else data
        if data.startswith(b"\r\n"):  # tolerated before a request
            data = data.lstrip(b"\r\n")
        end = data.find(END)
        if error := head_error(data, end, self._limits.max_head_bytes):
            self._reject(*error)
            return None
        if end < 0:
            if not self._head_timeout_set:  # the first bytes of a request, even blank lines, end the idle period
                self._head_timeout_set = True
                self._deadline.set(self._limits.head_timeout_s)
            self._head = data
            return None
        self._head = b""
        return without_upgrade(data, end)

    def _start_cached(self, data: bytes) -> bool:
        """Start a complete request whose head is cached; return False for other input."""
        size = data.find(END) + len(END)
        head = self._connections.heads.get(data[:size])
        if head is None or len(data) - size != head.body_length:
            return False
        self._deadline.cancel()
        self._state = _State.RESPONDING
        self.exchange = exchange = Exchange(
            self, keep_alive=not self._last_response, http_1_0=False, expects_continue=False
        )
        exchange.complete = True
        request = HttpRequest(head.method, head.path, head.query, head.headers, self.address, exchange)
        request.body = data[size:]
        self._start(request, exchange)
        return True

    def _start(self, request: HttpRequest, exchange: Exchange) -> None:
        self._connections.mark_busy(self)
        overloaded = self._connections.is_crowded and request.path != "/healthz"
        # A bare task: `tasks.start` would add two callbacks and a set entry to each request. The connection holds the
        # reference, and `connection_lost` hands it to `abandoned`.
        self.task = self._loop.create_task(exchange.run(request, self._connections.api, overloaded=overloaded))

    def _discard_input(self) -> None:
        """Discard further input and make the current response the last one."""
        self._state = _State.DISCARDING
        if self._pending is not None:
            self._pending.keep_alive = False
            self._deadline.cancel()
        else:
            self.close_gracefully()

    def _reject(self, status: int, code: str, detail: str) -> None:
        """Send a problem response and close; abort if another response has started."""
        if self._closing:  # a head that was rejected in a parser callback may make the parser fail too
            return
        if (pending := self._pending) is not None:
            if pending.started:
                self.transport.abort()
                return
            pending.abandon()
        self._request = None
        self._state = _State.DISCARDING
        self._head = b""
        if not self.transport.is_closing():
            self.transport.write(render_problem(status, code, detail))
            self.close_gracefully()

    def _on_timeout(self) -> None:
        if self._state is _State.DISCARDING or (not self._head and self._pending is None):
            self._close()
        else:
            self._reject(408, "too_slow", "the request did not arrive within the time limit: send it again")

    def _close(self) -> None:
        """Close; abort if the client does not read the remaining output."""
        self._watchdog.watch()
        self.transport.close()
