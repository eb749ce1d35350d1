"""Sends requests to a node, from an event loop; asks again while the node is away, where that can do no harm."""

import asyncio
import random
import time
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx2

from holdfast.errors import HoldfastError, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.sdk.answers import Response, error_of, retry_after
from holdfast.sdk.requests import Request

PATIENCE = 10.0
"""Seconds that a request which may be repeated is asked again for, while the node is away."""

CONNECT_WITHIN = 5.0
ANSWER_WITHIN = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_AGENT = "holdfast-python"

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Nobody has heard the request."""


class Client:
    """One node, or several behind one address. Belongs to one event loop.

    The key may stand in the URL as a password: `https://:hf_…@jobs.example.org`.
    """

    def __init__(self, url: str, key: str | None = None, *, transport: Any = None) -> None:
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise Misconfigured("HOLDFAST_API_URL: give the address of a node, such as http://localhost:8080")
        port = "" if at.port is None else f":{at.port}"
        host = f"[{at.hostname}]" if ":" in at.hostname else at.hostname
        self.url = f"{at.scheme}://{host}{port}{at.path.rstrip('/')}"
        bearer = unquote(at.password) if at.password else key
        if not bearer:
            raise Misconfigured("HOLDFAST_API_KEY: the node wants a key: make one with POST /v1/keys, and set it here")
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {bearer}", "user-agent": _AGENT, "accept": "application/json"},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            transport=transport,
        )

    async def send(self, request: Request, *, patience: float = PATIENCE) -> Response:
        """The answer, whatever its status but those that mean that the node or its database is away.

        Those raise `Unavailable` when nothing was done, `OutcomeUnknown` when nobody knows: at once, or after
        `patience` seconds if the request may be repeated.
        """
        until = time.monotonic() + patience
        pause = _FIRST_PAUSE
        while True:
            found = await self._once(request)
            if isinstance(found, Response):
                return found
            wait = max(random.uniform(0.5, 1) * pause, found.after)
            undone = not isinstance(found.error, OutcomeUnknown)
            if not (request.repeatable or undone) or time.monotonic() + wait > until:
                raise found.error
            await asyncio.sleep(wait)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _once(self, request: Request) -> "Response | _Away":
        headers = dict(request.headers)
        if request.body is not None:
            headers["content-type"] = "application/json"
        timeout = httpx2.Timeout(ANSWER_WITHIN + request.wait, connect=CONNECT_WITHIN)
        try:
            answer = await self._http.request(
                request.method, request.path, content=request.body, headers=headers, timeout=timeout
            )
        except _NOT_SENT as error:
            return _Away(Unavailable(f"HOLDFAST_API_URL: the node at {self.url} cannot be reached: {_why(error)}"))
        except httpx2.TransportError as error:
            return _Away(OutcomeUnknown(f"the node at {self.url} did not answer: {_why(error)}"))
        response = Response(answer.status_code, answer.content, answer.headers)
        if response.status >= 500 or response.status == 429:
            return _Away(error_of(response), retry_after(response) or 0.0)
        return response


class _Away(NamedTuple):
    """Why there is no answer, and after how many seconds to ask again at the earliest."""

    error: HoldfastError
    after: float = 0.0


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
