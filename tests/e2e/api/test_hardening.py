"""What arrives on a socket before it is a request: slow, large, ambiguous, or too much of it. T18, T37, F35."""

import asyncio
import contextlib
import json

import pytest
import pytest_asyncio

from holdfast.api.http import HttpResponse
from holdfast.api.routing import PUBLIC, Route, Routes
from holdfast.api.server.server import bind, serve
from holdfast.api.server.timeouts import DEFAULT_LIMITS, ServerLimits
from holdfast.compose import build_api
from holdfast.model.job import JobFilter, Page
from tests.e2e.api.conftest import ADMIN, Served
from tests.support.eventually import PATIENCE

pytestmark = pytest.mark.databases("sqlite")

AUTH = f"Authorization: Bearer {ADMIN}\r\n".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
JOB = b'{"type": "send"}'


def post(body, *headers, length=True, path=b"/v1/jobs"):
    head = [b"POST " + path + b" HTTP/1.1", b"Host: x", b"Content-Type: application/json", AUTH.strip(), *headers]
    if length:
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Wire:
    """A connection to a node, byte by byte."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    async def send(self, *parts):
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def answer(self):
        """The next answer: status, headers, body; None when the connection was closed instead."""
        async with asyncio.timeout(PATIENCE):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            length = int(headers.get("content-length", 0))
            return int(first.split()[1]), headers, await self.reader.readexactly(length)

    async def rest(self):
        """Everything until the connection is closed."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def statuses(self):
        """All answers until the connection is closed."""
        found = []
        while (answer := await self.answer()) is not None:
            found.append(answer[0])
        return found


@contextlib.asynccontextmanager
async def node(served, limits=DEFAULT_LIMITS):
    """The service behind a socket, with these limits; a way to connect, and a way to stop it."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    up, stop = asyncio.Event(), asyncio.Event()
    answering = asyncio.create_task(serve(served.api, listening, stop=stop, ready=up.set, limits=limits))
    await up.wait()
    wires = []

    async def connect():
        wires.append(Wire(*await asyncio.open_connection("127.0.0.1", port)))
        return wires[-1]

    connect.stop = stop.set
    connect.ended = answering
    try:
        yield connect
    finally:
        for wire in wires:
            wire.writer.close()
        stop.set()
        await answering


@contextlib.asynccontextmanager
async def dripping(connect, wire, *parts):
    """Send the last part over and over on this wire, others being answered in between: nobody waits for who is slow."""
    other = await connect()

    async def drip():
        with contextlib.suppress(ConnectionError):
            await wire.send(*parts[:-1])
            while True:
                await wire.send(parts[-1])
                await other.send(GET)
                assert (await other.answer())[0] == 200

    task = asyncio.create_task(drip())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest_asyncio.fixture
async def connect(served):
    async with node(served) as made:
        yield made


QUICK = ServerLimits(head_timeout_s=0.2, body_timeout_s=0.2, stalled_read_timeout_s=0.5, idle_timeout_s=0.2)
"""So that a test of patience takes none. All else is as it is."""


class TestSlow:
    """T18: whoever is slow is let go, and nobody waits for them."""

    async def test_who_says_nothing_is_closed(self, served):
        async with node(served, QUICK) as connect:
            assert await (await connect()).rest() == b""

    async def test_a_head_has_its_time_however_steadily_it_drips(self, served):
        async with node(served, QUICK) as connect:
            wire = await connect()
            async with dripping(connect, wire, b"GET /healthz HTTP/1.1\r\nX-A: ", b"b"):
                status, headers, body = await wire.answer()
                assert (status, json.loads(body)["code"], headers["connection"]) == (408, "too_slow", "close")
                assert await wire.rest() == b""

    async def test_blank_lines_are_no_request(self, served):
        async with node(served, QUICK) as connect:
            wire = await connect()
            async with dripping(connect, wire, b"\r\n"):
                assert await wire.rest() == b""

    @pytest.mark.parametrize("chunked", [False, True])
    async def test_a_body_has_its_time(self, served, chunked):
        async with node(served, QUICK) as connect:
            wire = await connect()
            length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 100000"
            drop = b"1\r\n \r\n" if chunked else b" "
            async with dripping(connect, wire, post(b"", length, length=False), drop):
                status, _, body = await wire.answer()
                assert (status, json.loads(body)["code"]) == (408, "too_slow")
                assert await wire.rest() == b""

    async def test_a_connection_is_not_kept_for_ever(self, served):
        async with node(served, QUICK) as connect:
            wire = await connect()
            await wire.send(GET)
            assert (await wire.answer())[0] == 200
            assert await wire.rest() == b""

    async def test_who_does_not_read_its_answer_is_cut(self, served):
        large = Route("GET", "/large", PUBLIC, _large, "x", {200: "text/plain"})
        served.api.service = served.api.service._replace(routes=Routes([large]))
        async with node(served, QUICK) as connect:
            wire = await connect()
            wire.writer.transport.pause_reading()
            await wire.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            other = await connect()
            await other.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len((await other.answer())[2]) == 50_000_000
            # More than the kernel holds for a reader that does not read.
            connect.stop()
            async with asyncio.timeout(PATIENCE):
                await connect.ended

    async def test_others_are_served_meanwhile(self, served):
        """500 connections that send a byte now and then, and one that works."""
        async with node(served) as connect:
            slow = [await connect() for _ in range(500)]
            for wire in slow:
                await wire.send(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-")
            wire = await connect()
            for _ in range(50):
                await wire.send(post(JOB))
                assert (await wire.answer())[0] == 201

    async def test_the_limits_are_those_that_are_promised(self):
        assert DEFAULT_LIMITS[:5] == (10, 30, 30, 75, 16_384)


async def _large(_call):
    return HttpResponse(b"x" * 50_000_000, 200, {}, "text/plain")


class TestTooMuch:
    async def test_a_head_is_bounded_in_size(self, connect):
        for request in (
            b"GET /healthz?" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 17_000 + b"\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 300_000,
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(101)) + b"\r\n",
        ):
            wire = await connect()
            with contextlib.suppress(ConnectionError):
                await wire.send(request)
            status, headers, body = await wire.answer()
            assert (status, json.loads(body)["code"], headers["connection"]) == (431, "head_too_large", "close")

    async def test_a_query_that_fits_into_a_head_is_bounded_too(self, connect):
        wire = await connect()
        await wire.send(b"GET /v1/jobs?tag=" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: x\r\n" + AUTH + b"\r\n")
        assert (await wire.answer())[0] == 414

    async def test_a_gigabyte_is_refused_when_it_is_announced_and_when_it_is_not(self, connect):
        """F35: an answer comes before the body has, and it arrives."""
        wire = await connect()
        await wire.send(post(b"", b"Content-Length: 1073741824", length=False))
        status, headers, body = await wire.answer()
        assert (status, json.loads(body)["code"], headers["connection"]) == (413, "too_large", "close")

        wire = await connect()
        await wire.send(post(b"", b"Transfer-Encoding: chunked", length=False))

        async def pour():
            with contextlib.suppress(ConnectionError):
                for _ in range(1_024):
                    await wire.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")

        pouring = asyncio.create_task(pour())
        assert (await wire.answer())[0] == 413
        await wire.rest()
        pouring.cancel()

    async def test_more_connections_than_there_may_be_are_told_to_come_back(self, served):
        """T18. Whether the node lives can be asked all the same."""
        async with node(served, DEFAULT_LIMITS._replace(max_connections=3)) as connect:
            wires = [await connect() for _ in range(3)]
            for wire in wires:
                await wire.send(GET)
                assert (await wire.answer())[0] == 200
            more = await connect()
            await more.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            status, headers, body = await more.answer()
            assert (status, json.loads(body)["code"]) == (503, "crowded")
            assert (headers["retry-after"], headers["connection"]) == ("1", "close")
            assert headers["x-request-id"]
            assert headers["x-content-type-options"] == "nosniff"
            health = await connect()
            await health.send(GET)
            assert (await health.answer())[0] == 200
            many = [await connect() for _ in range(10)]
            await many[-1].send(GET)
            assert await many[-1].answer() is None


HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + AUTH
HIDDEN = b"GET /v1/keys HTTP/1.1\r\nHost: x\r\n" + AUTH + b"\r\n"
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
    "a chunk that ends by half": HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\n" + JOB + b"\n0\n\n" + HIDDEN,
    "a negative chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
}
"""Requests that others may read differently. None of them is one request to us."""

SECOND = {
    "right behind": post(JOB) + HIDDEN,
    "behind one that says it is the last": post(JOB, b"Connection: close") + HIDDEN,
    "behind a body in chunks": post(b"10\r\n" + JOB + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
    + HIDDEN,
    "behind a wish for something else": GET[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + HIDDEN,
    "behind a wish for a websocket": GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + HIDDEN,
    "after what follows the body": post(
        b"10\r\n" + JOB + b"\r\n0\r\nX-A: b\r\n\r\n", b"Transfer-Encoding: chunked", length=False
    )
    + HIDDEN,
}
"""A request behind another one, in the same breath."""


class TestOneAtATime:
    """T37: one answer or none, never two; whatever is behind it is not looked at."""

    @pytest.mark.parametrize("pieces", [1, 2, 5])
    async def test_what_can_be_read_in_two_ways_is_refused(self, connect, served, pieces):
        answers = {}
        for name, request in CORPUS.items():
            wire = await connect()
            size = len(request) // pieces + 1
            with contextlib.suppress(ConnectionError):
                for at in range(0, len(request), size):
                    await wire.send(request[at : at + size])
            answers[name] = await wire.statuses()

        assert {name: found for name, found in answers.items() if found not in ([400], [])} == {}
        assert (await (await served.client()).get("/v1/jobs")).json()["items"] == []

    async def test_a_second_request_is_not_answered(self, connect):
        for name, requests in SECOND.items():
            wire = await connect()
            await wire.send(requests)
            first = await wire.answer()
            assert first[0] in (200, 201), name
            assert first[1]["connection"] == "close", name
            assert await wire.rest() == b"", name

    async def test_a_request_in_the_body_of_another_is_a_body(self, connect):
        wire = await connect()
        await wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN)
        assert (await wire.answer())[2] == b'{"status":"ok"}'
        await wire.send(GET)
        assert (await wire.answer())[2] == b'{"status":"ok"}'

    async def test_requests_after_one_another_are(self, connect):
        wire = await connect()
        for _ in range(3):
            await wire.send(post(JOB))
            status, headers, _ = await wire.answer()
            assert (status, headers.get("connection")) == (201, None)
            await wire.send(b"\r\n", GET[:10], GET[10:])  # some clients send an empty line behind a body
            assert (await wire.answer())[0] == 200

    async def test_a_head_that_came_before_means_what_it_meant(self, connect):
        """Heads are remembered; bodies, and where a request ends, are not."""
        wire = await connect()
        other = post(JOB.replace(b"send", b"call"))
        for request in (post(JOB), other, post(JOB)):
            await wire.send(request)
            status, _, body = await wire.answer()
            assert (status, json.loads(body)["type"]) == (201, "send" if request == post(JOB) else "call")
        await wire.send(other[:-5], other[-5:])
        assert (await wire.answer())[0] == 201
        await wire.send(post(JOB).replace(ADMIN.encode(), b"x" * len(ADMIN)))
        assert (await wire.answer())[0] == 401
        wire = await connect()
        await wire.send(post(JOB) + HIDDEN)
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (201, "close")
        assert await wire.rest() == b""

    async def test_what_follows_the_body_is_no_header(self, connect):
        """A key that comes when the request was judged already is none."""
        wire = await connect()
        await wire.send(
            b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"10\r\n" + JOB + b"\r\n0\r\n" + AUTH + b"\r\n"
        )
        assert (await wire.answer())[0] == 401

    async def test_a_body_in_chunks_is_a_body(self, connect):
        wire = await connect()
        await wire.send(post(b"", b"Transfer-Encoding: chunked", length=False))
        for byte in JOB:
            await wire.send(b"1;name=value\r\n%c\r\n" % byte)
        await wire.send(b"0\r\n\r\n")
        assert (await wire.answer())[0] == 201


class TestManners:
    async def test_who_asks_before_it_sends_is_told_to_go_on(self, connect):
        wire = await connect()
        await wire.send(post(b"", b"Expect: 100-continue", b"Content-Length: 16", length=False))
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(JOB)
        assert (await wire.answer())[0] == 201

    async def test_or_that_it_need_not(self, connect):
        wire = await connect()
        await wire.send(post(b"", b"Expect: 100-continue", b"Content-Length: 99999999", length=False))
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (413, "close")

    async def test_an_answer_before_the_body_is_read_by_who_goes_on_sending(self, connect):
        wire = await connect()
        await wire.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n")
        await wire.send(b"x" * 100_000)
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (404, "close")

    async def test_head_is_get_without_its_body(self, connect):
        wire = await connect()
        await wire.send(GET.replace(b"GET", b"HEAD"))
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 15\r\n" in head
        await wire.send(GET)
        assert (await wire.answer())[2] == b'{"status":"ok"}'

    async def test_options_tells_what_is_possible(self, served):
        client = await served.client(None)
        answer = await client.options("/v1/jobs")
        assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        assert (await client.options("/v1/nothing")).status_code == 404
        refused = await client.put("/v1/jobs")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")

    async def test_one_who_leaves_in_the_middle_leaves_nothing_behind(self, connect, served):
        for request in (post(JOB)[:-4], HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{"):
            wire = await connect()
            await wire.send(request)
            wire.writer.close()
        wire = await connect()
        await wire.send(post(JOB))
        assert (await wire.answer())[0] == 201
        assert len((await (await served.client()).get("/v1/jobs")).json()["items"]) == 1

    async def test_who_was_refused_and_stays_is_closed(self, connect, monkeypatch):
        """Whoever goes on sending is listened to for a moment, so that the refusal is read, and no longer."""
        monkeypatch.setattr("holdfast.api.server.connection._LINGER_TIMEOUT_S", 0.05)
        wire = await connect()
        await wire.send(CORPUS["no host"])
        assert (await wire.answer())[0] == 400

        async with dripping(connect, wire, b"x") as going_on:
            await asyncio.wait_for(going_on, PATIENCE)  # until it can not

    async def test_who_speaks_an_older_version_gets_an_answer_without_chunks(self, connect):
        wire = await connect()
        await wire.send(b"GET /v1/events HTTP/1.0\r\n" + AUTH + b"\r\n")
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert b"connection: close\r\n" in head
        assert b"transfer-encoding" not in head
        assert (await wire.reader.readuntil(b"\n")).startswith((b":", b"event:", b"id:", b"retry:"))

    async def test_a_large_body_arrives_whole_however_it_is_cut(self, connect, served):
        """More than is read ahead: what nobody asked for yet waits outside."""
        jobs = [{"type": "send", "payload": f"{number:04d}" * 250} for number in range(1_000)]
        wire = await connect()
        request = post(json.dumps({"jobs": jobs}).encode(), path=b"/v1/jobs/batch")
        await wire.send(request[:500], request[500:70_000], request[70_000:])
        assert (await wire.answer())[0] == 201
        found = await served.engine.jobs.find(JobFilter(), Page(1_000))
        assert sorted(job.payload for job in found) == sorted(json.dumps(job["payload"]).encode() for job in jobs)

    @pytest.mark.parametrize("path", ["/healthz", "/v1/jobs", "/nowhere", "/docs.css"])
    async def test_an_answer_has_the_same_headers_below_another_application(self, connect, served, path):
        wire = await connect()
        await wire.send(b"GET %b HTTP/1.1\r\nHost: x\r\nX-Request-ID: 7\r\n\r\n" % path.encode())
        status, headers, body = await wire.answer()
        mounted = await (await served.client(None)).get(path, headers={"x-request-id": "7"})
        assert headers.pop("date").endswith(" GMT")
        assert (status, headers, body) == (mounted.status_code, dict(mounted.headers), mounted.content)


class TestStopping:
    """F05: what is under way is answered, and every open connection learns that this was its last answer."""

    async def test_requests_in_progress_are_finished(self, served):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_call):
            begun.set()
            await go_on.wait()
            return HttpResponse({"done": True})

        served.api.service = served.api.service._replace(
            routes=Routes([Route("GET", "/slow", PUBLIC, slow, "x", {200: dict})])
        )
        async with node(served) as connect:
            wire, idle = await connect(), await connect()
            await wire.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            connect.stop()
            assert await idle.rest() == b""  # one that never asked is closed
            go_on.set()
            status, headers, body = await wire.answer()
            assert (status, headers["connection"], body) == (200, "close", b'{"done":true}')
            await connect.ended

    async def test_also_those_that_nobody_waits_for(self, served):
        begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def slow(_call):
            begun.set()
            await go_on.wait()
            ended.set()
            return HttpResponse({"done": True})

        served.api.service = served.api.service._replace(
            routes=Routes([Route("GET", "/slow", PUBLIC, slow, "x", {200: dict})])
        )
        async with node(served) as connect:
            wire = await connect()
            await wire.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            wire.writer.close()
            await wire.writer.wait_closed()
            connect.stop()
            await served.api.service.stopping.wait()
            go_on.set()
            await connect.ended
            assert ended.is_set()

    async def test_a_connection_that_is_kept_open_gets_one_more_answer(self, served):
        async with node(served) as connect:
            wire = await connect()
            ready = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
            await wire.send(ready)
            assert "connection" not in (await wire.answer())[1]
            connect.stop()
            await served.api.service.stopping.wait()
            await wire.send(ready)
            status, headers, body = await wire.answer()
            assert (status, headers["connection"], json.loads(body)["ready"]) == (503, "close", False)
            assert await wire.rest() == b""
            await connect.ended

    async def test_streams_do_not_hold_it_up(self, served: Served):
        async with node(served) as connect:
            wire = await connect()
            await wire.send(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + AUTH + b"\r\n")
            assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            connect.stop()
            assert (await wire.rest()).endswith(b"0\r\n\r\n")
            await connect.ended

    async def test_what_takes_too_long_is_told_so(self, served, monkeypatch):
        monkeypatch.setattr("holdfast.api.server.server.GRACE_TIMEOUT_S", 0.1)
        begun = asyncio.Event()

        async def stuck(_call):
            begun.set()
            await asyncio.Event().wait()

        route = Route("GET", "/stuck", PUBLIC, stuck, "x", {200: dict})
        served.api.service = served.api.service._replace(routes=Routes([route]))
        async with node(served) as connect:
            wire = await connect()
            await wire.send(b"GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            connect.stop()
            status, headers, body = await wire.answer()
            assert (status, json.loads(body)["code"], headers["retry-after"]) == (503, "stopping", "1")


async def test_a_node_is_built_with_the_limit_of_its_settings(settings, engine):
    assert build_api(settings, engine).service.rules.access_log is False
    assert settings.max_connections == DEFAULT_LIMITS.max_connections
