"""HTTP proxy between the worker and the node: records every exchange, and injects faults."""

import time
from collections.abc import Callable
from typing import Any, Literal

import aiohttp
import msgspec
from aiohttp import web

from holdfast.protocol_check.exchanges import RecordedExchange

_MAX_BODY_BYTES = 64 * 1024 * 1024
_HOP_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding", "upgrade", "http2-settings"})


class InjectedFault:
    """InjectedFault of the next exchanges that match."""

    def __init__(
        self,
        kind: Literal["refuse", "lose_request", "lose_response"],
        matches: Callable[[RecordedExchange], bool],
        *,
        times: int = 1,
        status: int = 429,
        retry_after: int = 1,
    ) -> None:
        self.kind = kind
        self.matches = matches
        """Called with the response too if the fault loses the response."""
        self.left = times
        self.status = status
        self.retry_after = retry_after


class RecordingProxy:
    """Proxy on a free port of 127.0.0.1, whose address stays the same while the node restarts."""

    def __init__(self) -> None:
        self.node_url = ""
        self.url = ""
        self.exchanges: list[RecordedExchange] = []
        self.faults: list[InjectedFault] = []
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen for requests of the worker."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A worker that closes its connection ends a long poll at the node too.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, shutdown_timeout=0.1).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        timeout = aiohttp.ClientTimeout(total=None, connect=5)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)

    async def aclose(self) -> None:
        """Stop listening, and close all connections."""
        if self._session is not None:
            await self._session.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def reset(self) -> None:
        """Forget the exchanges and faults of the last scenario."""
        self.exchanges = []
        self.faults = []

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        exchange = RecordedExchange(
            request.method, request.path, _decode(body) or dict(request.query), time.monotonic()
        )
        if "fence" in exchange.body:
            exchange.body["fence"] = int(exchange.body["fence"])
        self.exchanges.append(exchange)
        fault = self._fault("refuse", exchange)
        if fault is not None:
            return _refuse(exchange, fault)
        if self._fault("lose_request", exchange) is not None:
            return _abort(request)
        try:
            status, text, headers = await self._forward(request, body)
        except (aiohttp.ClientError, OSError):
            return _abort(request)
        exchange.status, exchange.response = status, _decode(text)
        if self._fault("lose_response", exchange) is not None:
            exchange.status, exchange.response = None, {}
            return _abort(request)
        exchange.ended = time.monotonic()
        return web.Response(status=status, body=text, headers=headers)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if self._session is None:
            raise OSError
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        url = self.node_url + request.path_qs
        async with self._session.request(request.method, url, data=body or None, headers=headers) as response:
            text = await response.read()
            kept = {
                name: value
                for name, value in response.headers.items()
                if name.lower() in ("content-type", "retry-after")
            }
            return response.status, text, kept

    def _fault(self, kind: str, exchange: RecordedExchange) -> InjectedFault | None:
        for fault in self.faults:
            if fault.kind == kind and fault.left > 0 and fault.matches(exchange):
                fault.left -= 1
                return fault
        return None


def _refuse(exchange: RecordedExchange, fault: InjectedFault) -> web.Response:
    code = "rate_limited" if fault.status == 429 else "unavailable"
    exchange.status, exchange.injected, exchange.ended = fault.status, True, time.monotonic()
    exchange.response = {
        "type": "about:blank",
        "title": "Too many requests" if fault.status == 429 else "Not available",
        "status": fault.status,
        "code": code,
        "detail": "the conformance kit refused this request: retry later",
    }
    return web.Response(
        status=fault.status,
        body=msgspec.json.encode(exchange.response),
        headers={"content-type": "application/problem+json", "retry-after": str(fault.retry_after)},
    )


def _abort(request: web.Request) -> web.Response:
    """Close the connection without a response."""
    transport: Any = request.transport  # uvloop's transports have `abort` and are no asyncio.Transport
    if transport is not None:
        transport.abort()
    return web.Response()


def _decode(text: bytes) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
