"""Reads server-sent events from bytes as they come. No I/O."""

import msgspec

from holdfast.sdk.models import Event


class Events:
    """What came of a stream so far; remembers where to go on after it breaks."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self._rest = b""
        self._kind = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete with these bytes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            event = self._line(line.rstrip(b"\r"))
            if event is not None:
                found.append(event)
        return found

    def broke(self) -> None:
        """The connection is gone: what was not complete comes again."""
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
        return None  # a comment, or a field that means nothing to us
