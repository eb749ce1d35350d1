"""The servers that a run brings along: private, on loopback, and really there."""

import socket
from urllib.parse import urlsplit

import apsw
import asyncpg

from tests.support.servers import Server


def _ask_redis(server: Server, *words: str) -> str:
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


def test_redis_answers_and_keeps_strangers_out(redis_server: Server) -> None:
    """Nothing of holdfast needs Redis yet; a run has it at hand all the same."""
    assert _ask_redis(redis_server, "PING") == "+PONG"
    assert redis_server.version.split(".")[0].isdecimal()


async def test_postgresql_confirms_only_what_is_on_disk(postgres_server: Server) -> None:
    connection = await asyncpg.connect(postgres_server.url)
    try:
        settings = {name: await connection.fetchval(f"SHOW {name}") for name in ("fsync", "synchronous_commit")}
    finally:
        await connection.close()
    assert settings == {"fsync": "on", "synchronous_commit": "on"}


def test_sqlite_is_new_enough_to_be_trusted() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
