"""Pages of lists that end by size, so that no response and no read is large."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
K = TypeVar("K")

MAX_PAGE_BYTES = 1024 * 1024
"""Size at which a page ends; it has at least one item."""


class SizedPage(NamedTuple, Generic[T]):
    """Page of a list."""

    items: list[T]
    more: bool
    """True if there may be more items after the last one."""


async def read_page(
    read: Callable[[K, int], Awaitable[Sequence[T]]],
    key_of: Callable[[T], K],
    size_of: Callable[[T], int],
    *,
    after: K,
    limit: int,
    read_size: int,
) -> SizedPage[T]:
    """Read up to `limit` items, and fewer if they are large.

    Args:
        read: Returns up to this many items after a key, in the order of their keys.
        key_of: Returns the key of an item.
        size_of: Returns about how many bytes an item adds to the response.
        after: Key after which the page starts.
        limit: Maximum number of items.
        read_size: Number of items that are read at a time.
    """
    items: list[T] = []
    size = 0
    while True:
        count = min(limit - len(items), read_size)
        part = await read(after, count)
        for item in part:
            size += size_of(item)
            if items and size > MAX_PAGE_BYTES:
                return SizedPage(items, more=True)
            items.append(item)
        if len(part) < count or len(items) >= limit:
            return SizedPage(items, more=len(part) == count)
        after = key_of(items[-1])
