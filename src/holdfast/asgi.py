"""ASGI application for servers such as uvicorn and Granian: `uvicorn holdfast.asgi:app`.

`app` reads its settings from the environment and `holdfast.toml`, like `holdfast serve`. It opens its engine and starts
maintenance at lifespan startup, and closes both at lifespan shutdown. The ASGI server owns the socket: address, TLS,
timeouts and connection limits are its options, not holdfast settings.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from holdfast.api.app import Api, unavailable_response
from holdfast.api.asgi import AsgiWriter, Receive, Scope, Send
from holdfast.api.headers import headers_of
from holdfast.cli.commands.serve import open_node
from holdfast.cli.event_loop import reduce_gc
from holdfast.config import Settings, load
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.telemetry import logs


class NodeApplication:
    """ASGI application that runs a service node from lifespan startup to lifespan shutdown."""

    def __init__(self) -> None:
        self._api: Api | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._api is not None:
            await self._api(scope, receive, send)
        elif scope["type"] == "http":
            await _send_not_started(send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        phase = "startup"
        await receive()
        try:
            settings = _load_settings()
            async with open_node(settings, asyncio.Event()) as api:
                self._api = api
                reduce_gc(20_000)
                with _set_on_signal(api.service.stopping):
                    await send({"type": "lifespan.startup.complete"})
                    phase = "shutdown"
                    await receive()
                    api.service.stopping.set()
        except Exception as error:  # noqa: BLE001 - servers ignore an exception and run without the engine
            text = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
            await send({"type": f"lifespan.{phase}.failed", "message": f"holdfast: {text}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
        finally:
            self._api = None


def _load_settings() -> Settings:
    settings = load()
    logs.set_up(settings.log_format, settings.log_level)
    for key in ("tls_cert", "tls_key"):
        if getattr(settings, key) is not None:
            raise Misconfigured(
                f"{settings.sources[key]}: the ASGI server terminates TLS here: remove this setting and name the file "
                "in the server's options (uvicorn: --ssl-certfile, --ssl-keyfile)"
            )
    return settings


@contextlib.contextmanager
def _set_on_signal(stopping: asyncio.Event) -> Iterator[None]:
    """Set `stopping` on SIGTERM or SIGINT, in addition to what the server's own handlers do.

    ASGI servers send lifespan shutdown only after all responses have ended. Event streams and long polls do not end
    before `stopping` is set, so without this each would wait for the other.
    """
    if threading.current_thread() is not threading.main_thread():  # signals belong to the main thread
        yield
        return
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.set)
        server = previous[signal.Signals(number)]
        if callable(server):
            server(number, frame)

    for number, server in previous.items():
        if callable(server):  # otherwise the server leaves the signal to its default, which ends the process
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, server in previous.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, server)


async def _send_not_started(send: Send) -> None:
    detail = "the node is not started: run the ASGI server with lifespan support (uvicorn: without --lifespan off)"
    head, body = unavailable_response(503, "unavailable", detail)
    await AsgiWriter(send).send_response(head.status, headers_of(head.media_type, head.headers), body)


app = NodeApplication()
