"""What a log may tell of a request: where it went and what came of it, and nothing that is a secret of its sender."""

import logging
import re
import traceback
from pathlib import Path

from holdfast.api.http import Incoming
from holdfast.policy.redact import redact

LOG = logging.getLogger("holdfast.api")

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONGEST_MESSAGE = 300
_MOST_FRAMES = 30


def shown_path(request: Incoming) -> str:
    """The path for the log: of what a client wrote into it, only what is an id and surely no secret."""
    if "{" not in request.route:
        return request.route or "(no route)"
    given = request.path.split("/")
    parts = zip(request.route.split("/"), given, strict=True)
    return "/".join(own if not own.startswith("{") or not _UUID.fullmatch(told) else told for own, told in parts)


def log_fault(level: int, words: str, request: Incoming, error: BaseException, *, where: bool = False) -> None:
    """A line on what went wrong with a request. `where`: and in which lines of code.

    Without the traceback's own words: what exceptions say may be a payload.
    """
    text = f"{type(error).__name__}: {_message(error, request)}"
    if where:
        text = f"{_message(error, request)} [{_where(error)}]"
    LOG.log(
        level, "%s %s%s %s", request.method, shown_path(request), words, text, extra={"request_id": request.id.decode()}
    )


def _message(error: BaseException, request: Incoming) -> str:
    """What an exception says, as far as a log may: its first line, shortened, without secrets of this request."""
    text = (str(error).splitlines() or [""])[0]
    for name in (b"authorization", b"cookie"):
        secret = request.headers.get(name, b"").decode("latin-1").rpartition(" ")[2]
        if secret:
            text = text.replace(secret, "***")
    text = redact(text)[:_LONGEST_MESSAGE]
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _where(error: BaseException) -> str:
    """Where an exception came from, and by what: types and places, no values."""
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(told) < _MOST_FRAMES:
        frames = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(cause.__traceback__)]
        told.append(f"{type(cause).__name__} at {' > '.join(frames[-_MOST_FRAMES:])}")
        cause = cause.__cause__ or cause.__context__
    return "; by ".join(told)
