"""The HTTP server against slow, large, ambiguous and numerous requests, and its shutdown. T18, T37, F35."""

import asyncio
import contextlib
import gc
import json
import weakref

import pytest
import pytest_asyncio

from holdfast.api.http import HttpResponse
from holdfast.api.routing import PUBLIC, Route, Routes
from holdfast.api.server.connection import Connection
from holdfast.api.server.connection_set import ConnectionSet
from holdfast.api.server.timeouts import DEFAULT_LIMITS, ServerLimits
from holdfast.compose import build_api
from holdfast.model.job import JobFilter, Page
from tests.e2e.api.conftest import ADMIN, Served
from tests.e2e.api.raw_http import AUTHORIZATION, GET, JOB, post, running_server
from tests.support.eventually import TIMEOUT_S, eventually

pytestmark = pytest.mark.databases("sqlite")


@contextlib.asynccontextmanager
async def dripping(server, connection, *parts):
    """Send the last part repeatedly, and check that another connection gets responses in between."""
    other = await server.connect()

    async def drip():
        with contextlib.suppress(ConnectionError):
            await connection.send(*parts[:-1])
            while True:
                await connection.send(parts[-1])
                await other.send(GET)
                assert (await other.response())[0] == 200

    task = asyncio.create_task(drip())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest_asyncio.fixture
async def server(served):
    async with running_server(served) as server:
        yield server


QUICK = ServerLimits(head_timeout_s=0.2, body_timeout_s=0.2, stalled_read_timeout_s=0.5, idle_timeout_s=0.2)
"""Short timeouts, so that tests of timeouts are quick; the other limits are the defaults."""


class TestSlow:
    """T18: the server closes slow connections, and they do not delay other clients."""

    async def test_a_connection_that_sends_nothing_is_closed(self, served):
        async with running_server(served, QUICK) as server:
            assert await (await server.connect()).rest() == b""

    async def test_a_head_that_arrives_byte_by_byte_times_out(self, served):
        async with running_server(served, QUICK) as server:
            connection = await server.connect()
            async with dripping(server, connection, b"GET /healthz HTTP/1.1\r\nX-A: ", b"b"):
                status, headers, body = await connection.response()
                assert (status, json.loads(body)["code"], headers["connection"]) == (408, "too_slow", "close")
                assert await connection.rest() == b""

    async def test_blank_lines_do_not_extend_the_head_timeout(self, served):
        async with running_server(served, QUICK) as server:
            connection = await server.connect()
            async with dripping(server, connection, b"\r\n"):
                assert await connection.rest() == b""

    @pytest.mark.parametrize("chunked", [False, True])
    async def test_a_body_that_arrives_byte_by_byte_times_out(self, served, chunked):
        async with running_server(served, QUICK) as server:
            connection = await server.connect()
            length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 100000"
            drop = b"1\r\n \r\n" if chunked else b" "
            async with dripping(server, connection, post(b"", length, length=False), drop):
                status, _, body = await connection.response()
                assert (status, json.loads(body)["code"]) == (408, "too_slow")
                assert await connection.rest() == b""

    async def test_an_idle_keep_alive_connection_is_closed(self, served):
        async with running_server(served, QUICK) as server:
            connection = await server.connect()
            await connection.send(GET)
            assert (await connection.response())[0] == 200
            assert await connection.rest() == b""

    async def test_a_client_that_does_not_read_its_response_is_disconnected(self, served):
        large = Route("GET", "/large", PUBLIC, _large, "x", {200: "text/plain"})
        served.api.service = served.api.service._replace(routes=Routes([large]))
        async with running_server(served, QUICK) as server:
            connection = await server.connect()
            connection.writer.transport.pause_reading()
            await connection.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            other = await server.connect()
            await other.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len((await other.response())[2]) == 50_000_000
            # The response is larger than the socket buffers, so part of it is still pending in the server.
            server.stop()
            async with asyncio.timeout(TIMEOUT_S):
                await server.ended

    async def test_slow_connections_do_not_delay_other_clients(self, served):
        """500 connections have sent half a head, and another one submits jobs."""
        async with running_server(served) as server:
            slow = [await server.connect() for _ in range(500)]
            for connection in slow:
                await connection.send(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-")
            connection = await server.connect()
            for _ in range(50):
                await connection.send(post(JOB))
                assert (await connection.response())[0] == 201

    async def test_the_default_limits_are_the_documented_ones(self):
        assert DEFAULT_LIMITS[:5] == (10, 30, 30, 75, 16_384)


async def _large(_call):
    return HttpResponse(b"x" * 50_000_000, 200, {}, "text/plain")


class TestTooLarge:
    async def test_a_large_head_is_rejected(self, server):
        for request in (
            b"GET /healthz?" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 17_000 + b"\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 300_000,
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(101)) + b"\r\n",
        ):
            connection = await server.connect()
            with contextlib.suppress(ConnectionError):
                await connection.send(request)
            status, headers, body = await connection.response()
            assert (status, json.loads(body)["code"], headers["connection"]) == (431, "head_too_large", "close")

    async def test_a_long_query_string_is_rejected(self, server):
        connection = await server.connect()
        await connection.send(
            b"GET /v1/jobs?tag=" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: x\r\n" + AUTHORIZATION + b"\r\n"
        )
        assert (await connection.response())[0] == 414

    async def test_a_gigabyte_body_is_rejected_with_and_without_a_content_length(self, server):
        """F35: the client gets the response although it has not sent the whole body."""
        connection = await server.connect()
        await connection.send(post(b"", b"Content-Length: 1073741824", length=False))
        status, headers, body = await connection.response()
        assert (status, json.loads(body)["code"], headers["connection"]) == (413, "too_large", "close")

        connection = await server.connect()
        await connection.send(post(b"", b"Transfer-Encoding: chunked", length=False))

        async def send_body():
            with contextlib.suppress(ConnectionError):
                for _ in range(1_024):
                    await connection.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")

        sending = asyncio.create_task(send_body())
        assert (await connection.response())[0] == 413
        await connection.rest()
        sending.cancel()

    @pytest.mark.parametrize(
        "framing",
        [
            b"0\r\nX-A: " + b"a" * 20_000_000,
            b"0\r\n" + b"X-A: b\r\n" * 4_000 + b"\r\n",
            b"10;" + b"a" * 300_000 + b"\r\n" + JOB + b"\r\n0\r\n\r\n",
            (b"1;" + b"a" * 30 + b"\r\n \r\n") * 100_000,
        ],
        ids=["trailer without an end", "many trailers", "extension of a chunk", "extensions of many chunks"],
    )
    async def test_a_request_with_large_trailers_or_chunk_extensions_is_rejected(self, server, framing):
        """T18, F35: without a key, and before the parser has buffered them."""
        connection = await server.connect()
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + AUTHORIZATION
        sending = asyncio.create_task(connection.send(head + b"Transfer-Encoding: chunked\r\n\r\n", framing))
        status, headers, body = await connection.response()
        assert (status, json.loads(body)["code"], headers["connection"]) == (431, "framing_too_large", "close")
        connection.writer.transport.abort()
        await asyncio.gather(sending, return_exceptions=True)

    async def test_a_body_of_many_small_chunks_with_short_trailers_is_accepted(self, server):
        job = b'{"type": "send", "payload": "%b"}' % (b"a" * 20_000)
        chunks = b"".join(b"1;a=b\r\n%c\r\n" % byte for byte in job[:2_000]) + b"%x\r\n%b\r\n" % (
            len(job) - 2_000,
            job[2_000:],
        )
        connection = await server.connect()
        await connection.send(
            post(chunks + b"0\r\nX-A: %b\r\n\r\n" % (b"a" * 4_000), b"Transfer-Encoding: chunked", length=False)
        )
        assert (await connection.response())[0] == 201

    async def test_a_closed_connection_is_freed_without_the_garbage_collector(self, served, monkeypatch):
        """F35: input buffered for a rejected request does not wait for the next collection."""
        made = []

        def connect(connections):
            connection = Connection(connections)
            made.append(weakref.ref(connection))
            return connection

        monkeypatch.setattr("holdfast.api.server.server.Connection", connect)
        gc.collect()
        gc.disable()
        try:
            async with running_server(served) as server:
                for request in (GET, post(JOB), b"GET /healthz HTTP/1.1\r\nX-A: b", b"nonsense\r\n\r\n"):
                    connection = await server.connect()
                    await connection.send(request)
                    if request in (GET, post(JOB)):
                        assert (await connection.response())[0] in (200, 201)
                    connection.writer.close()
                    await connection.rest()

                async def freed():
                    return [ref() for ref in made] == [None] * 4

                await eventually(freed)
        finally:
            gc.enable()

    async def test_requests_above_the_connection_limit_get_503_if_no_connection_is_idle(self, served):
        """T18. `/healthz` works above the limit too, and above twice the limit connections are dropped."""
        async with running_server(served, DEFAULT_LIMITS._replace(max_connections=3)) as server:
            for _ in range(3):
                await stream_events(server)
            more = await server.connect()
            await more.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            status, headers, body = await more.response()
            assert (status, json.loads(body)["code"]) == (503, "crowded")
            assert (headers["retry-after"], headers["connection"]) == ("1", "close")
            assert headers["x-request-id"]
            assert headers["x-content-type-options"] == "nosniff"
            health = await server.connect()
            await health.send(GET)
            assert (await health.response())[0] == 200

    async def test_the_longest_idle_connection_is_closed_for_a_new_one(self, served):
        """T18: connections without a key cannot keep others out."""
        async with running_server(served, DEFAULT_LIMITS._replace(max_connections=3)) as server:
            stream = await stream_events(server)
            idle = [await server.connect() for _ in range(2)]
            for connection in reversed(idle):
                await connection.send(GET)
                assert (await connection.response())[0] == 200
            silent = await server.connect()
            assert await idle[1].rest() == b""
            other = await server.connect()
            assert await idle[0].rest() == b""
            await server.connect()
            assert await silent.rest() == b""
            await other.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await other.response())[0] == 200
            assert not stream.reader.at_eof()

    async def test_an_address_with_many_connections_loses_its_idle_ones_first(self, served):
        """T18: a flood from one address does not close idle connections of others."""
        connections = ConnectionSet(served.api, DEFAULT_LIMITS._replace(max_connections=8))
        quiet = FakeConnection("192.0.2.1")
        flood = [FakeConnection("198.51.100.9") for _ in range(50)]
        for connection in (quiet, *flood):
            connections.add(connection)
            for evicted in [each for each in connections.open if each.evicted]:
                connections.remove(evicted)
        assert not quiet.evicted
        assert [each.evicted for each in flood] == [True] * 43 + [False] * 7

    async def test_clients_that_do_not_read_share_a_bounded_amount_of_memory(self, served):
        """F35: the longest stalled connections of a caller are aborted, and those of other callers are not."""
        large = Route("GET", "/large/{caller}", PUBLIC, _large_page, "x", {200: "text/plain"})
        served.api.service = served.api.service._replace(routes=Routes([large]))
        limits = DEFAULT_LIMITS._replace(max_unsent_bytes=20_000_000, max_node_unsent_bytes=60_000_000)
        async with running_server(served, limits) as server:
            stalled = {}
            for caller in (b"ann", b"bob"):
                for number in range(5):
                    connection = await server.connect()
                    connection.writer.transport.pause_reading()
                    await connection.send(b"GET /large/%b HTTP/1.1\r\nHost: x\r\n\r\n" % caller)
                    stalled[caller, number] = connection
            reader = await server.connect()
            await reader.send(b"GET /large/reader HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len((await reader.response())[2]) == 10_000_000
            complete = {}
            for key, connection in stalled.items():
                connection.writer.transport.resume_reading()
                complete[key] = len(await read_all(connection, 10_000_000)) >= 10_000_000
        for caller in (b"ann", b"bob"):
            assert 1 <= sum(complete[caller, number] for number in range(5)) < 5


async def stream_events(server):
    """Open a connection that is busy with an event stream."""
    connection = await server.connect()
    await connection.send(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + AUTHORIZATION + b"\r\n")
    assert b" 200 " in await connection.reader.readuntil(b"\r\n\r\n")
    return connection


async def read_all(connection, size):
    """Return what arrives, at least `size` bytes unless the connection ends."""
    body = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(TIMEOUT_S):
            while len(body) < size and (part := await connection.reader.read(1_000_000)):
                body += part
    return body


class FakeConnection:
    """Connection that only counts evictions."""

    def __init__(self, address):
        self.address = address
        self.evicted = False

    def evict(self):
        self.evicted = True


async def _large_page(call):
    call.request.caller = call.path["caller"]
    return HttpResponse(b"x" * 10_000_000, 200, {}, "text/plain")


HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + AUTHORIZATION
HIDDEN = b"GET /v1/keys HTTP/1.1\r\nHost: x\r\n" + AUTHORIZATION + b"\r\n"
CORPUS = {
    "both lengths": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "both lengths, the other way": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": HEAD + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + HIDDEN,
    "the same length twice": HEAD + b"Content-Length: 16\r\nContent-Length: 16\r\n\r\n" + JOB,
    "a list of lengths": HEAD + b"Content-Length: 16, 16\r\n\r\n" + JOB,
    "a length with a sign": HEAD + b"Content-Length: +16\r\n\r\n" + JOB,
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n" + JOB,
    "a length in hexadecimal": HEAD + b"Content-Length: 0x10\r\n\r\n" + JOB,
    "a length beyond 64 bits": HEAD + b"Content-Length: 18446744073709551632\r\n\r\n" + JOB,
    "a length with a space in it": HEAD + b"Content-Length: 1 6\r\n\r\n" + JOB,
    "a space before the colon": HEAD + b"Content-Length : 16\r\n\r\n" + JOB,
    "a space before the colon of the coding": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked and something after it": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "something before chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked and identity": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a vertical tab before chunked": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a coding in HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a folded coding": HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a folded header": HEAD + b"X-A: b\r\n c\r\nContent-Length: 16\r\n\r\n" + JOB,
    "a folded header, by a tab": HEAD + b"X-A: b\r\n\tc\r\nContent-Length: 16\r\n\r\n" + JOB,
    "a header that begins with a space": b"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "a bare line feed in a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\nX-B: c\r\n\r\n",
    "a bare carriage return": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\rX-B: c\r\n\r\n",
    "a NUL in a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n",
    "a NUL in the path": b"GET /healthz\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
    "a header without a colon": b"GET /healthz HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "a name with a bracket": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX[A]: b\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "a version there is not": b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
    "a later version": b"GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "nonsense": b"\xff\xfe\x00 nonsense\r\n\r\n",
    "a method there is not": b"BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method in small letters": b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces": b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes in the path": b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "no path": b"GET HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT evil:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a chunk size that is none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + HIDDEN,
    "a chunk size with a sign": HEAD + b"Transfer-Encoding: chunked\r\n\r\n+10\r\n" + JOB + b"\r\n0\r\n\r\n",
    "a chunk size with a prefix": HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x10\r\n" + JOB + b"\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": HEAD + b"Transfer-Encoding: chunked\r\n\r\n10000000000000010\r\n" + JOB,
    "a chunk that is longer than it says": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n" + JOB + b"\r\n0\r\n\r\n",
    "a chunk with bare line feeds": HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\n" + JOB + b"\n0\n\n" + HIDDEN,
    "a negative chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
}
"""Requests that another parser may read differently; the server must not handle any of them."""

SECOND = {
    "after a body with a length": post(JOB) + HIDDEN,
    "after a request with Connection: close": post(JOB, b"Connection: close") + HIDDEN,
    "after a chunked body": post(b"10\r\n" + JOB + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
    + HIDDEN,
    "after an upgrade to h2c": GET[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + HIDDEN,
    "after an upgrade to websocket": GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + HIDDEN,
    "after trailers": post(b"10\r\n" + JOB + b"\r\n0\r\nX-A: b\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
    + HIDDEN,
}
"""Two pipelined requests, sent at once."""


class TestSmuggling:
    """T37: the server handles at most one request of an ambiguous or pipelined input."""

    @pytest.mark.parametrize("pieces", [1, 2, 5])
    async def test_ambiguous_requests_are_rejected(self, server, served, pieces):
        statuses = {}
        for name, request in CORPUS.items():
            connection = await server.connect()
            size = len(request) // pieces + 1
            with contextlib.suppress(ConnectionError):
                for at in range(0, len(request), size):
                    await connection.send(request[at : at + size])
            statuses[name] = await connection.statuses()

        assert {name: found for name, found in statuses.items() if found not in ([400], [])} == {}
        assert (await (await served.client()).get("/v1/jobs")).json()["items"] == []

    async def test_a_pipelined_request_gets_no_response(self, server):
        for name, requests in SECOND.items():
            connection = await server.connect()
            await connection.send(requests)
            first = await connection.response()
            assert first[0] in (200, 201), name
            assert first[1]["connection"] == "close", name
            assert await connection.rest() == b"", name

    async def test_a_request_inside_a_body_is_part_of_the_body(self, server):
        connection = await server.connect()
        await connection.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN)
        assert (await connection.response())[2] == b'{"status":"ok"}'
        await connection.send(GET)
        assert (await connection.response())[2] == b'{"status":"ok"}'

    async def test_a_keep_alive_connection_serves_several_requests(self, server):
        connection = await server.connect()
        for _ in range(3):
            await connection.send(post(JOB))
            status, headers, _ = await connection.response()
            assert (status, headers.get("connection")) == (201, None)
            await connection.send(b"\r\n", GET[:10], GET[10:])  # some clients send an empty line after a body
            assert (await connection.response())[0] == 200

    async def test_a_cached_head_is_handled_like_a_parsed_one(self, server):
        """The cache holds the head only: bodies, authentication and the end of the request are checked every time."""
        connection = await server.connect()
        other = post(JOB.replace(b"send", b"call"))
        for request in (post(JOB), other, post(JOB)):
            await connection.send(request)
            status, _, body = await connection.response()
            assert (status, json.loads(body)["type"]) == (201, "send" if request == post(JOB) else "call")
        await connection.send(other[:-5], other[-5:])
        assert (await connection.response())[0] == 201
        await connection.send(post(JOB).replace(ADMIN.encode(), b"x" * len(ADMIN)))
        assert (await connection.response())[0] == 401
        connection = await server.connect()
        await connection.send(post(JOB) + HIDDEN)
        status, headers, _ = await connection.response()
        assert (status, headers["connection"]) == (201, "close")
        assert await connection.rest() == b""

    async def test_trailers_are_not_headers(self, server):
        """An Authorization trailer does not authenticate the request."""
        connection = await server.connect()
        await connection.send(
            b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"10\r\n" + JOB + b"\r\n0\r\n" + AUTHORIZATION + b"\r\n"
        )
        assert (await connection.response())[0] == 401

    async def test_a_chunked_body_is_decoded(self, server):
        connection = await server.connect()
        await connection.send(post(b"", b"Transfer-Encoding: chunked", length=False))
        for byte in JOB:
            await connection.send(b"1;name=value\r\n%c\r\n" % byte)
        await connection.send(b"0\r\n\r\n")
        assert (await connection.response())[0] == 201


class TestProtocol:
    async def test_a_client_that_expects_100_continue_gets_it(self, server):
        connection = await server.connect()
        await connection.send(post(b"", b"Expect: 100-continue", b"Content-Length: 16", length=False))
        assert await connection.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await connection.send(JOB)
        assert (await connection.response())[0] == 201

    async def test_an_oversized_body_is_rejected_instead_of_100_continue(self, server):
        connection = await server.connect()
        await connection.send(post(b"", b"Expect: 100-continue", b"Content-Length: 99999999", length=False))
        status, headers, _ = await connection.response()
        assert (status, headers["connection"]) == (413, "close")

    async def test_a_client_that_is_still_sending_can_read_an_early_response(self, server):
        connection = await server.connect()
        await connection.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n")
        await connection.send(b"x" * 100_000)
        status, headers, _ = await connection.response()
        assert (status, headers["connection"]) == (404, "close")

    async def test_head_returns_the_headers_of_get(self, server):
        connection = await server.connect()
        await connection.send(GET.replace(b"GET", b"HEAD"))
        head = await connection.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 15\r\n" in head
        await connection.send(GET)
        assert (await connection.response())[2] == b'{"status":"ok"}'

    async def test_options_lists_the_allowed_methods(self, served):
        client = await served.client(None)
        answer = await client.options("/v1/jobs")
        assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        assert (await client.options("/v1/nothing")).status_code == 404
        refused = await client.put("/v1/jobs")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")

    async def test_a_client_that_disconnects_in_the_middle_submits_nothing(self, server, served):
        for request in (post(JOB)[:-4], HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{"):
            connection = await server.connect()
            await connection.send(request)
            connection.writer.close()
        connection = await server.connect()
        await connection.send(post(JOB))
        assert (await connection.response())[0] == 201
        assert len((await (await served.client()).get("/v1/jobs")).json()["items"]) == 1

    async def test_a_rejected_client_that_keeps_sending_is_disconnected(self, server, monkeypatch):
        """The server discards input for the linger timeout, so that the client can read the response, then closes."""
        monkeypatch.setattr("holdfast.api.server.connection._LINGER_TIMEOUT_S", 0.05)
        connection = await server.connect()
        await connection.send(CORPUS["no host"])
        assert (await connection.response())[0] == 400

        async with dripping(server, connection, b"x") as sending:
            await asyncio.wait_for(sending, TIMEOUT_S)  # ends when the connection is closed

    async def test_an_http_1_0_client_gets_a_stream_without_chunked_encoding(self, server):
        connection = await server.connect()
        await connection.send(b"GET /v1/events HTTP/1.0\r\n" + AUTHORIZATION + b"\r\n")
        head = await connection.reader.readuntil(b"\r\n\r\n")
        assert b"connection: close\r\n" in head
        assert b"transfer-encoding" not in head
        assert (await connection.reader.readuntil(b"\n")).startswith((b":", b"event:", b"id:", b"retry:"))

    async def test_a_large_body_arrives_complete(self, server, served):
        """The body is larger than the read buffer, so that reading pauses and resumes."""
        jobs = [{"type": "send", "payload": f"{number:04d}" * 250} for number in range(1_000)]
        connection = await server.connect()
        request = post(json.dumps({"jobs": jobs}).encode(), path=b"/v1/jobs/batch")
        await connection.send(request[:500], request[500:70_000], request[70_000:])
        assert (await connection.response())[0] == 201
        found = await served.engine.jobs.find(JobFilter(), Page(1_000))
        assert sorted(job.payload for job in found) == sorted(json.dumps(job["payload"]).encode() for job in jobs)

    @pytest.mark.parametrize("path", ["/healthz", "/v1/jobs", "/nowhere", "/docs.css"])
    async def test_the_asgi_application_sends_the_same_response(self, server, served, path):
        connection = await server.connect()
        await connection.send(b"GET %b HTTP/1.1\r\nHost: x\r\nX-Request-ID: 7\r\n\r\n" % path.encode())
        status, headers, body = await connection.response()
        mounted = await (await served.client(None)).get(path, headers={"x-request-id": "7"})
        assert headers.pop("date").endswith(" GMT")
        assert (status, headers, body) == (mounted.status_code, dict(mounted.headers), mounted.content)


class TestShutdown:
    """F05: requests in progress get their responses, and the last response of a connection says `close`."""

    async def test_requests_in_progress_are_finished(self, served):
        started, proceed = asyncio.Event(), asyncio.Event()

        async def slow(_call):
            started.set()
            await proceed.wait()
            return HttpResponse({"done": True})

        served.api.service = served.api.service._replace(
            routes=Routes([Route("GET", "/slow", PUBLIC, slow, "x", {200: dict})])
        )
        async with running_server(served) as server:
            connection, idle = await server.connect(), await server.connect()
            await connection.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await started.wait()
            server.stop()
            assert await idle.rest() == b""  # a connection without a request is closed
            proceed.set()
            status, headers, body = await connection.response()
            assert (status, headers["connection"], body) == (200, "close", b'{"done":true}')
            await server.ended

    async def test_requests_of_disconnected_clients_are_finished(self, served):
        started, proceed, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def slow(_call):
            started.set()
            await proceed.wait()
            ended.set()
            return HttpResponse({"done": True})

        served.api.service = served.api.service._replace(
            routes=Routes([Route("GET", "/slow", PUBLIC, slow, "x", {200: dict})])
        )
        async with running_server(served) as server:
            connection = await server.connect()
            await connection.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await started.wait()
            connection.writer.close()
            await connection.writer.wait_closed()
            server.stop()
            await served.api.service.stopping.wait()
            proceed.set()
            await server.ended
            assert ended.is_set()

    async def test_a_keep_alive_connection_gets_one_more_response(self, served):
        async with running_server(served) as server:
            connection = await server.connect()
            ready = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
            await connection.send(ready)
            assert "connection" not in (await connection.response())[1]
            server.stop()
            await served.api.service.stopping.wait()
            await connection.send(ready)
            status, headers, body = await connection.response()
            assert (status, headers["connection"], json.loads(body)["ready"]) == (503, "close", False)
            assert await connection.rest() == b""
            await server.ended

    async def test_event_streams_end(self, served: Served):
        async with running_server(served) as server:
            connection = await server.connect()
            await connection.send(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + AUTHORIZATION + b"\r\n")
            assert (await connection.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            server.stop()
            assert (await connection.rest()).endswith(b"0\r\n\r\n")
            await server.ended

    async def test_a_request_that_takes_too_long_gets_503(self, served, monkeypatch):
        monkeypatch.setattr("holdfast.api.server.server.GRACE_TIMEOUT_S", 0.1)
        started = asyncio.Event()

        async def stuck(_call):
            started.set()
            await asyncio.Event().wait()

        route = Route("GET", "/stuck", PUBLIC, stuck, "x", {200: dict})
        served.api.service = served.api.service._replace(routes=Routes([route]))
        async with running_server(served) as server:
            connection = await server.connect()
            await connection.send(b"GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n")
            await started.wait()
            server.stop()
            status, headers, body = await connection.response()
            assert (status, json.loads(body)["code"], headers["retry-after"]) == (503, "stopping", "1")


async def test_the_default_connection_limit_is_that_of_the_settings(settings, engine):
    assert build_api(settings, engine).service.rules.access_log is False
    assert settings.max_connections == DEFAULT_LIMITS.max_connections
