"""One connection: sends statements, several in a message, and gives their results. Knows which server it speaks to."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import asyncmy
from asyncmy.constants import CLIENT, CR
from asyncmy.errors import OperationalError

from holdfast.errors import Misconfigured, Rejected
from holdfast.store.mysql.url import SETTING, Address
from holdfast.store.sql.codec import Row

STATEMENT_TIMEOUT = 30.0
"""Seconds a statement may take, by the server's count. MySQL counts those that only read."""

MESSAGE_TIMEOUT = STATEMENT_TIMEOUT + 5
"""Seconds a message may take; then its connection is cut, for nobody knows what is still to come on it."""

_CONNECT_TIMEOUT = 10.0
_LOCK_WAIT = 5
"""Seconds to wait for a row lock before the whole transaction is tried again."""

_IDLE_LIMIT = 60.0
"""Seconds without use after which a connection is not trusted: firewalls and servers drop idle ones silently."""

IDLE_IN_TRANSACTION = 5
"""Seconds until the server ends a transaction whose client has fallen silent: it may hold a lock on which the recovery
of that very client's jobs waits, and a connection that died without a word would be kept for hours."""

_PACKET_RESERVE = 1024
_OLDEST = {"mariadb": (10, 6, 0), "mysql": (8, 0, 1)}

# Refuse what would be cut or bent to fit, and read statements as they are written here.
_SQL_MODE = "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO"


class Result(NamedTuple):
    """What a statement gave: its rows, or how many rows it matched."""

    rows: Sequence[Row]
    matched: Any


class Server(NamedTuple):
    """Which server this is."""

    name: str
    version: str

    @classmethod
    def read(cls, greeting: str) -> Self:
        """From the version as the server tells it; refuses one that is too old."""
        # MariaDB may put 5.5.5- in front, so that old replicas accept it.
        text = greeting.removeprefix("5.5.5-")
        name = "mariadb" if "mariadb" in text.lower() else "mysql"
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
        if found is None:
            raise Misconfigured(f"{SETTING}: the server calls itself {greeting!r}, which is neither MariaDB nor MySQL")
        oldest = _OLDEST[name]
        if tuple(map(int, found.groups())) < oldest:
            wanted = ".".join(map(str, oldest))
            raise Misconfigured(
                f"{SETTING}: {name} {found.group()} is too old, it cannot skip locked rows: use {wanted} or newer"
            )
        return cls(name, found.group())

    @property
    def statement_limit(self) -> str:
        """The setting that limits how long a statement may take; 0 is no limit."""
        return "max_statement_time" if self.name == "mariadb" else "max_execution_time"


class Link:
    """A connection of our own, with the settings our statements rely on."""

    def __init__(self, connection: "asyncmy.Connection", server: Server, largest: int) -> None:
        self.server = server
        self.largest = largest
        """How many bytes one message may have."""
        self.used = 0
        """How many messages it carried."""
        self._connection = connection
        self._cursor = connection.cursor()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._last_used = self._loop.time()

    @classmethod
    async def connect(cls, address: Address, *, idle_in_transaction: int | None = IDLE_IN_TRANSACTION) -> Self:
        """A new connection; raises what the driver raises. With None, whoever uses it bounds its idleness itself."""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                connection = await asyncmy.connect(
                    **address.arguments(),
                    charset="utf8mb4",
                    autocommit=True,
                    connect_timeout=_CONNECT_TIMEOUT,
                    # Matched rows, not changed ones: a renewal that writes an equal value is no lost lease.
                    client_flag=CLIENT.FOUND_ROWS,
                    program_name="holdfast",
                )
        except RuntimeError as error:  # the driver's, for a connection that was reset as soon as it stood
            raise OperationalError(CR.CR_SERVER_LOST, f"the server reset a new connection ({error})") from error
        try:
            server = Server.read(connection.get_server_info())
            link = cls(connection, server, 1024 * 1024)
            # A transaction names its isolation itself; this one is for statements that are sent alone.
            settings, packet = await link.send(
                f"SET SESSION {_session(server, idle_in_transaction)}", "SELECT @@max_allowed_packet"
            )
            del settings
        except BaseException:
            connection.close()
            raise
        link.largest = int(packet.rows[0][0]) - _PACKET_RESERVE
        return link

    def usable(self) -> bool:
        """Whether it may serve again: open as far as can be told without asking, and used not long ago."""
        if self._closed or not self._connection.connected:
            return False
        # The driver's own pool looks at this too: the server has closed its end, and the event loop has seen it.
        if getattr(self._connection, "_stream_broken", False):
            return False
        return self._loop.time() - self._last_used < _IDLE_LIMIT

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as the last answer told."""
        return bool(self._connection.get_transaction_status())

    def filled(self, sql: str, args: Sequence[Any]) -> str:
        """A caller's statement with its arguments filled in, by the driver."""
        return str(self._cursor.mogrify(sql, args)) if args else sql

    async def send(self, *statements: str, timeout: float = MESSAGE_TIMEOUT) -> list[Result]:
        """Run these statements in order, in as few messages as their size allows; the result of each.

        The first that fails ends it; what ran before stays done, in the transaction if there is one.
        """
        results: list[Result] = []
        for message in self._messages(statements):
            self.used += 1
            try:
                async with asyncio.timeout(timeout):
                    await self._run(message, results)
            except BaseException as error:
                if not isinstance(error, asyncmy.errors.MySQLError):
                    self.close()  # in the middle of an answer
                raise
        self._last_used = self._loop.time()
        return results

    def close(self) -> None:
        """Cut the connection; the server rolls back what was open on it."""
        self._closed = True
        self._connection.close()

    async def quit(self) -> None:
        """Say goodbye, then close."""
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
            if length > self.largest:
                raise Rejected(
                    f"a statement of {length} bytes is larger than the database server takes "
                    f"(max_allowed_packet {self.largest + _PACKET_RESERVE}): raise that, or submit smaller payloads"
                )
            if size + length > self.largest:
                messages.append(";".join(parts))
                parts, size = [], 0
            parts.append(statement)
            size += length
        return [*messages, ";".join(parts)]


def _session(server: Server, idle_in_transaction: int | None) -> str:
    settings: dict[str, Any] = {
        "sql_mode": f"'{_SQL_MODE}'",
        "innodb_lock_wait_timeout": _LOCK_WAIT,
        "time_zone": "'+00:00'",
        "sql_notes": 0,  # the driver asks for each, and logs it
    }
    if server.name == "mariadb":
        settings["tx_isolation"] = "'READ-COMMITTED'"
        settings[server.statement_limit] = STATEMENT_TIMEOUT
        if idle_in_transaction is not None:
            settings["idle_transaction_timeout"] = idle_in_transaction
    else:
        settings["transaction_isolation"] = "'READ-COMMITTED'"
        settings[server.statement_limit] = int(STATEMENT_TIMEOUT * 1000)
        if idle_in_transaction is not None:  # it knows no bound for transactions alone
            settings["wait_timeout"] = int(_IDLE_LIMIT) + idle_in_transaction
    return ", SESSION ".join(f"{name} = {value}" for name, value in settings.items())
