"""Transport that passes requests to an API in this process, without a socket."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from holdfast import tasks
from holdfast.api.app import Api
from holdfast.sdk.responses import Response
from holdfast.sdk.transport import StreamedResponse, TransportError

_MAX_QUEUED_MESSAGES = 100


class InProcessTransport:
    """Passes requests to an API in this process through its ASGI interface."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        try:
            async with asyncio.timeout(timeout), self._exchange(method, path, headers, body) as response:
                return Response(response.status, b"".join([chunk async for chunk in response.chunks]), response.headers)
        except TimeoutError:
            raise TransportError(f"no response within {timeout:g} s", sent=True) from None

    @asynccontextmanager
    async def stream(self, method: str, path: str, *, headers: Mapping[str, str]) -> AsyncIterator[StreamedResponse]:
        async with self._exchange(method, path, headers, None) as response:
            yield response

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[StreamedResponse]:
        exchange = _AsgiExchange(self._api, _scope(method, path, headers, body), body or b"")
        try:
            status, response_headers = await exchange.start()
            yield StreamedResponse(status, response_headers, exchange.chunks())
        finally:
            await exchange.aclose()


class _AsgiExchange:
    """Request that the API is processing, and the messages of its response."""

    def __init__(self, api: Api, scope: dict[str, Any], body: bytes) -> None:
        self._body: bytes | None = body
        self._disconnected = asyncio.Event()
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MAX_QUEUED_MESSAGES)
        self._task = tasks.start(self._run(api, scope), name="holdfast request", awaited=True)

    async def start(self) -> tuple[int, dict[str, str]]:
        message = await self._messages.get()
        if message is None:
            await self._task  # raises the error of the API
            raise TransportError("the API sent no response", sent=True)
        return message["status"], {name.decode(): value.decode() for name, value in message["headers"]}

    async def chunks(self) -> AsyncIterator[bytes]:
        while (message := await self._messages.get()) is not None:
            if chunk := message.get("body"):
                yield chunk

    async def aclose(self) -> None:
        self._disconnected.set()
        await tasks.stop(self._task)

    async def _run(self, api: Api, scope: dict[str, Any]) -> None:
        try:
            await api(scope, self._receive, self._messages.put)  # type: ignore[arg-type]
        finally:
            await self._messages.put(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}


def _scope(method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    raw_path, _, query = path.partition("?")
    fields = {"host": "holdfast", **headers}
    if body is not None:
        fields["content-length"] = str(len(body))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "headers": [(name.lower().encode(), value.encode()) for name, value in fields.items()],
        "scheme": "http",
        "path": unquote(raw_path),
        "raw_path": raw_path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "client": ("127.0.0.1", 0),
        "server": ("holdfast", 80),
    }
