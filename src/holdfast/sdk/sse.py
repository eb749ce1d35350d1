"""Incremental parser of server-sent events. No I/O."""

import msgspec

from holdfast.sdk.models import Event


class EventParser:
    """Parser of one event stream; `last_id` is where a new connection resumes."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self._rest = b""
        self._kind = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that these bytes complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        events = []
        for line in lines:
            event = self._line(line.rstrip(b"\r"))
            if event is not None:
                events.append(event)
        return events

    def reset(self) -> None:
        """Discard an incomplete event, because the next connection sends it again."""
        self._rest, self._kind, self._data = b"", "", []

    def _line(self, line: bytes) -> Event | None:
        if not line:
            kind, data = self._kind, b"\n".join(self._data)
            self._kind, self._data = "", []
            return Event(kind or "message", msgspec.json.decode(data), self.last_id) if data else None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._kind = value.decode()
        elif name == b"data":
            self._data.append(value)
        elif name == b"id":
            self.last_id = value.decode()
        return None  # a comment or an unknown field
