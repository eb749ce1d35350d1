"""Where a node is, when to ask it again, and what silence means. No I/O: both clients send by these rules."""

import random
import time
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import httpx2

from holdfast.errors import HoldfastError, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.sdk.responses import Response, error_of, retry_after
from holdfast.sdk.worker_requests import Request

PATIENCE = 10.0
"""Seconds that a request which may be repeated is asked again for, while the node is away."""

CONNECT_WITHIN = 5.0
ANSWER_WITHIN = 30.0
SILENT_FOR = 60.0
"""Seconds after which a stream that says nothing, not even that it lives, is given up."""

LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_AGENT = "holdfast-python"

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Nobody has heard the request."""


class Address:
    """A node's URL, and what goes with every request to it.

    The key may stand in the URL as a password: `https://:hf_…@jobs.example.org`.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        try:
            at = urlsplit(url)
            port = "" if at.port is None else f":{at.port}"
        except ValueError:
            raise _no_address() from None
        if at.scheme not in ("http", "https") or not at.hostname:
            raise _no_address()
        host = f"[{at.hostname}]" if ":" in at.hostname else at.hostname
        self.url = f"{at.scheme}://{host}{port}{at.path.rstrip('/')}"
        self.encrypted = at.scheme == "https"
        """Where nothing is, there is no certificate to check, and what that takes need not be read."""
        bearer = unquote(at.password) if at.password else key
        if not bearer:
            raise Misconfigured("HOLDFAST_API_KEY: the node wants a key: make one with 'holdfast keys create'")
        if not bearer.isascii() or not bearer.isprintable():
            raise Misconfigured("HOLDFAST_API_KEY: this is no key: it has characters that no key has")
        self.headers = {"authorization": f"Bearer {bearer}", "user-agent": _AGENT, "accept": "application/json"}

    def judged(self, response: Response) -> "Response | Away":
        """An answer, unless it means that the node or its database is away, or wants to be left alone."""
        if response.status >= 500 or response.status == 429:
            return Away(error_of(response), retry_after(response) or 0.0)
        return response

    def silent(self, error: Exception) -> "Away":
        """There was no answer."""
        if isinstance(error, _NOT_SENT):
            return Away(Unavailable(f"HOLDFAST_API_URL: the node at {self.url} cannot be reached: {_why(error)}"))
        return Away(OutcomeUnknown(f"the node at {self.url} did not answer: {_why(error)}"))


def _no_address() -> Misconfigured:
    return Misconfigured("HOLDFAST_API_URL: give the address of a node, such as http://localhost:8080")


class Away(NamedTuple):
    """Why there is no answer, and after how many seconds to ask again at the earliest."""

    error: HoldfastError
    after: float = 0.0


class Patience:
    """How long a request is asked again for: longer and longer pauses, never shorter than the node asks for."""

    def __init__(self, seconds: float = PATIENCE) -> None:
        self._until = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE

    def pause(self, request: Request, away: Away) -> float:
        """Seconds to wait before asking again; raises what went wrong if that could do harm or takes too long."""
        wait = max(random.uniform(0.5, 1) * self._pause, away.after)
        undone = not isinstance(away.error, OutcomeUnknown)
        if not (request.repeatable or undone) or time.monotonic() + wait > self._until:
            raise away.error
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
        return wait


def headers_of(request: Request) -> dict[str, str]:
    """The headers of one request, beside those of all."""
    headers = dict(request.headers)
    if request.body is not None:
        headers["content-type"] = "application/json"
    return headers


def timeout_of(request: Request) -> httpx2.Timeout:
    """How long an answer may take."""
    return httpx2.Timeout(ANSWER_WITHIN + request.wait, connect=CONNECT_WITHIN)


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
