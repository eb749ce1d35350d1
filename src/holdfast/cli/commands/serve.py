"""`holdfast serve`: one node of the HTTP service."""

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import AsyncIterator

import click

from holdfast import tasks
from holdfast.api.app import Api
from holdfast.api.private_port import private_api
from holdfast.api.server import server
from holdfast.api.server.timeouts import ServerLimits
from holdfast.api.server.tls import TlsFile, load_tls
from holdfast.cli.checks.database import warn_if_unsafe
from holdfast.cli.commands.work import say
from holdfast.cli.event_loop import reduce_gc, run
from holdfast.cli.exit_codes import startup_errors
from holdfast.cli.options import settings_options
from holdfast.compose import build_api, open_engine, require_access
from holdfast.config import Settings, shown_url
from holdfast.errors import Misconfigured


@click.command()
@settings_options("host", "port", "tls_cert", "tls_key", "metrics_host", "metrics_port")
def serve(settings: Settings) -> None:
    r"""Serve the HTTP API, on as many nodes as you like.

    \b
      holdfast serve
      holdfast serve --port 8081 --database-url postgresql://localhost/jobs
      holdfast serve --host 0.0.0.0 --port 8443 --tls-cert chain.pem --tls-key key.pem
    """
    run(_serve(settings))


async def _serve(settings: Settings) -> None:
    tls = tls_of(settings)
    stop = asyncio.Event()
    async with open_node(settings, stop) as api:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with listen(settings, api, tls):
            await stop.wait()
            say("stopping: finishing requests in progress, ending streams")
    say("stopped")


@contextlib.asynccontextmanager
async def open_node(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Api]:
    """Open the engine, build the API, and run maintenance until `stop` is set or the block ends."""
    with startup_errors(settings):
        engine = await open_engine(settings)
    try:
        await require_access(settings, engine)
        await warn_if_unsafe(settings, settings.database_url, say)
        api = build_api(settings, engine)
        maintenance = tasks.start(engine.run_maintenance(stop), name="holdfast maintenance")
        try:
            yield api
        finally:
            stop.set()
            await asyncio.gather(maintenance, return_exceptions=True)
    finally:
        await engine.aclose()


def tls_of(settings: Settings) -> ssl.SSLContext | None:
    """Return the configured TLS context; None for plain HTTP. Raises `Misconfigured`."""
    names = {key: settings.sources.get(key, f"HOLDFAST_{key.upper()}") for key in ("tls_cert", "tls_key")}
    if settings.tls_cert is None and settings.tls_key is None:
        return None
    if settings.tls_key is None:
        raise Misconfigured(f"{names['tls_cert']} is set without HOLDFAST_TLS_KEY: set both, or neither for plain HTTP")
    if settings.tls_cert is None:
        raise Misconfigured(f"{names['tls_key']} is set without HOLDFAST_TLS_CERT: set both, or neither for plain HTTP")
    return load_tls(TlsFile(settings.tls_cert, names["tls_cert"]), TlsFile(settings.tls_key, names["tls_key"]))


@contextlib.asynccontextmanager
async def listen(
    settings: Settings, api: Api, tls: ssl.SSLContext | None, *, any_port: bool = False
) -> AsyncIterator[str]:
    """Serve the API within this block; yield its URL.

    Args:
        settings: Host, port and limits.
        api: Application to serve.
        tls: Context for HTTPS; None for plain HTTP.
        any_port: Use a free port if the configured one is taken.
    """
    try:
        listening = server.bind(settings.host, settings.port)
    except Misconfigured:
        if not any_port:
            raise
        listening = server.bind(settings.host, 0)
        say(f"port {settings.port} is taken: using a free port instead")
    url = _url_of(listening, tls)
    reduce_gc(20_000)
    sockets = [(api, listening, tls)]
    private = None if settings.metrics_port is None else _bind_private(settings, settings.metrics_port, listening)
    if private is not None:
        sockets.append((private_api(api), private, None))
    stop = asyncio.Event()
    limits = ServerLimits(max_connections=settings.max_connections)
    started = [asyncio.Event() for _ in sockets]
    serving = [
        tasks.start(
            server.serve(each, sock, stop=stop, ready=ready.set, limits=limits, tls=context),
            name="holdfast HTTP server",
            awaited=True,
        )
        for (each, sock, context), ready in zip(sockets, started, strict=True)
    ]
    try:
        for ready in started:
            await ready.wait()
        say(f"listening on {url}; jobs are stored in {shown_url(settings.database_url)}")
        if private is not None:
            say(f"metrics without a key on {_url_of(private, None)}/metrics")
        yield url
    finally:
        stop.set()
        await asyncio.gather(*serving)


def _bind_private(settings: Settings, port: int, listening: socket.socket) -> socket.socket:
    """Return the socket of the private port; close the other one if that fails."""
    try:
        return server.bind(settings.metrics_host, port, "HOLDFAST_METRICS_PORT")
    except Misconfigured:
        listening.close()
        raise


def _url_of(listening: socket.socket, tls: ssl.SSLContext | None) -> str:
    host, port = listening.getsockname()[:2]
    return f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"
