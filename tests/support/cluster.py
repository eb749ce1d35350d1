"""The topology of `deploy/compose.yaml` as local processes: nginx, three nodes of the service, three workers."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import ExitStack
from signal import SIGTERM
from typing import TYPE_CHECKING, Self

from tests.support import nodes
from tests.support.ledger import Ledger
from tests.support.nodes import ROOT
from tests.support.servers.process import free_port
from tests.support.servers.recipes import Nginx, exchange
from tests.support.services import Service

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from tests.support.nodes import Node

ADMIN_KEY = "the-first-administrator-of-a-cluster"
_HEALTH_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
NGINX_CONF = ROOT / "deploy" / "nginx" / "nginx.conf"


class Cluster:
    """Nodes, workers and nginx of an installation on loopback, stopped at the end of the block."""

    def __init__(self, database_url: str, redis_url: str, folder: Path) -> None:
        self._database_url = database_url
        self._folder = folder
        self._stack = ExitStack()
        self._environment = {"HOLDFAST_REDIS_URL": redis_url, "HOLDFAST_ADMIN_KEY": ADMIN_KEY}
        self.ledger = Ledger(folder / "ledger").create()
        self.services: list[Service] = []
        self.workers: list[Node] = []
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        trusted = {"HOLDFAST_TRUSTED_PROXIES": "127.0.0.1/32"}
        for _ in range(3):
            service = Service(self._database_url, self._folder, {**self._environment, **trusted})
            service.start()
            self._stack.callback(service.kill)
            self.services.append(service)
        self.workers = [self._worker() for _ in range(3)]
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._stack.callback(_terminate, start_nginx(self._folder, port, [service.url for service in self.services]))

    def _worker(self) -> Node:
        worker = nodes.start(
            self._database_url, self._folder, ledger=self.ledger.path, lease=15.0, environment=self._environment
        )
        self._stack.callback(worker.end)
        return worker

    async def restart_all(self) -> None:
        """Restart all services, then all workers, one at a time and gracefully."""
        for service in self.services:
            assert await asyncio.to_thread(service.stop) == 0
            await asyncio.to_thread(service.start)
        for index, worker in enumerate(self.workers):
            worker.signal(SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0, worker.log
            self.workers[index] = self._worker()


def render_settings(port: int, services: Sequence[str], folder: Path) -> str:
    """Return the nginx settings of `deploy/` with the addresses of these nodes."""
    lines = []
    for line in NGINX_CONF.read_text().splitlines():
        match line.split():
            case ["server", "serve:8080", "resolve", *options]:
                lines += [f"server {url.removeprefix('http://')} {' '.join(options)}" for url in services]
            case ["resolver", *_]:
                pass
            case ["listen", "8080;"]:
                lines.append(f"listen 127.0.0.1:{port};")
            case _:
                lines.append(line.replace("/tmp/", f"{folder}/"))
    return "\n".join(lines)


def start_nginx(folder: Path, port: int, services: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start nginx in front of these nodes and wait until it responds."""
    program = Nginx().find()
    assert program is not None, "the test must request the server `nginx` first"
    settings = folder / "nginx.conf"
    settings.write_text(render_settings(port, services, folder))
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program.path), "-e", "stderr", "-g", "daemon off;", "-c", str(settings)], stdout=log, stderr=log
        )
    while not exchange(port, _HEALTH_REQUEST).startswith(b"HTTP/1.1 200"):
        assert process.poll() is None, (folder / "nginx.log").read_text()
    return process


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)
