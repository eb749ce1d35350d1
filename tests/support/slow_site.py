"""Web server whose page `/slow` waits until the test lets it answer, or the client has gone."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from types import TracebackType
from typing import Any, Self


class SlowSite:
    """A running server; use it as a context manager."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        """Set when a request for `/slow` has arrived."""
        self.left = threading.Event()
        """Set when a client closed the connection before the answer."""
        self.answer = threading.Event()
        """Set by the test, so that `/slow` answers."""
        site = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/slow" or site.waits(self.connection):
                    self.send_response(204)
                    self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def waits(self, connection: Any) -> bool:
        """Wait for the test; return whether the client is still there."""
        self.arrived.set()
        while not self.answer.is_set():
            if select([connection], [], [], 0.05)[0]:  # no data follows a GET: the client has closed the connection
                self.left.set()
                return False
        return True

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answer.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
