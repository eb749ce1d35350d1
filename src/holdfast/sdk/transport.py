"""Interface between the clients and the connection that carries their requests."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from holdfast.sdk.responses import Response

CONNECT_TIMEOUT_S = 5.0
RESPONSE_TIMEOUT_S = 30.0
STREAM_IDLE_TIMEOUT_S = 60.0
"""A stream without data, not even a keep-alive comment, for this long counts as broken."""


class TransportError(Exception):
    """The connection failed. `sent` is False if the node cannot have received the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class StreamedResponse(NamedTuple):
    """Response whose body is read piece by piece."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Carrier of requests to one node; raises `TransportError` if a connection fails."""

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        """Send a request and return its response, whatever its status.

        Args:
            method: HTTP method.
            path: Path and query, percent-encoded.
            headers: Complete headers, apart from those of the connection.
            body: Body, or None.
            timeout: Seconds to wait for data from the node.
        """

    def stream(
        self, method: str, path: str, *, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send a request and return its response before the body has arrived."""

    async def aclose(self) -> None:
        """Close all connections."""
