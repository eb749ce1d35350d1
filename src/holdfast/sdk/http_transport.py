"""HTTP connections of the clients, on aiohttp, which is slow to import."""

import io
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from holdfast.sdk.responses import Response
from holdfast.sdk.transport import CONNECT_TIMEOUT_S, STREAM_IDLE_TIMEOUT_S, StreamedResponse, TransportError

_KEEP_ALIVE_S = 30.0
_MAX_WRITE_BYTES = 1024 * 1024

_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_FAILURES = (aiohttp.ClientError, OSError, RuntimeError)
"""Errors of aiohttp, and of uvloop's transports if a connection is reset early."""


class HttpTransport:
    """Connections to one node, or to several behind one address. Belongs to one event loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sessions: dict[int, aiohttp.ClientSession] = {}
        """Session by process id: a forked child opens its own and leaves the parent's untouched."""

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=timeout)
        # aiohttp writes bytes in one piece, and a file piece by piece, so that other tasks can run between.
        data = io.BytesIO(body) if body is not None and len(body) > _MAX_WRITE_BYTES else body
        try:
            async with self._session().request(
                method, self._to(path), data=data, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                return Response(response.status, await response.read(), response.headers)
        except _FAILURES as error:
            raise _translate(error) from error

    @asynccontextmanager
    async def stream(self, method: str, path: str, *, headers: Mapping[str, str]) -> AsyncIterator[StreamedResponse]:
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=STREAM_IDLE_TIMEOUT_S)
        try:
            response = await self._session().request(
                method, self._to(path), headers=headers, timeout=limits, allow_redirects=False
            )
        except _FAILURES as error:
            raise _translate(error) from error
        try:
            yield StreamedResponse(response.status, response.headers, _chunks(response))
        finally:
            response.close()

    async def aclose(self) -> None:
        session = self._sessions.pop(os.getpid(), None)
        if session is not None:
            await session.close()

    def _session(self) -> aiohttp.ClientSession:
        session = self._sessions.get(os.getpid())
        if session is None:
            session = self._sessions[os.getpid()] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        return session

    def _to(self, path: str) -> URL:
        return URL(self._url + path, encoded=True)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except _FAILURES as error:
        raise _translate(error) from error


def _translate(error: Exception) -> TransportError:
    return TransportError(str(error) or type(error).__name__, sent=not isinstance(error, _NOT_SENT))
