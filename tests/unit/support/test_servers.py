"""Private test servers that a test run starts on the loopback interface."""

import socket
from urllib.parse import urlsplit

import apsw
import asyncpg

from tests.support.servers import Server


def _query_redis(server: Server, *words: str) -> str:
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        stream = connection.makefile("rb")
        if address.password:
            connection.sendall(f"AUTH {address.password}\r\n".encode())
            assert stream.readline() == b"+OK\r\n"
        connection.sendall(" ".join(words).encode() + b"\r\n")
        return stream.readline().decode().strip()


def test_redis_responds(redis_server: Server) -> None:
    assert _query_redis(redis_server, "PING") == "+PONG"
    assert redis_server.version.split(".")[0].isdecimal()


async def test_postgresql_flushes_to_disk_before_it_confirms_a_commit(postgres_server: Server) -> None:
    connection = await asyncpg.connect(postgres_server.url)
    try:
        settings = {name: await connection.fetchval(f"SHOW {name}") for name in ("fsync", "synchronous_commit")}
    finally:
        await connection.close()
    assert settings == {"fsync": "on", "synchronous_commit": "on"}


def test_sqlite_has_the_required_version() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
