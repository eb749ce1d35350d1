"""One connection of a client: how long it may take, how much it may send, and what is refused before it is a request.

A head arrives whole and within its time or not at all, a body within its time, an answer is read within its time. One
request at a time: whoever sends a second before the first is answered gets one answer, after which the connection is
closed. So nothing can be hidden behind a request that others read differently.
"""

import asyncio
from enum import Enum

import httptools

from holdfast.api.app import Api
from holdfast.api.http import Incoming
from holdfast.api.server.exchange import Exchange
from holdfast.api.server.request_head import END, Heads, fault, has_bare_line_feed, is_ambiguous, target, written
from holdfast.api.server.timeouts import Deadline, Limits, Reading

_LINGER = 2.0
"""Seconds that whatever a client still sends is thrown away, so that it can read the answer it got."""


class Connections:
    """All of a node."""

    def __init__(self, api: Api, limits: Limits) -> None:
        self.api = api
        self.limits = limits
        self.open: set[Connection] = set()
        self.heads = Heads()
        self.none = asyncio.Event()
        """Set when the last one has gone; for whoever waits for that."""
        self.abandoned: set[asyncio.Task[None]] = set()
        """Work for clients that did not wait for the answer."""

    def connect(self) -> "Connection":
        """Somebody comes."""
        return Connection(self)


class _State(Enum):
    HEAD = 0
    BODY = 1
    WHOLE = 2
    """The request is there whole, its answer is not complete."""
    DEAF = 3
    """Whatever still comes is thrown away."""


class Connection(asyncio.Protocol):
    """See the module."""

    def __init__(self, all_of_them: Connections) -> None:
        self._all = all_of_them
        self._limits = all_of_them.limits
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # The first of two requests in one breath is answered, also if it says that it is the last.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.transport: asyncio.Transport
        self.exchange: Exchange | None = None
        """The latest request, answered or not."""
        self.task: asyncio.Task[None] | None = None
        """What answers it."""
        self._address = ""
        self._state = _State.HEAD
        self._head = b""
        self._heard = True
        """Whether the time that a head may take runs."""
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._count = 0
        self._request: Incoming | None = None
        """One that came to be and that nobody answers yet."""
        self._deadline = Deadline(self._loop, self._time_is_up)
        self._reading: Reading
        self._paused = False
        self._writable: asyncio.Event | None = None
        self._last = False
        self._left = False

    # Told by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of a stream's socket
        """A client is there, and has its time to say something."""
        self.transport = transport
        self._reading = Reading(self._loop, transport, self._limits.answer)
        self._all.open.add(self)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        if len(self._all.open) > 2 * self._limits.connections:
            transport.abort()
            return
        self._deadline.set(self._limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
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
        """Some bytes. The parser gets a head only when it is whole and was looked at."""
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
        except httptools.HttpParserUpgrade:  # to what it asks for there is no way: answered as if it had not asked
            self._hear_no_more()
        except httptools.HttpParserError:
            self._refuse(400, "malformed_request", "this is no HTTP/1.1 request that means one thing only")
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
        """The client does not read what it is sent."""
        self._paused = True
        self._reading.watch()

    def resume_writing(self) -> None:
        """It does again, or is gone."""
        self._paused = False
        if self._writable is not None:
            self._writable.set()
        self._reading.stop()

    # Told by the parser

    def on_message_begin(self) -> None:
        """A request begins; a second one in the same breath is not looked at."""
        if self._state is not _State.HEAD:
            self._hear_no_more()
            return
        self._url = b""
        self._headers = {}
        self._count = 0

    def on_url(self, url: bytes) -> None:
        """The path, or a part of it."""
        if self._state is _State.HEAD:
            self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. What comes after the body is left out: it was not there when the request was permitted."""
        if self._state is _State.HEAD:
            name = name.lower()
            headers = self._headers
            # Of one that stands twice, neither value is overlooked.
            headers[name] = headers[name] + b", " + value if name in headers else value
            self._count += 1

    def on_headers_complete(self) -> None:
        """The head is complete: a request, unless it could be read in two ways."""
        if self._state is not _State.HEAD:
            return
        self._state = _State.BODY
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        if self._count > self._limits.headers:
            self._refuse(431, "head_too_large", f"a request may have {self._limits.headers} headers")
            return
        if found := fault(headers, version):
            self._refuse(*found)
            return
        path, query = target(self._url)
        keep = version == "1.1" and not self._last and parser.should_keep_alive()
        expects = headers.get(b"expect", b"").lower() == b"100-continue"
        self.exchange = exchange = Exchange(self, keep=keep, bare=version == "1.0", expects=expects)
        method = parser.get_method().decode("ascii")
        self._request = Incoming(method, path, query, headers, self._address, exchange)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._state is _State.BODY and self.exchange is not None:
            self.exchange.feed(body)

    def on_message_complete(self) -> None:
        """The request is there whole."""
        if self._state is _State.BODY and self.exchange is not None:
            self._state = _State.WHOLE
            self.exchange.finish()

    # Told by the exchange and the server

    def answered(self, *, keep: bool) -> None:
        """The answer is on its way: the connection waits for another request, or ends."""
        if not keep:
            self.leave()
        elif not self.transport.is_closing():
            self._state = _State.HEAD
            self._heard = False
            self.transport.resume_reading()
            self._deadline.set(self._limits.idle)

    def read_on(self, *, go: bool) -> None:
        """Read more of what the client sends, or wait with it."""
        if not go:
            self.transport.pause_reading()
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    async def drain(self) -> None:
        """Until the client reads what it was sent."""
        while self._paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            self._writable.clear()
            await self._writable.wait()

    def last(self) -> None:
        """The node stops: what is under way is answered, and that is the last answer."""
        self._last = True
        if self._unanswered is not None:
            self._unanswered.keep = False

    def shutdown(self) -> None:
        """The node stops now; a request whose head is arriving is still waited for."""
        self.last()
        if self._state is _State.HEAD and not self._head:
            self._end()

    def leave(self) -> None:
        """Close, when the client had a chance to read its answer: what it still sends would otherwise undo that."""
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
        self._deadline.set(_LINGER)

    # Our own

    @property
    def _unanswered(self) -> Exchange | None:
        """The request that has not got all of its answer, if there is one."""
        return None if self.exchange is None or self.exchange.done else self.exchange

    def _whole_head(self, data: bytes) -> bytes | None:
        """What to hand to the parser: nothing until the head is complete, and nothing if it is none."""
        data = self._head + data if self._head else data
        if data.startswith(b"\r\n"):  # tolerated before a request
            data = data.lstrip(b"\r\n")
        end = data.find(b"\r\n\r\n")
        if end > self._limits.head_size or (end < 0 and len(data) > self._limits.head_size):
            self._refuse(431, "head_too_large", f"path and headers may have {self._limits.head_size:,} bytes together")
            return None
        if end < 0:
            if has_bare_line_feed(data):
                self._refuse(400, "malformed_request", "lines of a request end with CR and LF")
                return None
            if not self._heard:  # empty lines are no beginning, but the time runs
                self._heard = True
                self._deadline.set(self._limits.head)
            self._head = data
            return None
        if is_ambiguous(data, end):
            self._refuse(400, "malformed_request", "a header is folded, or a line does not end with CR and LF")
            return None
        self._head = b""
        return data

    def _took(self, data: bytes) -> bool:
        """Whether this is a whole request whose head was read before: then it is being answered."""
        size = data.find(END) + len(END)
        head = self._all.heads.get(data[:size])
        if head is None or len(data) - size != head.length:
            return False
        self._deadline.lift()
        self._state = _State.WHOLE
        self.exchange = exchange = Exchange(self, keep=not self._last, bare=False, expects=False)
        exchange.complete = True
        request = Incoming(head.method, head.path, head.query, head.headers, self._address, exchange)
        request.whole = data[size:]
        self._begin(request, exchange)
        return True

    def _begin(self, request: Incoming, exchange: Exchange) -> None:
        crowded = len(self._all.open) > self._limits.connections and request.path != "/healthz"
        self.task = self._loop.create_task(exchange.run(request, self._all.api, crowded=crowded))

    def _hear_no_more(self) -> None:
        """Whatever comes after the request in hand is none of ours: it gets its answer, and that is the last."""
        self._state = _State.DEAF
        if self._unanswered is not None:
            self._unanswered.keep = False
            self._deadline.lift()
        else:
            self.leave()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer, as far as there was no answer yet, and end."""
        if (unanswered := self._unanswered) is not None:
            if unanswered.started:
                self.transport.abort()
                return
            unanswered.leave()
        self._request = None
        self._state = _State.DEAF
        self._head = b""
        if not self.transport.is_closing():
            self.transport.write(written(status, code, detail))
            self.leave()

    def _time_is_up(self) -> None:
        if self._state is _State.DEAF or (not self._head and self._unanswered is None):
            self._end()
        else:
            self._refuse(408, "too_slow", "the request did not arrive in time: send it again")

    def _end(self) -> None:
        """Close; whoever does not even read what was sent is cut."""
        self._reading.watch()
        self.transport.close()
