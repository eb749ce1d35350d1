"""HTTP client of webhooks: checks addresses at the socket, and limits time and size."""

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.builtin.webhooks.address_guard import NOT_PUBLIC, AddressGuard
from holdfast.builtin.webhooks.messages import DestinationBlocked, NoResponse, WebhookRequest, WebhookResponse

MAX_RESPONSE_BYTES = 64 * 1024
"""Bytes of a response body to read: more than is stored, so that connections can be reused."""

BODY_TIMEOUT_S = 5.0
"""Time limit for reading a body, which is only informative: the status decides."""

_RESOLVER_THREADS = 32
_KEEP_ALIVE_S = 15.0


class WebhookClient:
    """Connections of one worker, opened on first use. Belongs to one event loop.

    The client follows no redirects, stores no cookies, uses no proxies and decompresses nothing.
    """

    def __init__(self, guard: AddressGuard, *, resolver: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: WebhookRequest, *, timeout: float) -> WebhookResponse:
        """Send a request and return the response.

        Raises:
            NoResponse: The receiver did not respond within the timeout, or the connection failed. Unknown and internal
                names raise it alike, so that a tenant cannot tell whether an internal name exists.
            DestinationBlocked: The address guard does not allow the address, the port or the scheme of the URL.
        """
        blocked = self._guard.set_target(request.target)
        try:
            async with asyncio.timeout(timeout):
                return await self._send(request, timeout)
        except TimeoutError:
            raise NoResponse(f"no response within {timeout:g} s") from None
        except aiohttp.InvalidURL as error:
            raise DestinationBlocked(f"the URL cannot be used: {error}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reasons = [reason for reason in dict.fromkeys(blocked) if reason != NOT_PUBLIC]
            if reasons:
                raise DestinationBlocked("; ".join(reasons)) from None
            if blocked or isinstance(error, aiohttp.ClientConnectorDNSError):
                raise NoResponse(NOT_PUBLIC) from None
            raise NoResponse(_describe(error)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, request: WebhookRequest, timeout: float) -> WebhookResponse:
        for fresh in (False, True):
            trace = SimpleNamespace(reused=False)
            try:
                return await self._send_once(request, timeout, trace)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # The receiver may have closed an idle connection while we sent the request: try once on a new one.
                if fresh or not trace.reused:
                    raise
        raise AssertionError("unreachable")

    async def _send_once(self, request: WebhookRequest, timeout: float, trace: SimpleNamespace) -> WebhookResponse:
        async with self._open().request(
            request.method,
            request.target.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
            trace_request_ctx=trace,
        ) as response:
            body_start, complete = await _read_start(response)
            return WebhookResponse(response.status, response.headers.get("Retry-After"), body_start, complete)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            traces = aiohttp.TraceConfig()
            traces.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    use_dns_cache=False,
                    resolver=self._resolver or Resolver(),
                    keepalive_timeout=_KEEP_ALIVE_S,
                    socket_factory=self._guard.create_socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                trace_configs=[traces],
            )
        return self._session


class Resolver(AbstractResolver):
    """System resolver on its own threads, so that slow name servers delay no other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="holdfast resolver")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a name."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        )
        return [
            ResolveResult(hostname=host, host=str(at[0]), port=port, family=kind, proto=protocol, flags=_NUMERIC)
            for kind, _, protocol, _, at in found
        ]

    async def close(self) -> None:
        """Shut down without waiting for lookups in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)


_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


async def _read_start(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Return the first bytes of a body, and whether they are all.

    Errors are ignored, because the status has arrived.
    """
    start = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while len(start) <= MAX_RESPONSE_BYTES:
                chunk = await response.content.read(MAX_RESPONSE_BYTES + 1 - len(start))
                if not chunk:
                    return bytes(start), True
                start += chunk
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError):
        pass
    response.close()
    return bytes(start[:MAX_RESPONSE_BYTES]), False


async def _note_reuse(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    context.trace_request_ctx.reused = True


def _describe(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            inner = error.__cause__
            return f"TLS failed ({getattr(inner, 'verify_message', '') or getattr(inner, 'reason', '') or inner})"
        case aiohttp.ClientConnectorError():
            return f"it cannot be reached ({error.os_error.strerror or str(error.os_error) or 'connection closed'})"
        case ssl.SSLError():
            return f"TLS failed ({error.reason})"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without a response"
        case aiohttp.ClientResponseError():
            return f"its response is not HTTP ({error.message})"
        case _:
            return f"{type(error).__name__}: {error}"
