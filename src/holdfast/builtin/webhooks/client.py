"""Sends one HTTP request to whomever a payload names: guarded at the socket, bounded in time and size."""

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.builtin.webhooks.address_guard import Guard
from holdfast.builtin.webhooks.messages import Answer, Blocked, NoAnswer, Request

MOST_READ = 64 * 1024
"""Bytes that are read of an answer; more than is kept, so that most connections can be used again."""

READ_FOR = 5.0
"""Seconds that an answer's body may take: its status has said it all."""

_THREADS = 32
_IDLE = 15.0


class Client:
    """Connections of one worker. Belongs to one event loop; opened when first used.

    It follows no redirects, keeps no cookies, knows no proxies, and unpacks nothing.
    """

    def __init__(self, guard: Guard, *, resolver: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, *, timeout: float) -> Answer:
        """The answer, or `NoAnswer`, or `Blocked`; within the timeout."""
        refused = self._guard.enter(request.target)
        try:
            async with asyncio.timeout(timeout):
                return await self._send(request, timeout)
        except TimeoutError:
            raise NoAnswer(f"no answer within {timeout:g} s") from None
        except aiohttp.InvalidURL as error:
            raise Blocked(f"the URL cannot be used: {error}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if refused:
                raise Blocked("; ".join(dict.fromkeys(refused))) from None
            raise NoAnswer(_told(error)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, request: Request, timeout: float) -> Answer:
        for fresh in (False, True):
            seen = SimpleNamespace(reused=False)
            try:
                return await self._once(request, timeout, seen)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # The other side closes what was idle for long, and this may have crossed the request.
                if fresh or not seen.reused:
                    raise
        raise AssertionError("one of the two returns or raises")

    async def _once(self, request: Request, timeout: float, seen: SimpleNamespace) -> Answer:
        async with self._open().request(
            request.method,
            request.target.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
            trace_request_ctx=seen,
        ) as response:
            beginning = await _beginning(response)
            return Answer(response.status, response.headers.get("Retry-After"), beginning)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            traces = aiohttp.TraceConfig()
            traces.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    use_dns_cache=False,
                    resolver=self._resolver or Resolver(),
                    keepalive_timeout=_IDLE,
                    socket_factory=self._guard.socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                trace_configs=[traces],
            )
        return self._session


class Resolver(AbstractResolver):
    """The system's resolver, on threads of its own: names that resolve slowly must not hold up anything else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast resolver")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a name."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        )
        return [
            ResolveResult(hostname=host, host=str(at[0]), port=port, family=kind, proto=protocol, flags=_NUMERIC)
            for kind, _, protocol, _, at in found
        ]

    async def close(self) -> None:
        """Wait for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)


_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The first bytes of an answer. What is wrong with the rest does not matter: the status was there."""
    found = bytearray()
    try:
        async with asyncio.timeout(READ_FOR):
            while len(found) < MOST_READ:
                chunk = await response.content.read(MOST_READ - len(found))
                if not chunk:
                    return bytes(found)
                found += chunk
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError):
        pass
    response.close()
    return bytes(found)


async def _note_reuse(_session: object, context: SimpleNamespace, _parameters: object) -> None:
    context.trace_request_ctx.reused = True


def _told(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"its name cannot be resolved ({error.os_error.strerror or error.os_error})"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            inner = error.__cause__
            return f"TLS failed ({getattr(inner, 'verify_message', '') or getattr(inner, 'reason', '') or inner})"
        case aiohttp.ClientConnectorError():
            return f"it cannot be reached ({error.os_error.strerror or str(error.os_error) or 'it hung up'})"
        case ssl.SSLError():
            return f"TLS failed ({error.reason})"
        case aiohttp.ServerDisconnectedError():
            return "it hung up without an answer"
        case aiohttp.ClientResponseError():
            return f"its answer is not HTTP ({error.message})"
        case _:
            return f"{type(error).__name__}: {error}"
