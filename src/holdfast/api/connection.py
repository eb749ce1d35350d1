"""One connection of a client: how long it may take, how much it may send, and what is refused before it is a request.

Uvicorn's protocol, made stricter: a head arrives whole and within its time or not at all, a body within its time, an
answer is read within its time. One request at a time: whoever sends a second before the first is answered gets one
answer, after which the connection is closed. So nothing can be hidden behind a request that others read differently.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, NamedTuple

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from holdfast.api.heads import fault, has_bare_line_feed, is_ambiguous, written

_LOG = logging.getLogger("holdfast.api")

_LINGER = 2.0
"""Seconds that whatever a client still sends is thrown away, so that it can read the answer it got."""

Bare = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class Limits(NamedTuple):
    """How long a client may take, in seconds, and how much it may send."""

    head: float = 10
    body: float = 30
    answer: float = 30
    """How long a client may read nothing of its answer."""
    idle: float = 75
    head_size: int = 16_384
    headers: int = 100
    connections: int = 2_000
    """More than these are told to come back; more than twice as many are not even told."""


DEFAULT_LIMITS = Limits()


class _State(Enum):
    HEAD = 0
    BODY = 1
    WHOLE = 2
    """The request is there whole, its answer is not complete."""
    DEAF = 3
    """Whatever still comes is thrown away."""


class Connection(HttpToolsProtocol):
    """See the module. `crowded` answers when there are too many connections."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
        crowded: Bare,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _LOG
        self.access_log = False
        self.timeout_keep_alive = limits.idle  # type: ignore[assignment]  # a part of a second is fine
        self._limits = limits
        self._state = _State.HEAD
        self._head = b""
        self._head_size = 0
        self._headers_done = False
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._last = False
        self._left = False
        self._apps: tuple[Any, Any] = (self.app, crowded)

    # Told by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there, and has its time to say something."""
        super().connection_made(transport)
        if len(self.connections) > 2 * self._limits.connections:
            transport.abort()
            return
        self._arm(self._limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._arm(None)
        self._unset_keepalive_if_required()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes. The parser gets a head only when it is whole and was looked at."""
        if self._state is _State.DEAF or self.transport.is_closing():
            return
        if self._state is _State.WHOLE:
            self._hear_no_more()
            return
        if self._state is _State.HEAD:
            self._unset_keepalive_if_required()
            whole = self._whole_head(data)
            if whole is None:
                return
            data = whole
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # to what it asks for there is no way: answered as if it had not asked
            self._hear_no_more()
        except httptools.HttpParserError:
            self._refuse(400, "malformed_request", "this is no HTTP/1.1 request that means one thing only")
        if self._state is _State.BODY:
            if self._timer is None:
                self._arm(self._limits.body)
        else:
            self._arm(None)

    def pause_writing(self) -> None:
        """The client does not read what it is sent."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    # Told by the parser

    def on_message_begin(self) -> None:
        """A request begins; a second one in the same breath is not looked at."""
        if self._state is not _State.HEAD:
            self._hear_no_more()
            return
        self._head_size = 0
        self._headers_done = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """The path, or a part of it."""
        if self._state is _State.HEAD:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. What comes after the body is left out: it was not there when the request was permitted."""
        if self._state is _State.HEAD and not self._headers_done:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete: a request, unless it could be read in two ways."""
        if self._state is not _State.HEAD:
            return
        self._headers_done = True
        self._state = _State.BODY
        if found := fault(self.headers, self.parser.get_http_version(), most=self._limits.headers):
            self._refuse(*found)
            return
        many = len(self.connections) > self._limits.connections and self.url != b"/healthz"
        self.app = self._apps[many]
        super().on_headers_complete()
        cycle = self.cycle
        if self._last:
            cycle.keep_alive = False
        cycle.transport = _Door(self)  # type: ignore[assignment]
        cycle.send = _Answer(cycle, cycle.send).send  # type: ignore[method-assign]

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._state is _State.BODY:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there whole."""
        if self._state is _State.BODY:
            self._state = _State.HEAD if self.cycle.response_complete else _State.WHOLE
            super().on_message_complete()

    # Told by the cycle and the server

    def on_response_complete(self) -> None:
        """The answer is on its way: the connection waits for another request, or ends."""
        if self._state is _State.DEAF and not self.transport.is_closing():
            self.leave()
        super().on_response_complete()
        if self._state is _State.WHOLE:
            self._state = _State.HEAD

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for a long time."""
        self._end()

    def last(self) -> None:
        """The node stops: what is under way is answered, and that is the last answer."""
        self._last = True
        if self._unanswered:
            self.cycle.keep_alive = False

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
            self.flow.resume_reading()
        self._arm(_LINGER)

    # Our own

    @property
    def _unanswered(self) -> bool:
        """Whether there is a request that has not got all of its answer."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

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
            self._head = data
            if self._timer is None:
                self._arm(self._limits.head)
            return None
        if is_ambiguous(data, end):
            self._refuse(400, "malformed_request", "a header is folded, or a line does not end with CR and LF")
            return None
        self._head = b""
        return data

    def _hear_no_more(self) -> None:
        """Whatever comes after the request in hand is none of ours: it gets its answer, and that is the last."""
        self._state = _State.DEAF
        if self._unanswered:
            self.cycle.keep_alive = False
        else:
            self.leave()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer, as far as there was no answer yet, and end."""
        if self._unanswered:
            if self.cycle.response_started:
                self.transport.abort()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._state = _State.DEAF
        self._head = b""
        if not self.transport.is_closing():
            self.transport.write(written(status, code, detail))
            self.leave()

    def _arm(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self._state is _State.DEAF or (not self._head and not self._unanswered):
            self._end()
        else:
            self._refuse(408, "too_slow", "the request did not arrive in time: send it again")

    def _end(self) -> None:
        """Close; whoever does not even read what was sent is cut."""
        self._watch_reading()
        self.transport.close()

    def _watch_reading(self) -> None:
        """Look from time to time whether the client reads; however slow, it may go on while it does."""
        if self._stalled is None and (left := self.transport.get_write_buffer_size()):
            self._stalled = self.loop.call_later(self._limits.answer, self._look, left)

    def _look(self, before: int) -> None:
        self._stalled = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_reading()


class _Door:
    """The transport as a cycle sees it: it closes gently."""

    __slots__ = ("_connection", "is_closing", "write")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        self._connection.leave()


class _Answer:
    """Says `connection: close` when an answer begins before the body was there: the rest will not be read."""

    __slots__ = ("_cycle", "_send")

    def __init__(self, cycle: RequestResponseCycle, send: Callable[[Any], Awaitable[None]]) -> None:
        self._cycle = cycle
        self._send = send

    async def send(self, message: Any) -> None:
        if self._cycle.more_body:
            self._cycle.keep_alive = False
        await self._send(message)
