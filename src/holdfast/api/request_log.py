"""Log lines about requests, without payloads, credentials or other client secrets."""

import logging
import re
import traceback
from pathlib import Path

from holdfast.api.http import HttpRequest
from holdfast.policy.redact import redact

LOG = logging.getLogger("holdfast.api")

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MAX_MESSAGE_CHARS = 300
_MAX_FRAMES = 30


def loggable_path(request: HttpRequest) -> str:
    """Return the route with UUID parameters filled in; other parameters may be secrets."""
    if "{" not in request.route:
        return request.route or "(no route)"
    segments = zip(request.route.split("/"), request.path.split("/"), strict=True)
    return "/".join(
        value if template.startswith("{") and _UUID.fullmatch(value) else template for template, value in segments
    )


def log_failed_authentication(request: HttpRequest, address: str, key_id: str | None, *, throttled: bool) -> None:
    """Log a failed authentication with the client's address and the id of the API key.

    Throttled attempts are not logged, so that a client can cause only a few lines a minute.
    """
    LOG.warning(
        "%s %s: authentication failed from %s%s%s",
        request.method,
        loggable_path(request),
        address or "an unknown address",
        "" if key_id is None else f" for key {key_id}",
        "; further failures are throttled for a minute" if throttled else "",
        extra={"request_id": request.id.decode(), "address": address, "key": key_id},
    )


def log_error(
    level: int, label: str, request: HttpRequest, error: BaseException, *, with_locations: bool = False
) -> None:
    """Log a failed request; `with_locations` adds the code locations.

    Leaves out the formatted traceback because exception messages may contain payloads.
    """
    text = f"{type(error).__name__}: {_message(error, request)}"
    if with_locations:
        text = f"{_message(error, request)} [{_locations(error)}]"
    LOG.log(
        level,
        "%s %s%s %s",
        request.method,
        loggable_path(request),
        label,
        text,
        extra={"request_id": request.id.decode()},
    )


def _message(error: BaseException, request: HttpRequest) -> str:
    """Return the first line of an exception's message, shortened and redacted."""
    text = (str(error).splitlines() or [""])[0]
    for name in (b"authorization", b"cookie"):
        secret = request.headers.get(name, b"").decode("latin-1").rpartition(" ")[2]
        if secret:
            text = text.replace(secret, "***")
    text = redact(text)[:_MAX_MESSAGE_CHARS]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _locations(error: BaseException) -> str:
    """Return exception types and code locations along the cause chain, without values."""
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < _MAX_FRAMES:
        frames = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(cause.__traceback__)]
        causes.append(f"{type(cause).__name__} at {' > '.join(frames[-_MAX_FRAMES:])}")
        cause = cause.__cause__ or cause.__context__
    return "; caused by ".join(causes)
