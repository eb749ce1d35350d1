"""Node addresses, and the rules for repeating a request while a node is unavailable. No I/O."""

import random
import time
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from holdfast.errors import HoldfastError, Misconfigured, OutcomeUnknown, Unavailable
from holdfast.sdk.responses import Response, error_of, retry_after
from holdfast.sdk.transport import TransportError
from holdfast.sdk.worker_requests import Request

RETRY_TIMEOUT_S = 10.0
"""Default time for which a request that is safe to repeat is retried."""

_MIN_DELAY_S, _MAX_DELAY_S = 0.1, 2.0
_AGENT = "holdfast-python"


class NodeAddress:
    """URL of a node and the headers of every request to it.

    The URL may contain the API key as its password: `https://:hf_…@jobs.example.org`.

    Raises:
        Misconfigured: The URL is not an http or https URL, or the key is missing or malformed.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            port = "" if parts.port is None else f":{parts.port}"
        except ValueError:
            raise _invalid_address() from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _invalid_address()
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.url = f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
        bearer = unquote(parts.password) if parts.password else key
        if not bearer:
            raise Misconfigured("HOLDFAST_API_KEY: the node requires a key; create one with 'holdfast keys create'")
        if not bearer.isascii() or not bearer.isprintable():
            raise Misconfigured("HOLDFAST_API_KEY: this is not a key, because it contains characters that no key has")
        self.headers = {"authorization": f"Bearer {bearer}", "user-agent": _AGENT, "accept": "application/json"}

    def response_failure(self, response: Response) -> "NodeFailure | None":
        """Return the failure if the status means an unavailable or overloaded node, else None."""
        if response.status >= 500 or response.status == 429:
            error, delay = error_of(response), retry_after(response) or 0.0
            if isinstance(error, Unavailable):
                error.retry_after = delay
            return NodeFailure(error, delay)
        return None

    def connection_failure(self, error: TransportError) -> "NodeFailure":
        """Return the failure for a request without a response."""
        if error.sent:
            return NodeFailure(OutcomeUnknown(f"the node at {self.url} did not respond: {error}"))
        return NodeFailure(Unavailable(f"HOLDFAST_API_URL: the node at {self.url} cannot be reached: {error}"))


def _invalid_address() -> Misconfigured:
    return Misconfigured("HOLDFAST_API_URL: give the address of a node, such as http://localhost:8080")


class NodeFailure(NamedTuple):
    """Failure that a later try may not have, and the seconds that the node asks callers to wait."""

    error: HoldfastError
    retry_after: float = 0.0


class RetryTimer:
    """Growing delays between the tries of one request, never shorter than the node asks for."""

    def __init__(self, timeout: float = RETRY_TIMEOUT_S) -> None:
        self._end = time.monotonic() + timeout
        self._delay = _MIN_DELAY_S

    def next_delay(self, request: Request, failure: NodeFailure) -> float:
        """Return the seconds to wait before the next try.

        Raises the error of the failure if the request may have taken effect and is not safe to repeat, or if the
        next try would be after the timeout.
        """
        delay = max(random.uniform(0.5, 1) * self._delay, failure.retry_after)
        not_done = not isinstance(failure.error, OutcomeUnknown)
        if not (request.repeatable or not_done) or time.monotonic() + delay > self._end:
            raise failure.error
        self._delay = min(_MAX_DELAY_S, 2 * self._delay)
        return delay


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of one request, without those that every request has."""
    headers = dict(request.headers)
    if request.body is not None:
        headers["content-type"] = "application/json"
    return headers
