"""Compare HTTP clients on the requests that webhooks and remote workers send: small POSTs to one local server.

    python bench/http_clients.py            # needs httpx2, which the tests install

The clients alternate. Each line is one round: requests per second, and CPU of this process per request, which includes
the minimal server.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import httpcore2
import httpx2

from holdfast.cli.event_loop import new_loop

REQUESTS = 4_000
IN_FLIGHT = 16
ROUNDS = 4
BODY = b'{"x":1}' * 20
HEADERS = {"content-type": "application/json", "webhook-id": "x" * 30, "webhook-signature": "v1," + "y" * 44}
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Send = Callable[[], Awaitable[object]]


class Server(asyncio.Protocol):
    """Responds to each request as soon as its body is complete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Respond to complete requests."""
        self._received += data
        while True:
            _, separator, body = self._received.partition(b"\r\n\r\n")
            if not separator or len(body) < len(BODY):
                return
            self._received = body[len(BODY) :]
            self._transport.write(RESPONSE)


async def measure(name: str, send: Send) -> None:
    """Send all requests and print the rates."""
    left = iter(range(REQUESTS))

    async def caller() -> None:
        for _ in left:
            await send()

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[caller() for _ in range(IN_FLIGHT)])
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"  {name:<10} {REQUESTS / took:>7,.0f} requests/s   CPU {used / REQUESTS * 1e6:.0f} µs")


async def main() -> None:
    """Alternate the clients."""
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        httpx2.AsyncClient(limits=limits) as client,
        httpcore2.AsyncConnectionPool(max_connections=None, max_keepalive_connections=100) as pool,
    ):

        async def by_aiohttp() -> None:
            async with session.request("POST", url, data=BODY, headers=HEADERS) as response:
                await response.read()

        async def by_httpx2() -> None:
            await client.request("POST", url, content=BODY, headers=HEADERS)

        async def by_httpcore2() -> None:
            headers = {**HEADERS, "host": "127.0.0.1", "content-length": str(len(BODY))}
            async with pool.stream("POST", url, content=BODY, headers=headers) as response:
                await response.aread()

        for number in range(ROUNDS):
            print(f"round {number + 1}")
            for name, send in (("aiohttp", by_aiohttp), ("httpx2", by_httpx2), ("httpcore2", by_httpcore2)):
                await measure(name, send)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
