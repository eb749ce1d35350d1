"""Connection to MySQL or MariaDB that sends several statements in one message."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import asyncmy
from asyncmy.constants import CLIENT, CR
from asyncmy.errors import OperationalError

from holdfast.errors import Misconfigured, Rejected
from holdfast.store.mysql.url import SETTING, MysqlAddress
from holdfast.store.sql.codec import Row

STATEMENT_TIMEOUT_S = 30.0
"""Timeout of a statement on the server; MySQL applies it to reads only."""

MESSAGE_TIMEOUT_S = STATEMENT_TIMEOUT_S + 5
"""Timeout of a message, after which the connection is closed."""

_CONNECT_TIMEOUT_S = 10.0
_LOCK_WAIT_TIMEOUT_S = 5
"""Timeout of a row lock, after which the whole transaction is retried."""

_MAX_IDLE_S = 60.0
"""Idle time after which a connection is not reused: firewalls drop idle ones silently."""

IDLE_IN_TRANSACTION_TIMEOUT_S = 5
"""Timeout of an idle transaction on the server.

A silent client may hold a lock that the recovery of its own jobs waits for, and the server would keep a connection that
died silently for hours.
"""

_PACKET_RESERVE_BYTES = 1024
_MIN_VERSIONS = {"mariadb": (10, 6, 0), "mysql": (8, 0, 1)}

# Reject values that would be truncated or converted, whatever the mode of the server.
_SQL_MODE = "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO"


class Result(NamedTuple):
    """Result of a statement: its rows, or the number of rows it matched."""

    rows: Sequence[Row]
    matched: Any


class ServerVersion(NamedTuple):
    """Name and version of the server."""

    name: str
    version: str

    @classmethod
    def read(cls, greeting: str) -> Self:
        """Parse the version in the server's greeting; raise `Misconfigured` if it is too old."""
        # MariaDB may prefix 5.5.5- so that old replicas accept it.
        text = greeting.removeprefix("5.5.5-")
        name = "mariadb" if "mariadb" in text.lower() else "mysql"
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
        if found is None:
            raise Misconfigured(
                f"{SETTING}: the server reports version {greeting!r}, which is neither MariaDB nor MySQL"
            )
        minimum = _MIN_VERSIONS[name]
        if tuple(map(int, found.groups())) < minimum:
            required = ".".join(map(str, minimum))
            raise Misconfigured(
                f"{SETTING}: {name} {found.group()} is too old, because it lacks SKIP LOCKED: use {required} or newer"
            )
        return cls(name, found.group())

    @property
    def statement_limit(self) -> str:
        """Name of the server variable for the statement timeout; 0 is no limit."""
        return "max_statement_time" if self.name == "mariadb" else "max_execution_time"


class MysqlConnection:
    """Connection with the session settings that our statements rely on."""

    def __init__(self, connection: "asyncmy.Connection", server: ServerVersion, max_message_bytes: int) -> None:
        self.server = server
        self.max_message_bytes = max_message_bytes
        self.messages_sent = 0
        self._connection = connection
        self._cursor = connection.cursor()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.opened_at = self._last_used = self._loop.time()

    @classmethod
    async def connect(
        cls, address: MysqlAddress, *, idle_in_transaction: int | None = IDLE_IN_TRANSACTION_TIMEOUT_S
    ) -> Self:
        """Connect; raise driver errors.

        Args:
            address: Server and credentials.
            idle_in_transaction: Timeout of idle transactions in seconds; None if the caller sets its own.
        """
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                connection = await asyncmy.connect(
                    **address.arguments(),
                    charset="utf8mb4",
                    autocommit=True,
                    connect_timeout=_CONNECT_TIMEOUT_S,
                    # Count matched rows instead of changed ones: a renewal that writes an equal value must count.
                    client_flag=CLIENT.FOUND_ROWS,
                    program_name="holdfast",
                )
        except RuntimeError as error:  # the driver raises this for a connection that was reset immediately
            raise OperationalError(CR.CR_SERVER_LOST, f"the server reset a new connection ({error})") from error
        try:
            server = ServerVersion.read(connection.get_server_info())
            opened = cls(connection, server, 1024 * 1024)
            # Transactions set their own isolation level; this one applies to statements outside of them.
            settings, packet = await opened.send(
                f"SET SESSION {_session(server, idle_in_transaction)}", "SELECT @@max_allowed_packet"
            )
            del settings
        except BaseException:
            connection.close()
            raise
        opened.max_message_bytes = int(packet.rows[0][0]) - _PACKET_RESERVE_BYTES
        return opened

    def usable(self) -> bool:
        """Return True if the connection can be reused: apparently open and used recently."""
        if self._closed or not self._connection.connected:
            return False
        # The driver's pool checks this too: the event loop has seen that the server closed the connection.
        if getattr(self._connection, "_stream_broken", False):
            return False
        return self._loop.time() - self._last_used < _MAX_IDLE_S

    @property
    def in_transaction(self) -> bool:
        """True if a transaction is open, according to the last response."""
        return bool(self._connection.get_transaction_status())

    def format(self, sql: str, args: Sequence[Any]) -> str:
        """Return a caller's statement with its arguments filled in by the driver."""
        return str(self._cursor.mogrify(sql, args)) if args else sql

    async def send(self, *statements: str, timeout: float = MESSAGE_TIMEOUT_S) -> list[Result]:
        """Run statements in order, in as few messages as possible; return their results.

        Stops at the first failure; earlier statements remain in effect, within the transaction if one is open.
        """
        results: list[Result] = []
        for message in self._messages(statements):
            self.messages_sent += 1
            try:
                async with asyncio.timeout(timeout):
                    await self._run(message, results)
            except BaseException as error:
                if not isinstance(error, asyncmy.errors.MySQLError):
                    self.close()  # the response was not read completely
                raise
        self._last_used = self._loop.time()
        return results

    def close(self) -> None:
        """Close the connection immediately; the server rolls back its transaction."""
        self._closed = True
        self._connection.close()

    async def quit(self) -> None:
        """Close the connection in an orderly way."""
        try:
            async with asyncio.timeout(1):
                await self._connection.ensure_closed()
        except (OSError, TimeoutError, OperationalError):
            self.close()

    async def _run(self, message: str, results: list[Result]) -> None:
        cursor = self._cursor
        await cursor.execute(message)
        results.append(Result(await cursor.fetchall(), cursor.rowcount))
        while await cursor.nextset():
            results.append(Result(await cursor.fetchall(), cursor.rowcount))

    def _messages(self, statements: Sequence[str]) -> list[str]:
        messages: list[str] = []
        parts: list[str] = []
        size = 0
        for statement in statements:
            length = len(statement) + 1  # ASCII: other text is written in hexadecimal
            if length > self.max_message_bytes:
                raise Rejected(
                    f"a statement of {length} bytes is larger than the database server accepts "
                    f"(max_allowed_packet {self.max_message_bytes + _PACKET_RESERVE_BYTES}): raise that limit, "
                    "or submit smaller payloads"
                )
            if size + length > self.max_message_bytes:
                messages.append(";".join(parts))
                parts, size = [], 0
            parts.append(statement)
            size += length
        return [*messages, ";".join(parts)]


def _session(server: ServerVersion, idle_in_transaction: int | None) -> str:
    settings: dict[str, Any] = {
        "sql_mode": f"'{_SQL_MODE}'",
        "innodb_lock_wait_timeout": _LOCK_WAIT_TIMEOUT_S,
        "lock_wait_timeout": _LOCK_WAIT_TIMEOUT_S,  # of tables; the default is a year
        "time_zone": "'+00:00'",
        "sql_notes": 0,  # the driver fetches and logs each of them
    }
    if server.name == "mariadb":
        settings["tx_isolation"] = "'READ-COMMITTED'"
        settings[server.statement_limit] = STATEMENT_TIMEOUT_S
        if idle_in_transaction is not None:
            settings["idle_transaction_timeout"] = idle_in_transaction
    else:
        settings["transaction_isolation"] = "'READ-COMMITTED'"
        settings[server.statement_limit] = int(STATEMENT_TIMEOUT_S * 1000)
        if idle_in_transaction is not None:  # MySQL has no timeout for idle transactions
            settings["wait_timeout"] = int(_MAX_IDLE_S) + idle_in_transaction
    return ", SESSION ".join(f"{name} = {value}" for name, value in settings.items())
