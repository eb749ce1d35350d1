"""A node without a socket: requests are answered in this process, streams as they come."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from holdfast.api.app import Api


class Inside(httpx2.AsyncBaseTransport):
    """Hands requests to an API that is in this process."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, its head as soon as it is there."""
        call = _Call(self._api, _scope(request), await request.aread())
        status, headers = await call.head()
        return httpx2.Response(status, headers=headers, stream=_Body(call))


class _Call:
    """One request under way."""

    def __init__(self, api: Api, scope: dict[str, Any], body: bytes) -> None:
        self._body: bytes | None = body
        self._hung_up = asyncio.Event()
        self._said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(maxsize=100)
        self._answering = asyncio.create_task(self._answer(api, scope))

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        message = await self._said.get()
        if message is None:
            await self._answering  # which failed, and says why
            raise httpx2.ReadError("there was no answer")
        return message["status"], message["headers"]

    async def chunks(self) -> AsyncIterator[bytes]:
        while (message := await self._said.get()) is not None:
            if chunk := message.get("body"):
                yield chunk

    async def aclose(self) -> None:
        self._hung_up.set()
        self._answering.cancel()
        await asyncio.gather(self._answering, return_exceptions=True)

    async def _answer(self, api: Api, scope: dict[str, Any]) -> None:
        try:
            await api(scope, self._receive, self._said.put)  # type: ignore[arg-type]
        finally:
            await self._said.put(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}


class _Body(httpx2.AsyncByteStream):
    """What follows the head."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._call.chunks():
            yield chunk

    async def aclose(self) -> None:
        """No more is wanted."""
        await self._call.aclose()


def _scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "client": ("127.0.0.1", 0),
        "server": ("holdfast", 80),
    }
