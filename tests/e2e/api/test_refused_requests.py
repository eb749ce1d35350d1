"""Refused requests without a key: short answers, and no log lines that a client could use to fill a disk."""

import logging

import pytest

from tests.e2e.api.conftest import problem
from tests.e2e.api.raw_http import running_server

SIGN_IN = b"POST /v1/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        (b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",),
        (b"\x16\x03\x01\x02\x00\r\n\r\n",),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",),
        (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", b"abc"),
        (SIGN_IN + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n"),
        (SIGN_IN + b"Content-Length: 5\r\n\r\n", b"abcdefghij"),
        (SIGN_IN + b"Content-Length: 40\r\n\r\n" + b"[" * 40,),
        (SIGN_IN + b"Content-Length: 1\r\n\r\n\xff",),
        (SIGN_IN + b"Content-Length: -1\r\n\r\n",),
        (b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n",),
    ],
    ids=str,
)
async def test_a_refused_request_logs_nothing(served, caplog, parts):
    """T18: a request of 53 bytes must not write a traceback into the log."""
    with caplog.at_level(logging.INFO):
        async with running_server(served) as server:
            connection = await server.connect()
            for part in parts:
                await connection.send(part)
            await connection.response()
    assert [record.getMessage() for record in caplog.records if record.name != "holdfast.api.server"] == []


@pytest.mark.parametrize("host", [b"a b", b"a/b", b"user@a", b"a:b", b"[::1", b"a:123456", b"\xff", b"a\\b", b"a?b"])
async def test_a_malformed_host_is_rejected(served, host):
    async with running_server(served) as server:
        connection = await server.connect()
        await connection.send(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert (await connection.response())[0] == 400


@pytest.mark.parametrize("host", [b"", b"localhost", b"a.example:8080", b"[::1]:80", b"127.0.0.1:", b"xn--a_b-c.local"])
async def test_a_valid_host_is_accepted(served, host):
    async with running_server(served) as server:
        connection = await server.connect()
        await connection.send(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert (await connection.response())[0] == 200


async def test_a_large_body_of_a_sign_in_is_not_read(served):
    """T18: the caller is unknown, so only a small body is buffered."""
    client = await served.client(None)
    problem(await client.post("/v1/sign-in", json={"ticket": "x" * 2_000}), 413, "too_large")


async def test_failed_sign_ins_are_logged_and_throttled(served, caplog):
    client = await served.client(None, address="198.51.100.7")
    with caplog.at_level(logging.WARNING, "holdfast.api"):
        statuses = [(await client.post("/v1/sign-in", json={"ticket": f"guess-{n}"})).status_code for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 10
    assert all(line.startswith("POST /v1/sign-in: authentication failed from 198.51.100.7") for line in lines)
