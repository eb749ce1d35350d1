"""Bound on the bytes of a chunked body that are not data, such as extensions and trailers."""

MAX_FRAMING_BYTES = 16_384
"""Chunk extensions and trailers of one request, as large as a head may be."""

CHUNK_FRAMING_BYTES = 20
"""Framing of one chunk without extensions: a size of up to 16 digits and two line ends."""

SLICE_BYTES = 4_096
"""Input parsed between two checks; bounds the memory in which the parser keeps a trailer."""

TOO_MUCH_FRAMING = (
    f"the chunk extensions and trailers have more than {MAX_FRAMING_BYTES:,} bytes: send the body without them"
)


class ChunkFraming:
    """Count of the bytes of one chunked body that are not data."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_FRAMING_BYTES

    def data(self, size: int) -> None:
        """Count bytes as data instead of framing."""
        self._left += size

    def chunk(self) -> None:
        """Allow for the framing of one more chunk."""
        self._left += CHUNK_FRAMING_BYTES

    def is_too_large_after(self, size: int) -> bool:
        """Count received bytes; return whether too many of all bytes so far are framing."""
        self._left -= size
        return self._left < 0
